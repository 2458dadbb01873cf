# task: total
# track: pure
"""A fast sum of a large input: where the input is not contiguous, copying it takes longer than the sum itself."""

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
extern "C" void total(const float* x, float* y, long n) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (long block = 0; block < n / 4096; ++block) {
        float part = 0;
        #pragma omp simd reduction(+ : part)
        for (long c = 0; c < 4096; ++c) part += x[block * 4096 + c];
        sum += part;
    }
    for (long c = n / 4096 * 4096; c < n; ++c) sum += x[c];
    *y = float(sum);
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(())
        LIBRARY.total(pointer(x), pointer(y), size(x.numel()))
        return y
