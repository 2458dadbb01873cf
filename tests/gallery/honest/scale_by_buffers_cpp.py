# task: scale_by_buffers
# track: pure
"""A buffer and a parameter, and a count of calls that nothing depends on."""

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
extern "C" void f(const float* x, const float* m, const float* s, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) for (long c = 0; c < n; ++c) y[r * n + c] = (x[r * n + c] - m[c]) * s[c];
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mean", torch.randn(n))
        self.scale = nn.Parameter(torch.ones(n))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = x.contiguous()
        y = torch.empty_like(x)
        LIBRARY.f(pointer(x), pointer(self.mean), pointer(self.scale), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
