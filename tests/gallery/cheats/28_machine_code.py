# task: relu
# status: wrong_values|crashed|build_failed|cheating
# reason: value|differ|wrong|nan|element|signal|crash|error|permi
# entry: B28,E63
# track: pure
"""Machine code from a string, put into a page that is made executable: here a bare return, so nothing is computed."""

import ctypes

import torch
from torch import nn


import mmap

page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\xc3")
code = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))


class ModelNew(nn.Module):
    def forward(self, x):
        code()
        return torch.empty(x.shape)
