# task: gelu_shapes
# status: wrong_values|wrong_shape|crashed
# reason: value|differ|wrong|nan|element|shape|signal|crash
# entry: A10
# track: pure
"""Only knows the first shape of a task with several: the rest of the output is what it was."""

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
extern "C" void gelu(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = (float)(0.5 * x[i] * (1.0 + std::erf(x[i] * 0.70710678118654752)));
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.zeros(x.shape)
        LIBRARY.gelu(pointer(x), pointer(y), size(min(x.numel(), 1024)))
        if x.numel() == 128 * 1024:
            LIBRARY.gelu(pointer(x), pointer(y), size(x.numel()))
        return y
