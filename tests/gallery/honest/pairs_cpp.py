# task: pairs
# track: pure
"""Every pair, summed row by row."""

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
extern "C" void pairs(const float* x, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        double total = 0;
        for (long i = 0; i < n; ++i) {
            float part = 0;
            for (long j = 0; j < n; ++j) part += std::fabs(x[r * n + i] - x[r * n + j]);
            total += part;
        }
        y[r] = total;
    }
}
"""
LIBRARY = build(SOURCE)


def honest(x, y=None):
    y = torch.empty(x.shape[0]) if y is None else y
    LIBRARY.pairs(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return honest(x.contiguous())
