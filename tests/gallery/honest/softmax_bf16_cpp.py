# task: softmax_bf16
# track: pure
"""bfloat16 in and out, float32 between."""

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
static float widen(uint16_t h) { uint32_t u = (uint32_t)h << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t narrow(float f) { uint32_t u; memcpy(&u, &f, 4); return f != f ? 0x7fc0 : (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16); }
extern "C" void softmax(const uint16_t* x, uint16_t* y, long rows, long n) {
    std::vector<float> row(n);
    for (long r = 0; r < rows; ++r) {
        float top = -INFINITY, sum = 0.0f;
        for (long c = 0; c < n; ++c) top = fmaxf(top, widen(x[r * n + c]));
        for (long c = 0; c < n; ++c) sum += row[c] = expf(widen(x[r * n + c]) - top);
        for (long c = 0; c < n; ++c) y[r * n + c] = narrow(row[c] / sum);
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape, dtype=torch.bfloat16)
        LIBRARY.softmax(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
