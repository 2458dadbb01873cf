# task: matmul
# track: pure
"""The inner loop is inline assembly."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn


def build(source, *flags):
    """Compile C++ to a shared object in the folder for temporary files, once for each source."""
    name = os.path.join(tempfile.gettempdir(), "gallery_" + hashlib.sha256((source + repr(flags)).encode()).hexdigest()[:16])
    if not os.path.exists(name + ".so"):
        with open(name + ".cpp", "w") as file:
            file.write(source)
        command = ["g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", *flags, name + ".cpp", "-o", name + ".part"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        os.replace(name + ".part", name + ".so")
    return ctypes.CDLL(name + ".so")


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def size(value):
    return ctypes.c_long(value)


SOURCE = r"""
#include <cstring>
#include <cstdint>
#include <cmath>
static inline float low(float v) { uint32_t u; memcpy(&u, &v, 4); u = (u + 0x8000u) & 0xffff0000u; memcpy(&v, &u, 4); return v; }
extern "C" void mm(const float* a, const float* b, float* y, long m, long k, long n) {
    #pragma omp parallel for
    for (long i = 0; i < m; ++i) {
        for (long j = 0; j < n; ++j) y[i * n + j] = 0;
        for (long p = 0; p < k; ++p) {
            float v = a[i * k + p];
            
            long j = 0;
            for (; j + 8 <= n; j += 8) {
                const float* q = b + p * n + j; float* o = y + i * n + j;
                asm volatile("vbroadcastss %1, %%ymm0\n\tvmovups (%0), %%ymm1\n\tvfmadd231ps (%2), %%ymm0, %%ymm1\n\tvmovups %%ymm1, (%0)" :: "r"(o), "m"(v), "r"(q) : "ymm0", "ymm1", "memory");
            }
            for (; j < n; ++j) y[i * n + j] += v * b[p * n + j];
        }
        
    }
}
"""
LIBRARY = build(SOURCE)


def honest(a, b):
    a, b = a.contiguous(), b.contiguous()
    y = torch.empty(a.shape[0], b.shape[1])
    LIBRARY.mm(pointer(a), pointer(b), pointer(y), size(a.shape[0]), size(a.shape[1]), size(b.shape[1]))
    return y


class ModelNew(nn.Module):
    def forward(self, a, b):
        return honest(a, b)
