# task: linear
# track: pure
"""Packs into a workspace in every call, kept as long as its module lives."""

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


import weakref

SOURCE = r"""
extern "C" void pack(const float* w, float* p, long n, long k) { for (long j = 0; j < n; ++j) for (long i = 0; i < k; ++i) p[i * n + j] = w[j * k + i]; }
extern "C" void linear(const float* x, const float* packed, const float* b, float* y, long m, long k, long n) {
    #pragma omp parallel for
    for (long i = 0; i < m; ++i) {
        for (long j = 0; j < n; ++j) y[i * n + j] = b[j];
        for (long p = 0; p < k; ++p) for (long j = 0; j < n; ++j) y[i * n + j] += x[i * k + p] * packed[p * n + j];
    }
}
"""
LIBRARY = build(SOURCE)
WORK = weakref.WeakKeyDictionary()


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        w, b = self.linear.weight, self.linear.bias
        n, k = w.shape
        if self not in WORK:
            WORK[self] = torch.empty(k, n)
        LIBRARY.pack(pointer(w), pointer(WORK[self]), size(n), size(k))
        x = x.contiguous()
        y = x.new_empty(x.shape[0], n)
        LIBRARY.linear(pointer(x), pointer(WORK[self]), pointer(b), pointer(y), size(x.shape[0]), size(k), size(n))
        return y
