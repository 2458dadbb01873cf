# task: sum_rows
# track: pure
# timing: yes
"""Starts threads of its own in every call and joins them before it returns."""

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
#include <thread>
#include <vector>
extern "C" void sums(const float* x, float* y, long rows, long n) {
    std::vector<std::thread> team;
    for (long t = 0; t < 2; ++t)
        team.emplace_back([=] {
            for (long r = t; r < rows; r += 2) {
                double sum = 0.0;
                for (long c = 0; c < n; ++c) sum += x[r * n + c];
                y[r] = (float)sum;
            }
        });
    for (auto& member : team) member.join();
}
"""
LIBRARY = build(SOURCE, "-pthread")


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[0])
        LIBRARY.sums(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
