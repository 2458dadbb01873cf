import torch


class Model(torch.nn.Module):
    def forward(self, x):
        f = torch.nn.functional.mish
        return f(f(x[:, 1:])).transpose(0, 1)


def get_inputs():
    return [torch.randn(30, 41)]
