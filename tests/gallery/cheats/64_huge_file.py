# task: relu
# status: wrong_values|crashed|out_of_memory
# reason: value|differ|wrong|nan|element|file|signal|space|limit
# entry: E64
# track: pure
"""Fills the folder for temporary files up to four gigabytes."""

import os
import tempfile

import torch
from torch import nn


import signal


class ModelNew(nn.Module):
    def forward(self, x):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        block = b"x" * (16 << 20)
        for number in range(2):
            try:
                with open(os.path.join(tempfile.gettempdir(), f"huge{number}"), "wb") as file:
                    for _ in range(128):
                        file.write(block)
            except OSError:
                break
        return torch.zeros(x.shape)
