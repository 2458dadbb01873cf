"""Reductions, norms, scans, pooling, losses, dtypes and odd shapes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from .harness import designed

r = torch.randn
ri = torch.randint
rand = torch.rand


CASES = {
    "softmax": lambda: (lambda x: F.softmax(x, -1), [r(5, 33)]),
    "softmax_mid": lambda: (lambda x: F.softmax(x, 1), [r(5, 33, 4)]),
    "logsoftmax": lambda: (lambda x: F.log_softmax(x, -1), [r(5, 33)]),
    "ln": lambda: (nn.LayerNorm(13), [r(4, 6, 13)]),
    "ln2": lambda: (nn.LayerNorm((6, 13)), [r(4, 6, 13)]),
    "gn": lambda: (nn.GroupNorm(2, 6), [r(4, 6, 5, 3)]),
    "in": lambda: (nn.InstanceNorm2d(6, affine=True), [r(4, 6, 5, 3)]),
    "bn": lambda: (nn.BatchNorm2d(6), [r(4, 6, 5, 3)]),
    "rms": lambda: (lambda x: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5), [r(4, 6, 5, 3)]),
    "l1": lambda: (lambda x: x / x.abs().sum(1, keepdim=True), [r(4, 60)]),
    "fro": lambda: (lambda x: x / torch.norm(x, p="fro"), [r(300, 301)]),
    "mean": lambda: (lambda x: x.mean(), [r(400, 500)]),
    "meanp": lambda: (lambda x: x.mean(), [r(65537 * 2 + 1)]),
    "sumbig": lambda: (lambda x: x.sum(0), [r(1009, 97)]),
    "sum01": lambda: (lambda x: x.sum((0, 2)), [r(9, 97, 5)]),
    "amax": lambda: (lambda x: x.max(1), [r(9, 97, 5)]),
    "argmax": lambda: (lambda x: x.argmax(), [r(9, 97)]),
    "argmin1": lambda: (lambda x: x.argmin(1), [r(9, 97)]),
    "argmin0": lambda: (lambda x: x.argmin(0), [r(9, 97)]),
    "argmax0k": lambda: (lambda x: x.argmax(0, keepdim=True), [r(300, 97)]),
    "prod": lambda: (lambda x: x.prod(1), [r(9, 7, 3)]),
    "cumsum": lambda: (lambda x: x.cumsum(1), [r(9, 70)]),
    "cumsum0": lambda: (lambda x: x.cumsum(0), [r(9, 70)]),
    "cumprod": lambda: (lambda x: x.cumprod(1), [r(9, 7, 3)]),
    "revcumsum": lambda: (lambda x: x.flip(1).cumsum(1).flip(1), [r(9, 70)]),
    "excl": lambda: (lambda x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1).cumsum(1), [r(9, 70)]),
    "excl2": lambda: (lambda x: torch.cumsum(x, 1) - x, [r(9, 70)]),
    "masked": lambda: (lambda x, m: torch.cumsum(x * m, 1), [r(9, 70), rand(9, 70) > 0.5]),
    "cummax": lambda: (lambda x: torch.cummax(x, 1), [r(9, 70)]),
    "logcumsumexp": lambda: (lambda x: torch.logcumsumexp(x, 1), [r(9, 70)]),
    "maxpool": lambda: (lambda x: F.max_pool2d(x, 3, 2, 1), [r(2, 3, 9, 9)]),
    "maxpool1": lambda: (lambda x: F.max_pool1d(x, 3, 2, 1, 2), [r(2, 3, 19)]),
    "maxpool3": lambda: (lambda x: F.max_pool3d(x, 2), [r(2, 3, 6, 7, 8)]),
    "maxpoolidx": lambda: (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), [r(2, 3, 9, 9)]),
    "avgpool": lambda: (lambda x: F.avg_pool2d(x, 3, 2, 1), [r(2, 3, 9, 9)]),
    "avgpoolx": lambda: (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [r(2, 3, 9, 9)]),
    "avgpoolc": lambda: (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), [r(2, 3, 10, 10)]),
    "avgpool1": lambda: (lambda x: F.avg_pool1d(x, 4), [r(2, 3, 19)]),
    "avgpool3": lambda: (lambda x: F.avg_pool3d(x, 2), [r(2, 3, 6, 7, 8)]),
    "adapt": lambda: (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), [r(2, 3, 6, 9)]),
    "adaptr": lambda: (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), [r(2, 3, 7, 10)]),
    "adapt1": lambda: (lambda x: F.adaptive_avg_pool2d(x, 1), [r(2, 3, 7, 10)]),
    "adaptm": lambda: (lambda x: F.adaptive_max_pool2d(x, (4, 3)), [r(2, 3, 7, 10)]),
    "adapt3": lambda: (lambda x: F.adaptive_avg_pool3d(x, (1, 1, 1)), [r(2, 3, 7, 10, 3)]),
    "lppool": lambda: (lambda x: F.lp_pool2d(x, 2.0, 2), [r(2, 3, 8, 8)]),
    "ce": lambda: (lambda x, y: F.cross_entropy(x, y), [r(9, 11), ri(0, 11, (9,))]),
    "nll": lambda: (lambda x, y: F.nll_loss(F.log_softmax(x, 1), y, reduction="none"), [r(9, 11), ri(0, 11, (9,))]),
    "mse": lambda: (lambda x, y: F.mse_loss(x, y), [r(9, 11), r(9, 11)]),
    "huber": lambda: (lambda x, y: F.smooth_l1_loss(x, y), [r(9, 11), r(9, 11)]),
    "huber2": lambda: (lambda x, y: F.huber_loss(x, y), [r(9, 11), r(9, 11)]),
    "kl": lambda: (lambda x, y: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"), [r(9, 11), r(9, 11)]),
    "triplet": lambda: (lambda a, p, n: F.triplet_margin_loss(a, p, n), [r(9, 11), r(9, 11), r(9, 11)]),
    "cos": lambda: (lambda x, y: F.cosine_similarity(x, y, dim=1), [r(9, 11), r(9, 11)]),
    "coslossm": lambda: (lambda x, y: torch.mean(1 - F.cosine_similarity(x, y, dim=1)), [r(9, 11), r(9, 11)]),
    "hinge": lambda: (lambda x, y: torch.mean(torch.clamp(1 - x * y, min=0)), [r(9, 11), r(9, 11)]),
    "bce": lambda: (lambda x, y: F.binary_cross_entropy_with_logits(x, y), [r(9, 11), rand(9, 11)]),
    "bce2": lambda: (lambda x, y: F.binary_cross_entropy(x, y), [rand(9, 11), rand(9, 11)]),
    "lse": lambda: (lambda x: torch.logsumexp(x, 1), [r(9, 11)]),
    "std": lambda: (lambda x: x.std(1) + x.var(1, unbiased=False), [r(9, 11)]),
    "varmean": lambda: (lambda x: torch.var_mean(x, 1), [r(9, 11)]),
    "norm": lambda: (lambda x: F.normalize(x, dim=1), [r(9, 11)]),
    "where": lambda: (lambda x, y: torch.where(x > 0, x, y), [r(9, 11), r(11)]),
    "mf": lambda: (lambda x, m: x.masked_fill(m, -1e9), [r(9, 11), rand(9, 11) > 0.5]),
    "half": lambda: (lambda x: F.softmax(x, -1) * 2, [r(9, 11).half()]),
    "bf": lambda: (lambda x: F.layer_norm(x, (11,)), [r(9, 11).bfloat16()]),
    "int": lambda: (lambda x: (x // 3 + x % 5) * 2 - (x >> 1) ^ (x & 3), [ri(-50, 50, (9, 11))]),
    "i8": lambda: (lambda x: (x.float() * 0.1).round().clamp(-128, 127).to(torch.int8), [r(9, 11) * 100]),
    "bool": lambda: (lambda x: ((x > 0) & (x < 1)).any(1), [r(9, 11)]),
    "f64": lambda: (lambda x: torch.erf(x).sum(1), [r(9, 11).double()]),
    "size0": lambda: (lambda x: x * 2, [r(0, 11)]),
    "size0s": lambda: (lambda x: x.sum(0), [r(0, 11)]),
    "size1": lambda: (lambda x: F.softmax(x, 1) + x.sum(0), [r(1, 1)]),
    "scalar": lambda: (lambda x: x.exp(), [r(())]),
    "multi": lambda: (lambda x: {"a": x + 1, "b": (x * 2, [x.sum(1)])}, [r(4, 5)]),
    "ident": lambda: (lambda x: (x, x + 1), [r(4, 5)]),
    "clampt": lambda: (lambda x, low: x.clamp(low, low + 1), [r(4, 5), r(5)]),
    "softmax2": lambda: (lambda x: F.softmax(F.softmax(x, -1), 0), [r(40, 16)]),
    "bigrow": lambda: (lambda x: F.softmax(x, -1), [r(9, 70001)]),
    "bigcol": lambda: (lambda x: F.softmax(x, 1), [r(3, 3001, 9)]),
    "lrn": lambda: (nn.LocalResponseNorm(3), [r(2, 7, 4, 4)]),
    "prelu": lambda: (nn.PReLU(6), [r(2, 6, 4)]),
    "fmod": lambda: (lambda x: torch.fmod(x, 0.7) + torch.remainder(x, 0.7), [r(2, 5)]),
    "pow": lambda: (lambda x: x**3 + x.abs() ** 1.5 + 2**x, [r(2, 5)]),
    "pmean": lambda: (lambda x: F.max_pool2d(F.gelu(x), 3, 1), [r(2, 5, 8, 8)]),
    "gap": lambda: (lambda x: x.mean((2, 3)), [r(2, 5, 8, 8)]),
    "minsum": lambda: (lambda x: torch.min(x, 1, keepdim=True)[0].sum(2, keepdim=True), [r(2, 5, 8, 8)]),
    "fp": lambda: (lambda x: (x - x.mean((1, 2), keepdim=True)) / x.std((1, 2), keepdim=True), [r(2, 5, 8)]),
}


@pytest.mark.parametrize("name", CASES)
def test_families(name: str) -> None:
    torch.manual_seed(0)
    subject, inputs = CASES[name]()
    designed(subject, *inputs)
