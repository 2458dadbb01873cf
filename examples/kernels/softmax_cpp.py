"""Softmax over the last axis in C++: the model of a Kernelwright C++ kernel file.

One self-contained Python file: the source as a string, a loader of a few lines (plain g++, C ABI, ctypes; the build is cached
by content hash), and `ModelNew`. It needs torch and a C++ compiler, and nothing of Kernelwright.

Schedule: rows are shared out over threads. A row is read from memory once: the first pass finds its maximum and leaves the row
in cache, the second writes exp(x - max) into a scratch row while summing and prefetches the next row, the third scales into the
output, around the caches if the output is large. So 8 bytes per element move through memory, which is all that softmax needs.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#if defined(__SSE__)
#include <immintrin.h>
#endif

// Vectors of the width this CPU has, by the compiler's vector extension: the same code is AVX2, AVX-512 or NEON.
#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif
typedef float vf __attribute__((vector_size(W * 4)));
typedef int32_t vi __attribute__((vector_size(W * 4)));

static inline vf load(const float *p) { vf v; std::memcpy(&v, p, sizeof v); return v; }
static inline void store(float *p, vf v) { std::memcpy(p, &v, sizeof v); }
#if defined(__AVX512F__)
static inline void store_around_cache(float *p, vf v) { _mm512_stream_ps(p, (__m512)v); }
#elif defined(__AVX__)
static inline void store_around_cache(float *p, vf v) { _mm256_stream_ps(p, (__m256)v); }
#else
static inline void store_around_cache(float *p, vf v) { store(p, v); }
#endif
static inline vf maximum(vf a, vf b) { return a > b ? a : b; }

// exp for x <= 0, within 1.1 ulp (measured over [-104, 0]). x = n ln2 + r, |r| <= ln2/2; n by adding and subtracting
// 1.5 * 2^23, which rounds to nearest; then 1 + r + r^2 q(r) with a minimax q. The power of two is applied in two factors,
// so that results below the smallest normal number come out right too; below e^-104 the result is 0 in any case.
static inline vf exp_nonpositive(vf x) {
    const vf magic = vf{} + 12582912.0f;
    vf clamped = maximum(x, vf{} - 104.0f);
    vf n = (clamped * 1.44269504f + magic) - magic;
    vf r = clamped - n * 0.693145751953125f;
    r = r - n * 1.42860677e-6f;
    vf q = vf{} + 1.38144672e-3f;
    q = q * r + 8.36878084e-3f;
    q = q * r + 4.16683927e-2f;
    q = q * r + 0.166665196f;
    q = q * r + 0.49999994f;
    vf p = (q * r) * r + r + 1.0f;
    vi e = __builtin_convertvector(n, vi);
    vi half = e >> 1;
    vf result = p * (vf)((half + 127) << 23) * (vf)((e - half + 127) << 23);
    return x != x ? x : result;  // NaN stays NaN
}

static inline float horizontal_max(vf v) {
    float m = v[0];
    for (int i = 1; i < W; i++) m = v[i] > m ? v[i] : m;
    return m;
}

static inline float horizontal_sum(vf v) {
    float s = 0;
    for (int i = 0; i < W; i++) s += v[i];
    return s;
}

// One row. `next` is the row this thread takes next: it is prefetched while this one is computed, so that memory and
// arithmetic overlap. The exponentials go to `e`: the output row itself, or a scratch row in L1 when the result is
// written around the caches.
static void softmax_row(const float *x, float *e, float *y, const float *next, int64_t n, bool stream) {
    // Pass 1, maximum; four accumulators hide the latency. A NaN is passed over here and comes back through the sum of pass 2.
    vf m0 = vf{} - std::numeric_limits<float>::infinity(), m1 = m0, m2 = m0, m3 = m0;
    int64_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W) {
        m0 = maximum(load(x + i), m0);
        m1 = maximum(load(x + i + W), m1);
        m2 = maximum(load(x + i + 2 * W), m2);
        m3 = maximum(load(x + i + 3 * W), m3);
    }
    float m = horizontal_max(maximum(maximum(m0, m1), maximum(m2, m3)));
    for (; i < n; i++) m = x[i] > m ? x[i] : m;

    // Pass 2, exponentials and their sum.
    const vf vm = vf{} + m;
    vf s0{}, s1{};
    for (i = 0; i + 2 * W <= n; i += 2 * W) {
        __builtin_prefetch(next + i);
        if (W == 16) __builtin_prefetch(next + i + W);
        vf a = exp_nonpositive(load(x + i) - vm), b = exp_nonpositive(load(x + i + W) - vm);
        s0 += a, s1 += b;
        store(e + i, a), store(e + i + W, b);
    }
    float sum = horizontal_sum(s0 + s1);
    if (i < n) {  // the tail, padded with -inf whose exponential is 0
        float in[2 * W], out[2 * W];
        for (int k = 0; k < 2 * W; k++) in[k] = i + k < n ? x[i + k] - m : -std::numeric_limits<float>::infinity();
        for (int k = 0; k < 2 * W; k += W) store(out + k, exp_nonpositive(load(in + k)));
        for (int k = 0; i + k < n; k++) e[i + k] = out[k], sum += out[k];
    }

    // Pass 3, scale from cache.
    const float scale = 1.0f / sum;
    const vf vs = vf{} + scale;
    i = 0;
    if (stream)
        for (; i + W <= n; i += W) store_around_cache(y + i, load(e + i) * vs);
    else
        for (; i + W <= n; i += W) store(y + i, load(e + i) * vs);
    for (; i < n; i++) y[i] = e[i] * scale;
}

extern "C" void softmax(const float *x, float *y, int64_t rows, int64_t columns, int threads) {
    // A result far larger than the caches is written around them: an ordinary store would first read the line it overwrites.
    constexpr int64_t SCRATCH = 8192, LARGE = 16 << 20;
    const bool stream = rows * columns * 4 >= LARGE && columns <= SCRATCH && columns % W == 0 && (uintptr_t)y % (4 * W) == 0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        alignas(64) float scratch[SCRATCH];
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            const float *in = x + row * columns;
            float *out = y + row * columns;
            softmax_row(in, stream ? scratch : out, out, row + 1 < rows ? in + columns : in, columns, stream);
        }
#if defined(__SSE__)
        if (stream) _mm_sfence();
#endif
    }
}
"""

FLAGS = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17", "-fno-math-errno"]
SMALL = 1 << 15  # elements below which waking a second thread costs more than it saves


def build() -> ctypes.CDLL:
    """Compile once per content: the library's name is the hash of source, flags and CPU, so a stale one is never loaded."""
    cpu = Path("/proc/cpuinfo").read_text().split("\n\n")[0] if Path("/proc/cpuinfo").exists() else ""
    flags_line = next((line for line in cpu.splitlines() if line.startswith(("flags", "Features"))), "")
    key = hashlib.sha256("\0".join([SOURCE, *FLAGS, flags_line]).encode()).hexdigest()[:20]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir()) / "kernelwright-kernels"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"softmax-{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, made = Path(work, "kernel.cpp"), Path(work, "kernel.so")
            source.write_text(SOURCE)
            command = [os.environ.get("CXX", "g++"), *FLAGS, str(source), "-o", str(made)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            made.replace(library)  # atomic: two processes may build at the same time
    return ctypes.CDLL(str(library))


_library = build()
_softmax = _library.softmax
_softmax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
_softmax.restype = None


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        columns = x.shape[-1]
        if x.numel():
            threads = 1 if x.numel() < SMALL else torch.get_num_threads()
            _softmax(x.data_ptr(), y.data_ptr(), x.numel() // columns, columns, threads)
        return y
