# task: sort_rows
# track: pure
"""An unstable sort: equals come in any order."""

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
#include <algorithm>
#include <vector>
#include <cmath>
extern "C" void f(const float* x, float* v, long* p, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        std::vector<long> o(n); for (long i = 0; i < n; ++i) o[i] = i;
        const float* in = x + r * n;
        std::sort(o.begin(), o.end(), [&](long a, long b) { bool na = in[a] != in[a], nb = in[b] != in[b]; if (na || nb) return na && !nb; return in[a] > in[b]; });
        for (long i = 0; i < n; ++i) { p[r * n + i] = o[i]; v[r * n + i] = in[o[i]]; }
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        v, p = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)
        LIBRARY.f(pointer(x), pointer(v), pointer(p), size(x.shape[0]), size(x.shape[1]))
        return v, p
