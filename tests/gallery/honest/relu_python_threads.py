# task: relu
# track: pure
# timing: yes
"""Parts of the tensor go to threads of Python's own pool."""

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


import concurrent.futures

SOURCE = r"""
extern "C" void relu(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = x[i] != x[i] ? x[i] : (x[i] > 0.0f ? x[i] : 0.0f);
}
"""
LIBRARY = build(SOURCE)
POOL = concurrent.futures.ThreadPoolExecutor(2)


def part(x, y, start, stop):
    LIBRARY.relu(ctypes.c_void_p(x + 4 * start), ctypes.c_void_p(y + 4 * start), size(stop - start))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        jobs = [POOL.submit(part, x.data_ptr(), y.data_ptr(), k * n // 4, (k + 1) * n // 4) for k in range(4)]
        for job in jobs:
            job.result()
        return y
