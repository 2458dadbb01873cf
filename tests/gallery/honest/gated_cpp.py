# task: gated
# track: pure
"""Several parameters and a buffer under the reference's names, constructed with keywords; dropout is off."""

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
#include <cmath>
extern "C" void gated(const float* x, const float* g, const float* u, const float* bias, const float* mask, float* y, long m, long k, long n) {
    for (long i = 0; i < m; ++i)
        for (long j = 0; j < n; ++j) {
            float gate = 0.0f, up = bias[j];
            for (long p = 0; p < k; ++p) { gate += x[i * k + p] * g[j * k + p]; up += x[i * k + p] * u[j * k + p]; }
            y[i * n + j] = gate / (1.0f + expf(-gate)) * up * mask[j];
        }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden)
        self.register_buffer("mask", torch.ones(hidden))

    def forward(self, x):
        x = x.contiguous()
        n, k = self.up.weight.shape
        y = torch.empty(x.shape[0], n)
        given = [pointer(t) for t in (x, self.gate.weight, self.up.weight, self.up.bias, self.mask, y)]
        LIBRARY.gated(*given, size(x.shape[0]), size(k), size(n))
        return y
