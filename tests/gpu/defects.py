"""Kernels as people write them, each with defects that D chooses; D = 0 is honest. A mark says where a defect shows itself."""

from __future__ import annotations

SOURCE = r"""
#include <cuda_pipeline.h>
#define SYNC(d) do { if constexpr (D != d) __syncthreads(); } while (0)
#define PICK(d, bad, good) (D == d ? (bad) : (good))
#define KERNEL template <int D> __global__ void
#define EACH1(f, ...) template __global__ void f<0>(__VA_ARGS__); template __global__ void f<1>(__VA_ARGS__);
#define EACH2(f, ...) EACH1(f, __VA_ARGS__) template __global__ void f<2>(__VA_ARGS__);
#define EACH3(f, ...) EACH2(f, __VA_ARGS__) template __global__ void f<3>(__VA_ARGS__);
#define EACH4(f, ...) EACH3(f, __VA_ARGS__) template __global__ void f<4>(__VA_ARGS__);
#define EACH5(f, ...) EACH4(f, __VA_ARGS__) template __global__ void f<5>(__VA_ARGS__);
#define EACH6(f, ...) EACH5(f, __VA_ARGS__) template __global__ void f<6>(__VA_ARGS__);

KERNEL softmax(const float* x, float* o, int n) {
    __shared__ float part[8];
    const float* row = x + blockIdx.x * n;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < PICK(3, n + 1, n); i += 256) most = fmaxf(most, row[i]);          // @softmax3
    for (int k = 16; k; k >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, k));
    if (threadIdx.x % 32 == 0 && PICK(4, threadIdx.x < 128, true)) part[threadIdx.x / 32] = most;
    SYNC(1);
    for (int k = 0; k < 8; k++) most = fmaxf(most, part[k]);                                         // @softmax1 @softmax4
    SYNC(2);
    for (int i = threadIdx.x; i < n; i += 256) sum += expf(row[i] - most);
    for (int k = 16; k; k >>= 1) sum += __shfl_xor_sync(~0u, sum, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;                                          // @softmax2
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++) sum += part[k];
    for (int i = threadIdx.x; i < n; i += 256) o[(blockIdx.x + PICK(5, 1, 0)) * n + i] = expf(row[i] - most) / sum;  // @softmax5
}
EACH5(softmax, const float*, float*, int)

KERNEL product(const float* a, const float* b, float* c, int n) {
    __shared__ float s[16][16], t[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[row * n + k + x];                                                                 // @product1 @product2
        t[y][x] = b[(k + y + PICK(3, 1, 0)) * n + col];                                               // @product1 @product2 @product3
        SYNC(1);
        for (int i = 0; i < 16; i++) sum += s[y][i] * t[i][PICK(4, (x + 512), x)];                    // @product1 @product2 @product4
        SYNC(2);
    }
    c[row * PICK(5, 2 * n, n) + col] = sum;                                                            // @product5
}
EACH5(product, const float*, const float*, float*, int)

KERNEL transpose(const float* x, float* o, int rows, int cols) {
    __shared__ float t[32][33];
    int r = blockIdx.y * 32 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
    if (r < rows && c < cols) t[threadIdx.y][threadIdx.x] = x[r * cols + c];
    SYNC(1);
    r = blockIdx.x * 32 + threadIdx.y, c = blockIdx.y * 32 + threadIdx.x;
    if (r < PICK(3, cols + 32, cols) && c < rows)
        o[r * rows + c] = t[threadIdx.x][threadIdx.y + PICK(2, 1, 0)];                                // @transpose1 @transpose2 @transpose3
}
EACH3(transpose, const float*, float*, int, int)

KERNEL total(const float* x, float* o, int n) {
    __shared__ float t[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    t[threadIdx.x] = i < n ? x[i] : 0;
    if (D != 2 || threadIdx.x < 40) __syncthreads();                                                  // @total2
    for (int s = PICK(4, 256, 128); s; s >>= 1) {
        if (threadIdx.x < s) t[threadIdx.x] += t[threadIdx.x + s];                                    // @total3 @total4
        SYNC(3);
    }
    if (threadIdx.x == 0) {
        if (D == 1) o[0] += t[0];                                                                     // @total1
        else atomicAdd(o, t[0]);
    }
}
EACH4(total, const float*, float*, int)

KERNEL scan(const float* x, float* o) {
    __shared__ float t[2][128];
    int at = 0;
    t[0][threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int s = 1; s < 128; s <<= 1) {
        int to = PICK(2, at, 1 - at);
        t[to][threadIdx.x] = t[at][threadIdx.x] + (threadIdx.x >= s ? t[at][threadIdx.x - s] : 0);    // @scan1 @scan2
        at = to;
        SYNC(1);
    }
    o[threadIdx.x] = t[at][threadIdx.x];
}
EACH2(scan, const float*, float*)

KERNEL histogram(const int* x, int* o, int n) {
    __shared__ int bins[64];
    if (D != 2 && threadIdx.x < 64) bins[threadIdx.x] = 0;
    SYNC(3);
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
        int b = x[i] % 64 + PICK(4, 64, 0);
        if (D == 1) bins[b]++;                                                                        // @histogram1
        else atomicAdd(&bins[b], 1);                                                                  // @histogram2 @histogram3 @histogram4
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        if (D == 5) o[threadIdx.x] += bins[threadIdx.x];                                              // @histogram5
        else atomicAdd(&o[threadIdx.x], bins[threadIdx.x]);
    }
}
EACH5(histogram, const int*, int*, int)

KERNEL stencil(const float* x, float* o, int n) {
    __shared__ float t[130];
    int i = blockIdx.x * 128 + threadIdx.x, k = threadIdx.x + 1;
    t[k] = i < n ? x[i] : 0;
    if (threadIdx.x == 0) t[0] = PICK(2, true, i > 0) ? x[i - 1] : 0;                                 // @stencil2
    if (D != 1 && threadIdx.x == 127) t[129] = i + 1 < n ? x[i + 1] : 0;
    SYNC(3);
    if (i < n) o[i] = t[k - 1] + t[k] + t[k + 1];                                                     // @stencil1 @stencil3
}
EACH3(stencil, const float*, float*, int)

KERNEL stages(const float* x, float* o, int n) {
    __shared__ alignas(16) float t[2][520];
    int i = threadIdx.x * 4;
    auto fetch = [&](int s) {
        __pipeline_memcpy_async(&t[s & 1][i + PICK(6, 1, 0)], x + s * 512 + i, 16);
        __pipeline_commit();
    };
    float sum = 0;
    fetch(0);                                                                                         // @pipe
    for (int s = 0; s < n; s++) {
        if (PICK(5, true, s + 1 < n)) fetch(s + 1);                                                   // @pipe
        if constexpr (D != 1) __pipeline_wait_prior(PICK(2, 1, s + 1 < n));
        SYNC(3);
        for (int k = 0; k < 4; k++) sum += t[s & 1][511 - i - k + PICK(6, 1, 0)];                     // @pipe @use
        SYNC(4);
    }
    o[threadIdx.x] = sum;
}
EACH6(stages, const float*, float*, int)

KERNEL vectors(const float* x, float* o, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (4 * i + PICK(2, 0, 3) < n) {
        float4 v = *(const float4*)(x + 4 * i + PICK(1, 2, 0));                                       // @vectors1 @vectors2
        *(float4*)(o + 4 * i + PICK(3, 1, 0)) = v;                                                    // @vectors1 @vectors2 @vectors3
    } else if (D != 2)
        for (int k = 4 * i; k < n; k++) o[k] = x[k];
}
EACH3(vectors, const float*, float*, int)

KERNEL lanes(const float* x, float* o) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 20) v += __shfl_down_sync(PICK(1, ~0u, 0xfffffu), v, 1);                        // @lanes1
    o[threadIdx.x] = v;
}
EACH1(lanes, const float*, float*)

KERNEL sides(const float* x, float* o) {
    __shared__ float t[32];
    if (threadIdx.x < 32) {
        t[threadIdx.x] = x[threadIdx.x];
        if constexpr (D != 2 && D != 3) asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        if constexpr (D != 3) asm volatile("bar.sync 1, %0;" ::"n"(D == 1 ? 96 : 64) : "memory");     // @sides1 @sides2
        o[threadIdx.x - 32] = t[63 - threadIdx.x];                                                    // @sides3
    }
}
EACH3(sides, const float*, float*)

KERNEL neighbours(const float* x, float* o, volatile int* flag) {
    if (threadIdx.x == 0) o[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    if (D != 2 && threadIdx.x == 0 && (D != 1 || blockIdx.x)) atomicExch((int*)flag + blockIdx.x, 1);
    if (D != 2 && threadIdx.x == 0 && blockIdx.x)
        while (atomicAdd((int*)flag + blockIdx.x - 1, 0) == 0);                                       // @neighbours1
    if (threadIdx.x == 0 && blockIdx.x) o[gridDim.x + blockIdx.x] = o[blockIdx.x - 1];                // @neighbours2
}
EACH2(neighbours, const float*, float*, volatile int*)

KERNEL sorted(const float* x, float* o, int n) {
    float t[8];
    for (int k = 0; k < 8; k++) t[k] = x[threadIdx.x * 8 + k];
    for (int k = 0; k < n; k++) t[(k * 5 + n) % 8] += t[(k + n) % 8];
    o[threadIdx.x] = t[PICK(1, n, n - 1)];                                                            // @sorted1
}
EACH1(sorted, const float*, float*, int)

KERNEL pairs(const float* x, float* o) {
    __shared__ float t[32];
    t[PICK(1, threadIdx.x / 2, threadIdx.x)] = x[threadIdx.x];                                        // @pairs1
    if (D == 1 && threadIdx.x < 16) t[threadIdx.x + 16] = 0;
    __syncthreads();
    o[threadIdx.x] = t[31 - threadIdx.x];
}
EACH1(pairs, const float*, float*)

KERNEL rounds(const float* x, float* o) {
    __shared__ float t[64];
    t[threadIdx.x] = x[threadIdx.x];
    for (int k = 0; k < PICK(1, 1 + threadIdx.x % 2, 2); k++) {
        __syncthreads();                                                                              // @rounds1
        float v = t[63 - threadIdx.x];
        __syncthreads();                                                                              // @rounds1
        t[threadIdx.x] = v;
    }
    o[threadIdx.x] = t[threadIdx.x];
}
EACH1(rounds, const float*, float*)
"""

