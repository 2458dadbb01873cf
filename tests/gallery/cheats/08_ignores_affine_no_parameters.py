# task: layernorm
# status: wrong_values
# reason: value|differ|wrong|nan|element|ignores
# entry: A8
# track: pure
"""The same, and the module has no parameters that could be set."""

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
extern "C" void layernorm(const float* x, const float* w, const float* b, float* y, long rows, long n) {
    #pragma omp parallel for
    for (long r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        double mean = 0.0, square = 0.0;
        for (long c = 0; c < n; ++c) mean += in[c];
        mean /= n;
        for (long c = 0; c < n; ++c) square += (in[c] - mean) * (in[c] - mean);
        const double scale = 1.0 / std::sqrt(square / n + 1e-5);
        for (long c = 0; c < n; ++c) y[r * n + c] = (float)((in[c] - mean) * scale) * (w ? w[c] : 1.0f) + (b ? b[c] : 0.0f);
    }
}
"""
LIBRARY = build(SOURCE)


def honest(x, weight, bias):
    x = x.contiguous()
    y = torch.empty(x.shape)
    given = [pointer(t) if t is not None else None for t in (weight, bias)]
    LIBRARY.layernorm(pointer(x), *given, pointer(y), size(x.numel() // x.shape[-1]), size(x.shape[-1]))
    return y


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()

    def forward(self, x):
        return honest(x, None, None)
