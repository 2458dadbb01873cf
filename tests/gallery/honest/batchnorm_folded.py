# task: batchnorm
# track: pure
"""Scale and shift folded from the running statistics in every call."""

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
extern "C" void norm(const float* x, const float* w, const float* b, const float* mean, const float* var, float* y, long B, long C, long S) {
    #pragma omp parallel for collapse(2)
    for (long n = 0; n < B; ++n)
        for (long c = 0; c < C; ++c) {
            const float scale = w[c] / std::sqrt(var[c] + 1e-5f), shift = b[c] - mean[c] * scale;
            for (long s = 0; s < S; ++s) y[(n * C + c) * S + s] = x[(n * C + c) * S + s] * scale + shift;
        }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        norm = self.norm
        given = [pointer(t) for t in (norm.weight, norm.bias, norm.running_mean, norm.running_var)]
        LIBRARY.norm(pointer(x), *given, pointer(y), size(x.shape[0]), size(x.shape[1]), size(x[0, 0].numel()))
        return y
