# task: gelu_bf16
# track: pure
"""Bfloat16 in and out, computed in single precision and rounded to nearest even."""

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
extern "C" void f(const uint16_t* x, uint16_t* y, long n) {
    #pragma omp parallel for
    for (long i = 0; i < n; ++i) {
        uint32_t u = (uint32_t)x[i] << 16; float v; memcpy(&v, &u, 4);
        v = 0.5f * v * (1.0f + erff(v * 0.70710678f));
        memcpy(&u, &v, 4);
        y[i] = v != v ? 0x7fc0 : (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        LIBRARY.f(pointer(x), pointer(y), size(x.numel()))
        return y
