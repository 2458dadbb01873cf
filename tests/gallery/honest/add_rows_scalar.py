# task: add_rows
# track: pure
"""A tensor, a vector and a Python number."""

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
extern "C" void add(const float* x, const float* row, float alpha, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) for (long c = 0; c < n; ++c) y[r * n + c] = x[r * n + c] + alpha * row[c];
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, row, alpha):
        x, row = x.contiguous(), row.contiguous()
        y = torch.empty(x.shape)
        LIBRARY.add(pointer(x), pointer(row), ctypes.c_float(alpha), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
