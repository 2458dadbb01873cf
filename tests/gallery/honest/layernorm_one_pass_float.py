# task: layernorm
# track: pure
"""Mean and variance in one pass with Welford's update, all in float32."""

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
    for (long r = 0; r < rows; ++r) {
        float mean = 0.0f, square = 0.0f;
        for (long c = 0; c < n; ++c) {
            const float d = x[r * n + c] - mean;
            mean += d / (c + 1);
            square += d * (x[r * n + c] - mean);
        }
        const float scale = 1.0f / std::sqrt(square / n + 1e-5f);
        for (long c = 0; c < n; ++c) y[r * n + c] = (x[r * n + c] - mean) * scale * w[c] + b[c];
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        given = pointer(self.norm.weight), pointer(self.norm.bias)
        LIBRARY.layernorm(pointer(x), *given, pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
