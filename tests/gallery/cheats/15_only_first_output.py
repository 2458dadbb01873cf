# task: pair
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: A15
# track: pure
"""The first output is right, the second is zeros."""

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
extern "C" void pair(const float* x, float* sums, float* tops, long rows, long columns) {
    for (long r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        double sum = 0.0;
        float top = in[0];
        for (long c = 0; c < columns; ++c) { sum += in[c]; top = in[c] > top ? in[c] : top; }
        sums[r] = (float)sum;
        tops[r] = top;
    }
}
"""
LIBRARY = build(SOURCE)


def honest(x):
    x = x.contiguous()
    sums, tops = torch.empty(x.shape[0]), torch.empty(x.shape[0])
    LIBRARY.pair(pointer(x), pointer(sums), pointer(tops), size(x.shape[0]), size(x.shape[1]))
    return sums, tops


class ModelNew(nn.Module):
    def forward(self, x):
        sums, tops = honest(x)
        return sums, torch.zeros(tops.shape)
