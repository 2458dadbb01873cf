# task: mean_noise
# track: pure
"""The mean of noise with sixteen float32 lanes: cancellation, but an honest sum."""

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
extern "C" void mean(const float* x, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        float lanes[16] = {0}, sum = 0.0f;
        long c = 0;
        for (; c + 16 <= n; c += 16) for (int l = 0; l < 16; ++l) lanes[l] += x[r * n + c + l];
        for (; c < n; ++c) sum += x[r * n + c];
        for (int l = 0; l < 16; ++l) sum += lanes[l];
        y[r] = sum / n;
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[0])
        LIBRARY.mean(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
