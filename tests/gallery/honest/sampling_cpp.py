# task: sampling
# track: pure
"""Cumulative sums in one float, searched one by one: now and then a neighbour of what torch draws."""

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
#include <vector>
extern "C" void sampling(const float* x, const float* u, long* y, long rows, long n, long draws) {
    #pragma omp parallel for
    for (long r = 0; r < rows; ++r) {
        std::vector<float> steps(n);
        float top = x[r * n], total = 0;
        for (long c = 1; c < n; ++c) top = x[r * n + c] > top ? x[r * n + c] : top;
        for (long c = 0; c < n; ++c) total += std::exp(x[r * n + c] - top);
        float run = 0;
        for (long c = 0; c < n; ++c) steps[c] = run += std::exp(x[r * n + c] - top) / total;
        for (long d = 0; d < draws; ++d) {
            long at = 0;
            while (at < n - 1 && steps[at] < u[r * draws + d]) ++at;
            y[r * draws + d] = at;
        }
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, u):
        x, u = x.contiguous(), u.contiguous()
        y = torch.empty(u.shape, dtype=torch.int64)
        LIBRARY.sampling(pointer(x), pointer(u), pointer(y), size(x.shape[0]), size(x.shape[1]), size(u.shape[1]))
        return y
