import torch


class Model(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = torch.nn.Linear(i, o).half()

    def forward(self, x):
        return torch.nn.functional.gelu(self.fc(x), approximate="tanh")


def get_inputs():
    return [torch.randn(3, 15, 100).half()]


def get_init_inputs():
    return [100, 70]
