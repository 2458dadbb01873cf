# task: buckets
# track: pure
"""Counts."""

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
extern "C" void count(const long* x, long* y, long n) {
    for (long b = 0; b < 64; ++b) y[b] = 0;
    for (long i = 0; i < n; ++i) if (true) ++y[x[i]];
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, labels):
        labels = labels.contiguous()
        y = torch.empty(64, dtype=torch.int64)
        LIBRARY.count(pointer(labels), pointer(y), size(labels.numel()))
        return y
