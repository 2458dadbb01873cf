# task: int8_linear
# track: pure
"""Products of 8-bit integers in 32-bit sums."""

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
#include <cstdint>
extern "C" void f(const int8_t* x, const int8_t* w, const float* s, float* y, long m, long k, long n) {
    #pragma omp parallel for
    for (long i = 0; i < m; ++i) for (long j = 0; j < n; ++j) {
        int32_t t = 0;
        for (long p = 0; p < k; ++p) t += (int32_t)x[i * k + p] * w[j * k + p];
        y[i * n + j] = (float)t * s[j];
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, w, s):
        x, w, s = x.contiguous(), w.contiguous(), s.contiguous()
        y = torch.empty(x.shape[0], w.shape[0])
        LIBRARY.f(pointer(x), pointer(w), pointer(s), pointer(y), size(x.shape[0]), size(x.shape[1]), size(w.shape[0]))
        return y
