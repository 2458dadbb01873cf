# task: rnn
# track: pure
"""Two outputs, and a workspace that is a buffer of the module which is not saved."""

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
extern "C" void rnn(const float* x, const float* h0, const float* wi, const float* bi, const float* wh, float* y, float* last, float* work, long batch, long steps, long a, long b) {
    for (long n = 0; n < batch; ++n) {
        float* h = work;
        for (long j = 0; j < b; ++j) h[j] = h0[n * b + j];
        for (long t = 0; t < steps; ++t) {
            float* o = y + (n * steps + t) * b;
            for (long j = 0; j < b; ++j) {
                float s = bi[j];
                for (long p = 0; p < a; ++p) s += x[(n * steps + t) * a + p] * wi[j * a + p];
                for (long p = 0; p < b; ++p) s += h[p] * wh[j * b + p];
                o[j] = tanhf(s);
            }
            for (long j = 0; j < b; ++j) h[j] = o[j];
        }
        for (long j = 0; j < b; ++j) last[n * b + j] = h[j];
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.i = nn.Linear(a, b)
        self.h = nn.Linear(b, b, bias=False)
        self.register_buffer("work", torch.zeros(b), persistent=False)

    def forward(self, x, h):
        x, h = x.contiguous(), h.contiguous()
        y, last = torch.empty(x.shape[0], x.shape[1], h.shape[1]), torch.empty_like(h)
        parts = (x, h, self.i.weight, self.i.bias, self.h.weight, y, last, self.work)
        LIBRARY.rnn(*map(pointer, parts), *map(size, (x.shape[0], x.shape[1], x.shape[2], h.shape[1])))
        return y, last
