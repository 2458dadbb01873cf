# task: softmax
# track: pure
# timing: yes
"""Native threads that are made once and wait at a condition variable."""

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
#include <thread>
#include <mutex>
#include <condition_variable>
#include <vector>
#include <functional>
struct Pool {
    std::mutex m; std::condition_variable go, done; long round = 0, left = 0; std::function<void(int)> job; std::vector<std::thread> t; bool stop = false;
    Pool(int n) { for (int i = 0; i < n; ++i) t.emplace_back([this, i] { long seen = 0; for (;;) { std::unique_lock<std::mutex> l(m); go.wait(l, [&] { return stop || round != seen; }); if (stop) return; seen = round; l.unlock(); job(i); l.lock(); if (--left == 0) done.notify_one(); } }); }
    void run(std::function<void(int)> f) { std::unique_lock<std::mutex> l(m); job = f; left = t.size(); ++round; go.notify_all(); done.wait(l, [&] { return left == 0; }); }
};
static Pool* pool = new Pool(2);
extern "C" void softmax(const float* x, float* y, long rows, long columns) {
    pool->run([&](int part) {
        for (long r = part * rows / 2; r < (part + 1) * rows / 2; ++r) {
            const float* in = x + r * columns; float* out = y + r * columns;
            float top = in[0];
            for (long c = 1; c < columns; ++c) top = in[c] > top ? in[c] : top;
            float sum = 0.0f;
            for (long c = 0; c < columns; ++c) { out[c] = expf(in[c] - top); sum += out[c]; }
            for (long c = 0; c < columns; ++c) out[c] /= sum;
        }
    });
}
"""
LIBRARY = build(SOURCE, "-pthread")


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape)
        LIBRARY.softmax(pointer(x), pointer(y), size(x.shape[0]), size(x.shape[1]))
        return y
