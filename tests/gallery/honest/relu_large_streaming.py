# task: relu_large
# track: pure
# timing: yes
"""Streaming stores on 64 MB."""

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
#include <immintrin.h>
#include <cstdint>
extern "C" void relu(const float* x, float* y, long n) {
    #pragma omp parallel for
    for (long block = 0; block < (n + 65535) / 65536; ++block) {
        long i = block * 65536, stop = i + 65536 < n ? i + 65536 : n;
        for (; i < stop && ((uintptr_t)(y + i) & 31); ++i) y[i] = x[i] != x[i] || x[i] > 0 ? x[i] : 0;
        for (; i + 8 <= stop; i += 8) { __m256 v = _mm256_loadu_ps(x + i); _mm256_stream_ps(y + i, _mm256_max_ps(_mm256_setzero_ps(), v)); }
        for (; i < stop; ++i) y[i] = x[i] != x[i] || x[i] > 0 ? x[i] : 0;
    }
    _mm_sfence();
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        LIBRARY.relu(pointer(x), pointer(y), size(x.numel()))
        return y
