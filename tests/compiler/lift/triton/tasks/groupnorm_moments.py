import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gn = torch.nn.GroupNorm(4, 12)

    def forward(self, x):
        return self.gn(x)


def get_inputs():
    return [torch.randn(3, 12, 9, 11)]
