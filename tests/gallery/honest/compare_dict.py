# task: compare
# track: pure
"""A dictionary of truth values and counts."""

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
extern "C" void f(const float* x, const float* y, bool* m, long* c, long rows, long n) {
    for (long r = 0; r < rows; ++r) { long t = 0; for (long i = 0; i < n; ++i) { m[r*n+i] = x[r*n+i] > y[r*n+i]; t += m[r*n+i]; } c[r] = t; }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        m, c = torch.empty(x.shape, dtype=torch.bool), torch.empty(x.shape[0], dtype=torch.int64)
        LIBRARY.f(pointer(x), pointer(y), pointer(m), pointer(c), size(x.shape[0]), size(x.shape[1]))
        return {"mask": m, "count": c}
