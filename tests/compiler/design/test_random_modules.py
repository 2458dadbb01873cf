"""Modules composed at random, with odd, prime, unit and empty shapes: designed, checked, interpreted, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from .harness import designed

Step = Callable[[Tensor], Tensor]


def last(x: Tensor) -> int:
    return x.dim() - 1


def _rows(x: Tensor, least: int) -> bool:
    """Whether it has a batch, channels and lines of at least so many elements."""
    return x.dim() == 3 and x.numel() > 0 and x.shape[-1] >= least


def _ramp(*shape: int) -> Tensor:
    """Weights without a pattern that a wrong index would keep."""
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float32) * 0.37).sin().reshape(shape) * 0.5


POINTWISE: dict[str, Step] = {
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "affine": lambda x: x * 1.5 - 0.25,
    "clamp": lambda x: x.clamp(-1.0, 0.5),
    "mask": lambda x: torch.where(x > 0, x, x * 0.1),
    "positions": lambda x: x + torch.arange(x.shape[-1]) * 0.01 if x.dim() else x,
}
VIEWS: dict[str, Step] = {
    "transpose": lambda x: x.transpose(0, -1) if x.dim() else x,
    "flatten": lambda x: x.reshape(-1),
    "fold": lambda x: x.reshape(2, -1) if x.numel() and x.numel() % 2 == 0 else x,
    "regroup": lambda x: x.reshape(-1, 3) if x.numel() and x.numel() % 3 == 0 else x,
    "slice": lambda x: x[..., 1:] if x.dim() and x.shape[-1] > 2 else x,
    "every_other": lambda x: x[..., ::2] if x.dim() and x.shape[-1] > 2 else x,
    "flip": lambda x: x.flip(-1) if x.dim() else x,
    "pad": lambda x: F.pad(x, (1, 2), value=0.5) if x.dim() else x,
    "double": lambda x: torch.cat([x, x * 2], -1) if x.dim() else x,
    "repeat": lambda x: x.repeat_interleave(2, -1) if x.dim() else x,
    "roll": lambda x: torch.roll(x, 1, -1) if x.dim() and x.numel() else x,
}
ROWS: dict[str, Step] = {
    "softmax": lambda x: F.softmax(x, -1) if x.dim() else x,
    "softmax_first": lambda x: F.softmax(x, 0) if x.dim() else x,
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]) if x.dim() and x.shape[-1] > 1 else x,
    "centre": lambda x: x - x.mean(0, keepdim=True) if x.dim() and x.shape[0] else x,
    "cumsum": lambda x: x.cumsum(-1) if x.dim() else x,
}
REDUCTIONS: dict[str, Step] = {
    "sum": lambda x: x.sum(-1) if x.dim() > 1 else x,
    "max_first": lambda x: x.amax(0) if x.dim() > 1 and x.shape[0] else x,
    "mean_all": lambda x: x.mean().reshape(1) if x.numel() else x,
    "windows": lambda x: F.max_pool1d(x.reshape(1, 1, -1), 2).reshape(-1) if x.numel() > 2 else x,
}
POOLS: dict[str, Step] = {
    "average": lambda x: F.avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False) if _rows(x, 3) else x,
    "peaks": lambda x: F.max_pool1d(x, 3, 1, 1, dilation=1) if _rows(x, 3) else x,
    "group_norm": lambda x: F.group_norm(x, 1) if x.dim() > 2 and x.numel() and x[0].numel() > 1 else x,
    "normalize": lambda x: F.normalize(x, dim=-1) if x.dim() else x,
    "logsumexp": lambda x: torch.logsumexp(x, -1, keepdim=True) if x.dim() and x.numel() else x,
    "argmax": lambda x: x.argmax(-1, keepdim=True).float() if x.dim() and x.numel() else x,
    "running_max": lambda x: x.cummax(-1)[0] if x.dim() and x.numel() else x,
    "shared_sort": lambda x: x.sort(-1)[0] if x.dim() and x.numel() else x,
    "take": lambda x: x.index_select(0, torch.tensor([0, x.shape[0] - 1, 0])) if x.dim() and x.numel() else x,
    "lower": lambda x: x.tril(1) if x.dim() > 1 else x,
    "distances": lambda x: torch.cdist(x, x.flip(-2), 1.0) if x.dim() > 1 and x.numel() else x,
}
PRODUCTS: dict[str, Step] = {
    "gram": lambda x: x @ x.transpose(-1, -2) * 0.1 if x.dim() > 1 else x,
    "linear": lambda x: F.linear(x, _ramp(4, x.shape[-1]), _ramp(4)) if x.dim() else x,
    "conv": lambda x: F.conv1d(x, _ramp(2, x.shape[1], 2), _ramp(2), padding=1) if _rows(x, 1) else x,
    "spread": lambda x: F.conv_transpose1d(x, _ramp(x.shape[1], 2, 3), stride=2, padding=1) if _rows(x, 1) else x,
    "depthwise": lambda x: F.conv1d(x, _ramp(x.shape[1], 1, 3), padding=2, dilation=2, groups=x.shape[1]) if _rows(x, 1) else x,
    "attend": lambda x: F.scaled_dot_product_attention(x, x, x) if x.dim() > 2 and x.numel() else x,
}
STEPS = {**POINTWISE, **VIEWS, **ROWS, **REDUCTIONS, **POOLS, **PRODUCTS}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shape=st.lists(st.sampled_from([0, 1, 2, 3, 5, 7, 12, 13]), min_size=1, max_size=3),
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=6),
    tap=st.booleans(),
    strided=st.booleans(),
)
def test_a_random_chain_computes_what_torch_computes(shape: list[int], names: list[str], tap: bool, strided: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn([*shape[:-1], shape[-1] * 2])[..., ::2] if strided else torch.randn(shape)

    def chain(x: Tensor) -> Any:
        middle = None
        for i, name in enumerate(names):
            x = STEPS[name](x)
            middle = x if i == 0 else middle
        return (x, middle * 2) if tap and middle is not None else x

    designed(chain, x)
