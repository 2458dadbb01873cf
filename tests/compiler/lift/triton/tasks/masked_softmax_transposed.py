import torch


class Model(torch.nn.Module):
    def forward(self, x, m):
        return torch.softmax(torch.where(m, x * 0.125, float("-inf")), 1)


def get_inputs():
    m = torch.rand(21, 50) > 0.3
    m[:, 0] = True
    return [torch.randn(21, 50), m]
