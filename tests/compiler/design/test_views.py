"""Views and makers: nothing but coordinates move."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from .harness import designed

r = torch.randn
ri = torch.randint
rand = torch.rand


CASES = {
    "perm": lambda: (lambda x: x.permute(2, 0, 1).contiguous(), [r(5, 6, 7)]),
    "permadd": lambda: (lambda x, y: x.permute(2, 0, 1) + y, [r(5, 6, 7), r(7, 5, 6)]),
    "reshape": lambda: (lambda x: (x.reshape(4, 15) * 2).reshape(15, 4).t() + 1, [r(6, 10)]),
    "weird": lambda: (lambda x: x.reshape(6, 10).t().reshape(4, 15) + 1, [r(4, 15)]),
    "cat": lambda: (lambda x, y: torch.cat([x, y], 1).relu(), [r(3, 5), r(3, 4)]),
    "stack": lambda: (lambda x, y: torch.stack([x, y], -1), [r(3, 5), r(3, 5)]),
    "stackmid": lambda: (lambda x, y: torch.stack([x, y, x * y], 1).flatten(0, 1) * 2, [r(3, 5), r(3, 5)]),
    "rotate": lambda: (
        lambda x, c: torch.stack([x[..., ::2] * c - x[..., 1::2], x[..., ::2] + x[..., 1::2] * c], -1).flatten(-2),
        [r(3, 4, 10), r(5)],
    ),
    "split": lambda: (lambda x: x.chunk(2, 1)[0] * x.chunk(2, 1)[1].sigmoid(), [r(3, 8, 5)]),
    "slice": lambda: (lambda x: x[:, 1::2] + x[:, :-1:2], [r(3, 8, 5)]),
    "pad": lambda: (lambda x: F.pad(x, (1, 2, 0, 1), value=3.0) * 2, [r(3, 8, 5)]),
    "padrefl": lambda: (lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"), [r(3, 4, 8, 5)]),
    "padrep": lambda: (lambda x: F.pad(x, (1, 2, 1, 1), mode="replicate"), [r(3, 4, 8, 5)]),
    "roll": lambda: (lambda x: torch.roll(x, 2, 1), [r(3, 8, 5)]),
    "flip": lambda: (lambda x: x.flip(1) + x, [r(3, 8, 5)]),
    "repeat": lambda: (lambda x: x.repeat(2, 3), [r(3, 8)]),
    "rint": lambda: (lambda x: x.repeat_interleave(3, 1), [r(3, 8)]),
    "shuffle": lambda: (lambda x: F.pixel_shuffle(x, 2), [r(2, 8, 3, 5)]),
    "unshuffle": lambda: (lambda x: F.pixel_unshuffle(x, 2), [r(2, 2, 6, 4)]),
    "upn": lambda: (lambda x: F.interpolate(x, scale_factor=2), [r(2, 2, 6, 4)]),
    "upn2": lambda: (lambda x: F.interpolate(x, size=(9, 7)), [r(2, 2, 6, 4)]),
    "upb": lambda: (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [r(2, 2, 6, 4)]),
    "upba": lambda: (lambda x: F.interpolate(x, size=(9, 7), mode="bilinear", align_corners=True), [r(2, 2, 6, 4)]),
    "upbi": lambda: (lambda x: F.interpolate(x, size=(9, 7), mode="bicubic"), [r(2, 2, 6, 4)]),
    "tril": lambda: (lambda x: x.tril(), [r(5, 5)]),
    "triu": lambda: (lambda x: x.triu(1), [r(2, 5, 7)]),
    "diag": lambda: (lambda x: torch.diag(x), [r(5, 7)]),
    "diage": lambda: (lambda x: torch.diag(x), [r(5)]),
    "eye": lambda: (lambda x: x + torch.eye(5), [r(5, 5)]),
    "arange": lambda: (lambda x: x + torch.arange(5) * 2, [r(5, 5)]),
    "unfold": lambda: (lambda x: x.unfold(1, 3, 2).sum(-1), [r(4, 15)]),
    "im2col": lambda: (lambda x: F.unfold(x, 3, padding=1), [r(2, 3, 6, 6)]),
    "rope": lambda: (
        lambda x, c, s: x * c + torch.cat([-x[..., 8:], x[..., :8]], -1) * s,
        [r(2, 3, 4, 16), r(4, 16), r(4, 16)],
    ),
    "swiglu": lambda: (lambda x: F.silu(x[..., :8]) * x[..., 8:], [r(2, 3, 4, 16)]),
    "glu": lambda: (lambda x: F.glu(x, 1), [r(2, 8, 4)]),
    "linspace": lambda: (lambda x: x * torch.linspace(0, 1, 5), [r(2, 5)]),
    "const": lambda: (lambda x: x + torch.tensor([1.0, 2, 3, 4, 5]), [r(2, 5)]),
}


@pytest.mark.parametrize("name", CASES)
def test_views(name: str) -> None:
    torch.manual_seed(0)
    subject, inputs = CASES[name]()
    designed(subject, *inputs)
