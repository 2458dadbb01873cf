# task: linear
# track: pure
"""Packs when weights are loaded, by a hook of load_state_dict."""

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
extern "C" void linear(const float* x, const float* packed, const float* b, float* y, long m, long k, long n) {
    #pragma omp parallel for
    for (long i = 0; i < m; ++i) {
        for (long j = 0; j < n; ++j) y[i * n + j] = b[j];
        for (long p = 0; p < k; ++p) for (long j = 0; j < n; ++j) y[i * n + j] += x[i * k + p] * packed[p * n + j];
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.register_load_state_dict_post_hook(lambda module, _: module.pack())
        self.pack()

    def pack(self):
        self.packed = self.linear.weight.detach().t().contiguous()

    def forward(self, x):
        k, n = self.packed.shape
        x = x.contiguous()
        y = x.new_empty(x.shape[0], n)
        LIBRARY.linear(
            pointer(x), pointer(self.packed), pointer(self.linear.bias), pointer(y), size(x.shape[0]), size(k), size(n)
        )
        return y