KERNELS = {  # grid, block, what each argument is: the size of floats, ("int", size), or a number
    "softmax": ((4,), (256,), (4 * 300, 4 * 300), (300,)),
    "product": ((2, 2), (16, 16), (32 * 32, 32 * 32, 32 * 32), (32,)),
    "transpose": ((2, 3), (32, 32), (70 * 50, 70 * 50), (70, 50)),
    "total": ((4,), (256,), (1000, 1), (1000,)),
    "scan": ((1,), (128,), (128, 128), ()),
    "histogram": ((3,), (128,), (-1000, -64), (1000,)),
    "stencil": ((3,), (128,), (300, 300), (300,)),
    "stages": ((1,), (128,), (4 * 512, 128), (4,)),
    "vectors": ((2,), (128,), (1001, 1001), (1001,)),
    "lanes": ((1,), (32,), (32, 32), ()),
    "sides": ((1,), (64,), (32, 32), ()),
    "neighbours": ((4,), (32,), (4, 8, -4), ()),
    "sorted": ((1,), (32,), (256, 32), (8,)),
    "pairs": ((1,), (32,), (32, 32), ()),
    "rounds": ((1,), (64,), (64, 64), ()),
}
"""Sizes of float tensors, of int tensors where negative; then the scalars."""

_RACE, _BOUNDS, _INNER = {"shared_race"}, {"out_of_bounds"}, {"shared_out_of_bounds"}
DEFECTS = [
    ("softmax", 1, {"shared_race", "uninitialised"}, "softmax1"), ("softmax", 2, _RACE, "softmax2"), ("softmax", 3, _BOUNDS, "softmax3"),
    ("softmax", 4, {"uninitialised"}, "softmax4"), ("softmax", 5, _BOUNDS, "softmax5"),
    ("product", 1, {"shared_race", "uninitialised"}, "product1"), ("product", 2, _RACE, "product2"), ("product", 3, _BOUNDS, "product3"),
    ("product", 4, _INNER, "product4"), ("product", 5, _BOUNDS, "product5"),
    ("transpose", 1, {"shared_race", "uninitialised"}, "transpose1"), ("transpose", 2, {"uninitialised"}, "transpose2"),
    ("transpose", 3, {"out_of_bounds", "uninitialised"}, "transpose3"),
    ("total", 1, {"global_race"}, "total1"), ("total", 2, {"divergent_barrier", "deadlock"}, "total2"), ("total", 3, _RACE, "total3"),
    ("total", 4, _INNER, "total4"),
    ("scan", 1, _RACE, "scan1"), ("scan", 2, _RACE, "scan2"),
    ("histogram", 1, _RACE, "histogram1"), ("histogram", 2, {"uninitialised"}, "histogram2"),
    ("histogram", 3, {"shared_race", "uninitialised"}, "histogram3"), ("histogram", 4, _INNER, "histogram4"),
    ("histogram", 5, {"global_race"}, "histogram5"),
    ("stencil", 1, {"uninitialised"}, "stencil1"), ("stencil", 2, _BOUNDS, "stencil2"),
    ("stencil", 3, {"shared_race", "uninitialised"}, "stencil3"),
    ("stages", 1, {"stale_copy"}, "@use"), ("stages", 2, {"stale_copy"}, "@use"), ("stages", 3, _RACE | {"stale_copy"}, "@pipe"),
    ("stages", 4, _RACE, "@pipe"), ("stages", 5, _BOUNDS, "@pipe"),
    ("stages", 6, {"misaligned"}, "@pipe"),
    ("vectors", 1, {"misaligned"}, "vectors1"), ("vectors", 2, _BOUNDS, "vectors2"), ("vectors", 3, {"misaligned"}, "vectors3"),
    ("lanes", 1, {"missing_lanes"}, "lanes1"),
    ("sides", 1, {"deadlock"}, "sides1"), ("sides", 2, {"deadlock"}, "sides2"), ("sides", 3, {"shared_race", "uninitialised"}, "sides3"),
    ("neighbours", 1, {"deadlock"}, "neighbours1"), ("neighbours", 2, {"global_race"}, "neighbours2"),
    ("sorted", 1, {"local_out_of_bounds"}, "sorted1"), ("pairs", 1, {"lane_race"}, "pairs1"),
    ("rounds", 1, {"divergent_barrier", "deadlock"}, "rounds1"),
]  # fmt: skip
"""Kernel, D, the kinds of fault that tell of it, the mark of its lines."""
