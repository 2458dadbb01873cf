"""What the scripted models say: a task that the built-in mind cannot capture, sketches and kernels for it, right and wrong."""

from __future__ import annotations

TASK = '''
import torch
from torch import nn

class Model(nn.Module):
    """The branch depends on data, which torch.export does not capture: the built-in mind has no kernel for it."""

    def forward(self, x):
        if x.sum() > 0:
            return torch.relu(x) * 2.0
        return torch.relu(x) * 3.0

def get_inputs():
    return [torch.randn(16, 64)]
'''

SOFTMAX = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)

def get_inputs():
    return [torch.randn(8, 64)]
"""

SKETCH = '''"""Rows by the sign of the total."""

name = "branch"

M = size(16)
N = size(64)

x = tensor([M, N], f32, role="input", source="0")
total = tensor([1, 1], f32, role="temp")
y = tensor([M, N], f32, role="output")

@kernel
def add_up():
    t = load(x[:, :])
    store(total[:, :], reduce_sum(reduce_sum(t, axis=1), axis=0))

@kernel
def scale():
    for i in parallel(0, M):
        factor = where(load(total[:, :]) > 0.0, full([1, 1], 2.0, f32), full([1, 1], 3.0, f32))
        store(y[i:i + 1, :], maximum(load(x[i:i + 1, :]), 0.0) * factor)

returns("y")
'''
MALFORMED = SKETCH.replace("reduce_sum(t, axis=1)", "reduce_sum(t, axis=5)")
MISDESIGNED = SKETCH.replace("> 0.0, full", "< 0.0, full")

KERNEL = '''import ctypes, os, subprocess, tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
extern "C" void branch(const float* x, float* y, int64_t n) {
    double total = 0.0;
    for (int64_t i = 0; i < n; i++) total += x[i];
    const float factor = total > 0.0 ? 2.0f : 3.0f;
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] > 0.0f || x[i] != x[i] ? x[i] : 0.0f) * factor;
}
"""


def _build():
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "kernel.cpp"), "w") as file:
        file.write(SOURCE)
    made = os.path.join(folder, "kernel.so")
    done = subprocess.run(
        ["g++", "-O3", "-march=native", "-shared", "-fPIC", os.path.join(folder, "kernel.cpp"), "-o", made],
        capture_output=True, text=True,
    )
    if done.returncode:
        raise RuntimeError("the C++ source does not compile:\\n" + done.stderr)
    return ctypes.CDLL(made)


_branch = _build().branch
_branch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
_branch.restype = None


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        _branch(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''
BROKEN = KERNEL.replace("double total = 0.0;", "double totl = 0.0;")
PATCH = """The variable is misspelt.

<<<<<<< SEARCH
    double totl = 0.0;
=======
    double total = 0.0;
>>>>>>> REPLACE
"""
CHEAT = """import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x) * (2.0 if x.sum() > 0 else 3.0)
"""
ZEROS = """import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
"""


def block(code: str, said: str = "Here it is.") -> str:
    """An answer with a code block."""
    return f"{said}\n\n```python\n{code}```\n"
