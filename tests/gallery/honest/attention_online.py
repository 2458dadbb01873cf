# task: attention
# track: pure
"""Attention with an online softmax, one query at a time."""

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
extern "C" void attention(const float* q, const float* k, const float* v, float* y, long heads, long s, long d) {
    const float scale = 1.0f / std::sqrt((float)d);
    #pragma omp parallel for
    for (long h = 0; h < heads; ++h)
        for (long i = 0; i < s; ++i) {
            const float* query = q + (h * s + i) * d;
            float* out = y + (h * s + i) * d;
            float top = -INFINITY, sum = 0.0f;
            for (long c = 0; c < d; ++c) out[c] = 0.0f;
            for (long j = 0; j < s; ++j) {
                const float *key = k + (h * s + j) * d, *value = v + (h * s + j) * d;
                float score = 0.0f;
                for (long c = 0; c < d; ++c) score += query[c] * key[c];
                score *= scale;
                const float next = fmaxf(top, score), old = expf(top - next), fresh = expf(score - next);
                sum = sum * old + fresh;
                for (long c = 0; c < d; ++c) out[c] = out[c] * old + fresh * value[c];
                top = next;
            }
            for (long c = 0; c < d; ++c) out[c] /= sum;
        }
}
"""
LIBRARY = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        y = torch.empty(q.shape)
        b, h, s, d = q.shape
        LIBRARY.attention(pointer(q), pointer(k), pointer(v), pointer(y), size(b * h), size(s), size(d))
        return y
