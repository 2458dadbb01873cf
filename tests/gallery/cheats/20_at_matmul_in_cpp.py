# task: matmul
# status: cheating
# reason: librar|operator|aten|torch|compute|blas|mkl|pure
# entry: B20
# track: pure
# slow: yes
"""at::matmul inside an extension built by load_inline."""

import torch
from torch import nn


from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor product(torch::Tensor a, torch::Tensor b) { return at::matmul(a, b); }
"""
EXTENSION = load_inline(name="cheat_at_matmul", cpp_sources=SOURCE, functions=["product"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return EXTENSION.product(a, b)
