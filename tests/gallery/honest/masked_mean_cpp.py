# task: masked_mean
# track: pure
"""As many elements as the length says."""

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
extern "C" void means(const float* x, const long* lengths, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        const long length = lengths[r];
        float total = 0;
        for (long c = 0; c < length; ++c) total += x[r * n + c];
        y[r] = total / (length > 1 ? length : 1);
    }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        x, lengths = x.contiguous(), lengths.contiguous()
        y = torch.empty(x.shape[0])
        LIBRARY.means(pointer(x), pointer(lengths), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
