"""Matrix products, convolutions and attention with what surrounds them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from .harness import designed

r = torch.randn
ri = torch.randint
rand = torch.rand


class Chain(nn.Sequential):
    """Layers, then a function."""

    def __init__(self, *layers, then=None):  # type: ignore[no-untyped-def]
        super().__init__(*layers)
        self.then = then

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = super().forward(x)
        return self.then(y) if self.then else y


CASES = {
    "mm": lambda: (lambda x, y: x @ y, [r(33, 17), r(17, 19)]),
    "mmT": lambda: (lambda x, y: x.t() @ y.t(), [r(17, 33), r(19, 17)]),
    "bmm": lambda: (lambda x, y: torch.bmm(x, y), [r(3, 5, 17), r(3, 17, 19)]),
    "mm4": lambda: (lambda x, y: x @ y, [r(2, 3, 5, 17), r(17, 19)]),
    "einsum": lambda: (lambda x, y: torch.einsum("bijl,lk->bijk", x, y), [r(2, 3, 5, 17), r(17, 19)]),
    "mv": lambda: (lambda x, y: x @ y, [r(33, 17), r(17, 1)]),
    "mv2": lambda: (lambda x, y: x @ y, [r(33, 17), r(17)]),
    "dot": lambda: (lambda x, y: torch.dot(x, y), [r(1000), r(1000)]),
    "gelu": lambda: (Chain(nn.Linear(17, 19), nn.GELU()), [r(33, 17)]),
    "lin3": lambda: (Chain(nn.Linear(17, 19), nn.ReLU(), nn.Linear(19, 5)), [r(3, 11, 17)]),
    "linsm": lambda: (Chain(nn.Linear(17, 19), nn.Softmax(-1)), [r(33, 17)]),
    "swish": lambda: (Chain(nn.Linear(17, 19), then=lambda y: y * torch.sigmoid(y) + 1), [r(33, 17)]),
    "resid": lambda: (lambda x, y, z: (x @ y) * 2 + z, [r(33, 17), r(17, 19), r(33, 19)]),
    "linmax": lambda: (Chain(nn.Linear(17, 20), then=lambda y: F.max_pool1d(y.unsqueeze(1), 4).squeeze(1).sum(1)), [r(33, 17)]),
    "linlse": lambda: (Chain(nn.Linear(17, 20), then=lambda y: torch.logsumexp(y, 1, keepdim=True)), [r(33, 17)]),
    "lingn": lambda: (Chain(nn.Linear(17, 20), nn.GroupNorm(4, 20)), [r(33, 17)]),
    "conv": lambda: (nn.Conv2d(3, 8, 3), [r(2, 3, 9, 11)]),
    "convrelu": lambda: (Chain(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), then=lambda y: y + 1), [r(2, 3, 9, 11)]),
    "convbn": lambda: (Chain(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)), [r(2, 3, 9, 11)]),
    "convgn": lambda: (
        Chain(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.GroupNorm(2, 8),
            nn.Tanh(),
            then=lambda y: torch.logsumexp(y + y.tanh(), 1, keepdim=True),
        ),
        [r(2, 3, 9, 11)],
    ),
    "dw": lambda: (nn.Conv2d(6, 6, 3, groups=6, padding=1), [r(2, 6, 9, 11)]),
    "grp": lambda: (nn.Conv2d(6, 4, 3, groups=2, dilation=2), [r(2, 6, 9, 11)]),
    "c1": lambda: (nn.Conv1d(6, 4, 3), [r(2, 6, 19)]),
    "c3": lambda: (nn.Conv3d(3, 4, 3), [r(2, 3, 6, 7, 8)]),
    "pw": lambda: (nn.Conv2d(6, 4, 1), [r(2, 6, 9, 11)]),
    "t2": lambda: (nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1), [r(2, 6, 5, 7)]),
    "t1": lambda: (nn.ConvTranspose1d(6, 4, 3, stride=2), [r(2, 6, 5)]),
    "t3": lambda: (nn.ConvTranspose3d(3, 4, 3, stride=2, padding=1), [r(1, 3, 4, 5, 3)]),
    "tfuse": lambda: (
        Chain(nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1), then=lambda y: torch.clamp(F.softmax(y, 1) + 1, 0, 1) * 2),
        [r(2, 6, 5, 7)],
    ),
    "gap": lambda: (Chain(nn.Conv2d(3, 8, 3), then=lambda y: F.gelu(y).mean((2, 3))), [r(2, 3, 9, 11)]),
    "sdpa": lambda: (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8)]),
    "sdpac": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [r(2, 3, 7, 8), r(2, 3, 7, 8), r(2, 3, 7, 8)],
    ),
    "sdpam": lambda: (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        [r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8), rand(7, 9) > 0.3],
    ),
    "gqa": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        [r(2, 6, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8)],
    ),
    "attn": lambda: (
        lambda q, k, v: F.softmax(q @ k.transpose(-1, -2) / 3, -1) @ v,
        [r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8)],
    ),
    "tri": lambda: (lambda x, y: torch.tril(x @ y), [r(17, 17), r(17, 17)]),
    "triu": lambda: (lambda x, y: torch.triu(x) @ torch.triu(y), [r(17, 17), r(17, 17)]),
    "diagmm": lambda: (lambda x, y: torch.diag(x) @ y, [r(17), r(17, 17)]),
    "i8": lambda: (lambda x, w, s: x @ (w.float() * s).t(), [r(5, 16), ri(-9, 9, (7, 16), dtype=torch.int8), r(7, 1)]),
    "half": lambda: (lambda x, y: x @ y, [r(33, 17).half(), r(17, 19).half()]),
    "bf": lambda: (lambda x, y: F.relu(x @ y), [r(33, 17).bfloat16(), r(17, 19).bfloat16()]),
    "mha": lambda: (nn.MultiheadAttention(16, 4, batch_first=True), [r(2, 5, 16)] * 3),
    "k1": lambda: (lambda x, y: x @ y, [r(33, 1), r(1, 19)]),
    "m1": lambda: (Chain(nn.Linear(17, 19), nn.ReLU()), [r(1, 17)]),
    "two": lambda: (lambda x, y: (x @ y) + (y.t() @ x.t()).t(), [r(33, 17), r(17, 19)]),
    "int": lambda: (lambda x, y: x @ y, [ri(-9, 9, (5, 6)), ri(-9, 9, (6, 7))]),
}


@pytest.mark.parametrize("name", CASES)
def test_products(name: str) -> None:
    torch.manual_seed(0)
    subject, inputs = CASES[name]()
    designed(subject, *inputs)
