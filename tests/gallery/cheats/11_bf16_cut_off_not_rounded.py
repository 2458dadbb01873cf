# task: softmax_bf16
# status: wrong_values
# reason: systematic|wrong
# entry: A11
# track: pure
"""Stores in bfloat16 by cutting bits off: half a rounding too small on the average."""

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
#include <vector>
static float up(uint16_t h) { uint32_t u = (uint32_t)h << 16; float v; memcpy(&v, &u, 4); return v; }
extern "C" void softmax(const uint16_t* x, uint16_t* y, long rows, long columns) {
    for (long r = 0; r < rows; ++r) {
        const uint16_t* in = x + r * columns;
        std::vector<float> out(columns);
        float top = up(in[0]);
        for (long c = 1; c < columns; ++c) top = up(in[c]) > top ? up(in[c]) : top;
        double sum = 0.0;
        for (long c = 0; c < columns; ++c) { out[c] = expf(up(in[c]) - top); sum += out[c]; }
        for (long c = 0; c < columns; ++c) { float v = out[c] / sum; uint32_t u; memcpy(&u, &v, 4); y[r * columns + c] = u >> 16; }
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        LIBRARY.softmax(pointer(x), pointer(y), size(x.numel() // x.shape[-1]), size(x.shape[-1]))
        return y
