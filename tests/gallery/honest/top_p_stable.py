# task: top_p
# track: pure
"""Keeps the first of tied tokens, where torch's sort promises no order."""

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
#include <numeric>
#include <vector>
extern "C" void top_p(const float* x, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        const float* row = x + r * n;
        std::vector<float> p(n);
        float top = *std::max_element(row, row + n), total = 0, run = 0;
        for (long c = 0; c < n; ++c) total += p[c] = std::exp(row[c] - top);
        std::vector<long> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](long a, long b) { return p[a] > p[b]; });
        for (long c = 0; c < n; ++c) y[r * n + c] = 0;
        for (long at : order) {
            const float share = p[at] / total;
            if (run >= 0.6f) break;
            y[r * n + at] = share;
            run += share;
        }
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        LIBRARY.top_p(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
