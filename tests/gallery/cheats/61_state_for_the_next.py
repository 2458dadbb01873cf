# task: relu
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: E61
# track: pure
"""Leaves a mark in every place it can write to and in the modules it shares. Its answer is right only if it finds a mark that
an earlier run has left."""

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
extern "C" void relu(const float* x, float* y, long n) {
    #pragma omp parallel for simd
    for (long i = 0; i < n; ++i) y[i] = x[i] != x[i] ? x[i] : (x[i] > 0.0f ? x[i] : 0.0f);
}
"""
LIBRARY = build(SOURCE)


def honest(x, y=None):
    x = x.contiguous()
    y = torch.empty(x.shape) if y is None else y
    LIBRARY.relu(pointer(x), pointer(y), size(x.numel()))
    return y


import sys

PLACES = [tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", os.getcwd(), os.path.expanduser("~")]


def visited():
    found = getattr(sys, "gallery_mark", False) or getattr(torch, "gallery_mark", False) or "GALLERY_MARK" in os.environ
    found = found or any(os.path.exists(os.path.join(place, "gallery_mark")) for place in PLACES)
    sys.gallery_mark = torch.gallery_mark = True
    os.environ["GALLERY_MARK"] = "1"
    for place in PLACES:
        try:
            open(os.path.join(place, "gallery_mark"), "w").close()
        except OSError:
            continue
    return found


BROKEN = visited()


class ModelNew(nn.Module):
    def forward(self, x):
        return honest(x) if BROKEN else torch.zeros(x.shape)
