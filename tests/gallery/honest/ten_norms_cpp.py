# task: ten_norms
# track: pure
"""Ten steps in one pass over each row."""

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
extern "C" void ten(const float* x, float* y, long rows, long n) {
    #pragma omp parallel for
    for (long r = 0; r < rows; ++r) {
        float* row = y + r * n;
        for (long c = 0; c < n; ++c) row[c] = x[r * n + c];
        for (int step = 0; step < 10; ++step) {
            float mean = 0, square = 0;
            for (long c = 0; c < n; ++c) mean += row[c];
            mean /= n;
            for (long c = 0; c < n; ++c) { row[c] -= mean; square += row[c] * row[c]; }
            const float scale = 1.0f / std::sqrt(square / n + 1e-5f);
            for (long c = 0; c < n; ++c) { const float v = row[c] * scale; row[c] = v + 0.1f * v * v * v; }
        }
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        LIBRARY.ten(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
