# task: softmax
# track: pure
"""Online softmax: maximum and sum in one pass, in float32."""

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
extern "C" void softmax(const float* x, float* y, long rows, long n) {
    #pragma omp parallel for
    for (long r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float top = -INFINITY, sum = 0.0f;
        for (long c = 0; c < n; ++c) {
            if (in[c] > top) { sum = sum * expf(top - in[c]) + 1.0f; top = in[c]; }
            else sum += expf(in[c] - top);
        }
        for (long c = 0; c < n; ++c) y[r * n + c] = expf(in[c] - top) / sum;
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        LIBRARY.softmax(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
