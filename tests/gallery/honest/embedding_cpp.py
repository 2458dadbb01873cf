# task: embedding
# track: pure
"""Rows copied by index."""

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
#include <cstring>
extern "C" void pick(const long* ids, const float* table, float* y, long count, long width) {
    for (long i = 0; i < count; ++i) memcpy(y + i * width, table + ids[i] * width, width * sizeof(float));
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, ids):
        ids = ids.contiguous()
        table = self.table.weight
        y = torch.empty(*ids.shape, table.shape[1])
        LIBRARY.pick(pointer(ids), pointer(table), pointer(y), size(ids.numel()), size(table.shape[1]))
        return y
