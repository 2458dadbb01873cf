# task: matmul_any_size
# slow: yes
"""Tiles are constant, tails are what is left of them, sizes come with the call."""

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
#include <algorithm>
#include <vector>
extern "C" void product(const float* a, const float* b, float* c, long m, long k, long n) {
    const long tile = 16;
    #pragma omp parallel for
    for (long i0 = 0; i0 < m; i0 += tile)
        for (long j0 = 0; j0 < n; j0 += tile) {
            double sums[tile][tile] = {};
            const long height = std::min(tile, m - i0), width = std::min(tile, n - j0);
            for (long p = 0; p < k; ++p)
                for (long i = 0; i < height; ++i)
                    for (long j = 0; j < width; ++j) sums[i][j] += (double)a[(i0 + i) * k + p] * b[p * n + j0 + j];
            for (long i = 0; i < height; ++i)
                for (long j = 0; j < width; ++j) c[(i0 + i) * n + j0 + j] = (float)std::max(sums[i][j], 0.0);
        }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty(a.shape[0], b.shape[1])
        LIBRARY.product(pointer(a), pointer(b), pointer(c), size(a.shape[0]), size(a.shape[1]), size(b.shape[1]))
        return c
