import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.var(1, unbiased=False)


def get_inputs():
    return [torch.randn(9, 100)]
