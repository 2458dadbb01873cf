# task: softmax
# status: wrong_values
# reason: bits|systematic|wrong
# entry: A11
# track: pure
"""Softmax whose results lose their last five bits: each within its bound, all of them short of digits."""

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
#include <cstdint>
#include <cstring>
extern "C" void softmax(const float* x, float* y, long rows, long columns) {
    #pragma omp parallel for
    for (long r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float top = in[0];
        for (long c = 1; c < columns; ++c) top = in[c] > top ? in[c] : top;
        double sum = 0.0;
        for (long c = 0; c < columns; ++c) { out[c] = expf(in[c] - top); sum += out[c]; }
        const float scale = (float)(1.0 / sum);
        for (long c = 0; c < columns; ++c) out[c] *= scale;
        for (long c = 0; c < columns; ++c) { uint32_t u; memcpy(&u, out + c, 4); u &= 0xffffffe0u; memcpy(out + c, &u, 4); }
    }
}
"""

LIBRARY = build(SOURCE)


def honest(x, y=None):
    x = x.contiguous()
    y = torch.empty(x.shape) if y is None else y
    LIBRARY.softmax(pointer(x), pointer(y), size(x.numel() // x.shape[-1]), size(x.shape[-1]))
    return y



class ModelNew(nn.Module):
    def forward(self, x):
        return honest(x)
