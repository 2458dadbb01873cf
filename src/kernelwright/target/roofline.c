/* Measures what this CPU can do at most: prints one line of JSON. Arguments: threads, seconds per figure, bytes of the large array;
   with a fourth, "passes", it prints read, write and copy of one round of passes for every line that it reads, until there is none;
   otherwise the fourth and further ones are pieces in bytes, one for each level of caches, that a thread reads again and again.
   Over arrays far larger than the caches, each by threads that visit one place or four places in turn:
   read: sums; write: streaming stores; bandwidth: the best of these and of a copy with streaming stores, both ways counted;
   levels: the same kind of read from each of the pieces; wake: seconds of a parallel region in which nothing is done;
   flops: chains of fused multiply-adds in registers, as many as hide the latency. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
#define STREAM(to, value) _mm512_stream_ps((float *)(to), (__m512)(value))
#elif defined(__AVX__)
#include <immintrin.h>
#define LANES 8
#define STREAM(to, value) _mm256_stream_ps((float *)(to), (__m256)(value))
#else
#define LANES 4
#define STREAM(to, value) (*(to) = (value))
#endif
typedef float vec __attribute__((vector_size(LANES * 4)));
enum { CHAINS = 12 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static volatile float sink;

static double flops_once(int threads) {
    const long steps = 2000000;
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        vec a[CHAINS], b, c;
        for (int l = 0; l < LANES; l++) b[l] = 0.999999f, c[l] = 1e-6f;
        for (int k = 0; k < CHAINS; k++)
            for (int l = 0; l < LANES; l++) a[k][l] = 1.0f + k;
        for (long s = 0; s < steps; s++)
#pragma GCC unroll 12
            for (int k = 0; k < CHAINS; k++) a[k] = a[k] * b + c;
        vec sum = a[0];
        for (int k = 1; k < CHAINS; k++) sum += a[k];
        sink = sum[0];
    }
    return 2.0 * LANES * CHAINS * steps * threads / (now() - start);
}

static double cached_once(int threads, const vec *data, size_t count, int repeats) {
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        size_t first = (size_t)omp_get_thread_num() * count;
        vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (int r = 0; r < repeats; r++) {
            for (size_t i = first; i + 4 <= first + count; i += 4)
                s0 += data[i], s1 += data[i + 1], s2 += data[i + 2], s3 += data[i + 3];
            __asm__ volatile("" : : : "memory");
        }
        sink = (s0 + s1 + s2 + s3)[0];
    }
    return (double)count * sizeof(vec) * repeats * threads / (now() - start);
}

/* Seconds of waking all threads and waiting for them: the mean of a hundred regions. */
static double wake_once(int threads) {
    double start = now();
    for (int region = 0; region < 100; region++)
#pragma omp parallel num_threads(threads)
        __asm__ volatile("" : : : "memory");
    return (now() - start) / 100;
}

enum { READ, WRITE, COPY, PIECE = 2048 / sizeof(vec) };

/* Bytes a second of one pass in pieces of 2 KiB; every thread takes `places` stretches in turn. */
static double pass_once(int what, int threads, int places, vec *to, const vec *from, size_t count) {
    size_t pieces = count / PIECE / threads / places;
    double start = now();
#pragma omp parallel num_threads(threads)
    {
        vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, one = (vec){0} + 1.0f;
        size_t share = (size_t)omp_get_thread_num() * pieces * places;
        for (size_t p = 0; p < pieces; p++)
            for (int k = 0; k < places; k++) {
                size_t i = (share + k * pieces + p) * PIECE, end = i + PIECE;
                if (what == READ)
                    for (; i < end; i += 4) s0 += from[i], s1 += from[i + 1], s2 += from[i + 2], s3 += from[i + 3];
                else
                    for (; i < end; i++) STREAM(to + i, what == COPY ? from[i] : one);
            }
        sink = (s0 + s1 + s2 + s3)[0];
    }
    double bytes = (double)pieces * places * PIECE * threads * sizeof(vec);
    return (what == COPY ? 2 : 1) * bytes / (now() - start);
}

/* The best of passes over one place and over four in turn, for so long; at least of one each. */
static double best_pass(int what, int threads, double seconds, vec *to, const vec *from, size_t count) {
    double best = 0, value, end = now() + seconds;
    for (int pass = 0; pass < 2 || now() < end; pass++)
        if ((value = pass_once(what, threads, pass % 2 ? 4 : 1, to, from, count)) > best) best = value;
    return best;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double seconds = argc > 2 ? atof(argv[2]) : 0.5;
    size_t bytes = argc > 3 ? strtoull(argv[3], 0, 10) : (size_t)256 << 20;
    size_t count = bytes / sizeof(vec) / threads / 4 * threads * 4;
    vec *a = aligned_alloc(4096, count * sizeof(vec)), *b = aligned_alloc(4096, count * sizeof(vec));
    if (!a || !b) return 1;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < count; i++) a[i] = b[i] = (vec){0} + 1e-9f;
    if (argc > 4 && !strcmp(argv[4], "passes")) {
        for (int line; (line = getchar()) != EOF;) {
            double rates[3];
            for (int what = READ; what <= COPY; what++)
                rates[what] = best_pass(what, threads, 0, a, b, count);
            printf("{\"read\": %.6g, \"write\": %.6g, \"copy\": %.6g}\n", rates[READ], rates[WRITE], rates[COPY]);
            fflush(stdout);
        }
        return 0;
    }
    double flops = 0, wake = 1, value, end;
    for (end = now() + seconds; now() < end;)
        /* One thread alone, times the threads, is the better witness when other programs hold a core. */
        if ((value = flops_once(threads)) > flops || (value = threads * flops_once(1)) > flops) flops = value;
    double read = best_pass(READ, threads, seconds, a, b, count), write = best_pass(WRITE, threads, seconds, a, b, count);
    double bandwidth = best_pass(COPY, threads, seconds, a, b, count);
    if (read > bandwidth) bandwidth = read;
    if (write > bandwidth) bandwidth = write;
    for (int turn = 0; turn < 100; turn++)
        if ((value = wake_once(threads)) < wake) wake = value;
    printf("{\"flops\": %.6g, \"bandwidth\": %.6g, \"read_bandwidth\": %.6g, \"write_bandwidth\": %.6g, \"wake\": %.6g, \"levels\": [",
           flops, bandwidth, read, write, wake);
    for (int piece = 4; piece < argc; piece++) {
        double best = 0;
        size_t vectors = strtoull(argv[piece], 0, 10) / sizeof(vec) / 4 * 4;
        if (vectors > count / threads) vectors = count / threads / 4 * 4;
        int repeats = 1 + (int)(((size_t)64 << 20) / sizeof(vec) / vectors);
        cached_once(threads, a, vectors, 1);
        for (end = now() + seconds / 2; now() < end;)
            if ((value = cached_once(threads, a, vectors, repeats)) > best) best = value;
        printf("%s%.6g", piece > 4 ? ", " : "", best);
    }
    printf("]}\n");
    return 0;
}
