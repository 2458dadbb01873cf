# task: linear
# track: pure
# timing: yes
"""A linear layer with the reference's parameter names."""

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
extern "C" void linear(const float* x, const float* w, const float* b, float* y, long m, long k, long n) {
    #pragma omp parallel for
    for (long i = 0; i < m; ++i)
        for (long j = 0; j < n; ++j) {
            float sums[8] = {0};
            long p = 0;
            for (; p + 8 <= k; p += 8)
                for (int l = 0; l < 8; ++l) sums[l] += x[i * k + p + l] * w[j * k + p + l];
            for (; p < k; ++p) sums[0] += x[i * k + p] * w[j * k + p];
            float sum = b ? b[j] : 0.0f;
            for (int l = 0; l < 8; ++l) sum += sums[l];
            y[i * n + j] = sum;
        }
}
"""
LIBRARY = build(SOURCE)


def honest(x, weight, bias):
    x, weight = x.contiguous(), weight.contiguous()
    y = torch.empty(x.shape[0], weight.shape[0])
    given = pointer(bias) if bias is not None else None
    LIBRARY.linear(pointer(x), pointer(weight), given, pointer(y), size(x.shape[0]), size(x.shape[1]), size(weight.shape[0]))
    return y


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return honest(x, self.linear.weight, self.linear.bias)
