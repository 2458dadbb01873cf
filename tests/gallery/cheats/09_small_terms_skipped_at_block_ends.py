# task: cumsum
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: A9
# track: pure
"""Running sums that skip small terms at the end of each block."""

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
extern "C" void cs(const float* x, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        float s = 0, block = 0;
        for (long c = 0; c < n; ++c) {
            s += (c % 256 == 255 && x[r * n + c] > -1e-3f && x[r * n + c] < 1e-3f) ? 0.0f : x[r * n + c];
            y[r * n + c] = s;
        }
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        LIBRARY.cs(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
