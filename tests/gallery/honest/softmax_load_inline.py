# task: softmax
# track: pure
# slow: yes
"""A C++ extension built by torch's own load_inline, with the tensor's data pointer."""

import torch
from torch import nn


from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
torch::Tensor softmax(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty(x.sizes(), x.options());
    const long rows = x.size(0), n = x.size(1);
    for (long r = 0; r < rows; ++r) {
        const float* in = x.data_ptr<float>() + r * n;
        float* out = y.data_ptr<float>() + r * n;
        float top = in[0];
        for (long c = 1; c < n; ++c) top = std::max(top, in[c]);
        double sum = 0.0;
        for (long c = 0; c < n; ++c) sum += out[c] = std::exp(in[c] - top);
        for (long c = 0; c < n; ++c) out[c] = (float)(out[c] / sum);
    }
    return y;
}
"""
EXTENSION = load_inline(name="honest_softmax", cpp_sources=SOURCE, functions=["softmax"])


class ModelNew(nn.Module):
    def forward(self, x):
        return EXTENSION.softmax(x)
