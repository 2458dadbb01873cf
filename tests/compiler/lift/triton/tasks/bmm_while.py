import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b.transpose(1, 2)


def get_inputs():
    return [torch.randn(3, 37, 50), torch.randn(3, 29, 50)]
