import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 1)


def get_inputs():
    return [torch.randn(11, 700)]
