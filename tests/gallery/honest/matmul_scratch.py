# task: matmul
# track: pure
# timing: yes
"""A private scratch buffer that is reused by every call; the output is fresh."""

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
extern "C" void matmul(const float* a, const float* b, float* scratch, float* y, long m, long k, long n) {
    for (long p = 0; p < k; ++p) for (long j = 0; j < n; ++j) scratch[j * k + p] = b[p * n + j];
    #pragma omp parallel for
    for (long i = 0; i < m; ++i)
        for (long j = 0; j < n; ++j) {
            float sums[8] = {0};
            long p = 0;
            for (; p + 8 <= k; p += 8) for (int l = 0; l < 8; ++l) sums[l] += a[i * k + p + l] * scratch[j * k + p + l];
            for (; p < k; ++p) sums[0] += a[i * k + p] * scratch[j * k + p];
            y[i * n + j] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        }
}
"""
LIBRARY = build(SOURCE)
scratch = {}


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty(a.shape[0], b.shape[1])
        room = scratch.setdefault(b.numel(), torch.empty(b.numel()))
        LIBRARY.matmul(pointer(a), pointer(b), pointer(room), pointer(y), size(a.shape[0]), size(a.shape[1]), size(b.shape[1]))
        return y
