# task: matmul_small
# track: pure
# timing: yes
"""A small product, in plain loops."""

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
extern "C" void matmul(const float* a, const float* b, float* y, long m, long k, long n) {
    for (long i = 0; i < m; ++i) {
        float* out = y + i * n;
        for (long j = 0; j < n; ++j) out[j] = 0.0f;
        for (long p = 0; p < k; ++p) for (long j = 0; j < n; ++j) out[j] += a[i * k + p] * b[p * n + j];
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty(a.shape[0], b.shape[1])
        LIBRARY.matmul(pointer(a), pointer(b), pointer(y), size(a.shape[0]), size(a.shape[1]), size(b.shape[1]))
        return y
