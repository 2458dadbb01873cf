# task: matmul
# status: cheating
# reason: librar|operator|aten|torch|compute|blas|mkl|pure
# entry: B20
# track: pure
# timing: yes
"""The same through a C++ object that looks sgemm_ up among the symbols already in the process, and calls it by address."""

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
#include <dlfcn.h>
typedef void (*gemm)(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*, const float*,
                     const int*, const float*, float*, const int*);
static gemm call;
extern "C" int find(const char* path) {
    void* self = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    call = (gemm)dlsym(self ? self : RTLD_DEFAULT, "sgemm_");
    return call != 0;
}
extern "C" void product(const float* a, const float* b, float* y, int m, int k, int n) {
    const float one = 1.0f, zero = 0.0f;
    call("N", "N", &n, &m, &k, &one, b, &n, a, &k, &zero, y, &n);
}
"""
LIBRARY = build(SOURCE, "-ldl")
LIBRARY.find(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so").encode())


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty(a.shape[0], b.shape[1])
        LIBRARY.product(pointer(a), pointer(b), pointer(y), a.shape[0], a.shape[1], b.shape[1])
        return y
