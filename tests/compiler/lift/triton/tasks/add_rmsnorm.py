import torch


class Model(torch.nn.Module):
    def forward(self, x, r, w):
        s = x + r
        return s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-5) * w, s


def get_inputs():
    return [torch.randn(4, 5, 90), torch.randn(4, 5, 90), torch.rand(90)]
