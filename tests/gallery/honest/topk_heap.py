# task: topk
# track: pure
"""The largest four by a partial sort."""

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
#include <numeric>
#include <vector>
extern "C" void topk(const float* x, float* values, long* places, long rows, long n, long k) {
    std::vector<long> order(n);
    for (long r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [in](long a, long b) { return in[a] > in[b]; });
        for (long i = 0; i < k; ++i) { places[r * k + i] = order[i]; values[r * k + i] = in[order[i]]; }
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        values, places = torch.empty(x.shape[0], 4), torch.empty(x.shape[0], 4, dtype=torch.int64)
        LIBRARY.topk(pointer(x), pointer(values), pointer(places), size(x.shape[0]), size(x.shape[1]), size(4))
        return values, places
