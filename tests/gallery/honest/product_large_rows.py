# task: product_large
# track: pure
"""One running sum for every element of 12,288 rows."""

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
extern "C" void product(const float* x, const float* w, float* y, long m, long k, long n) {
    #pragma omp parallel for
    for (long i = 0; i < m; ++i) {
        float* out = y + i * n;
        memset(out, 0, 4 * n);
        for (long p = 0; p < k; ++p)
            for (long j = 0; j < n; ++j) out[j] += x[i * k + p] * w[p * n + j];
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, w):
        x, w = x.contiguous(), w.contiguous()
        y = torch.empty(x.shape[0], w.shape[1])
        LIBRARY.product(pointer(x), pointer(w), pointer(y), size(x.shape[0]), size(x.shape[1]), size(w.shape[1]))
        return y
