"""Reading and writing at run-time positions, and sorting."""

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
    "emb": lambda: (nn.Embedding(10, 6), [ri(0, 10, (4, 3))]),
    "gather": lambda: (lambda x, i: x.gather(1, i), [r(4, 6), ri(0, 6, (4, 3))]),
    "isel": lambda: (lambda x, i: x.index_select(1, i) * 2, [r(4, 6, 3), ri(0, 6, (5,))]),
    "index": lambda: (lambda x, i, j: x[i, :, j], [r(4, 6, 3), ri(0, 4, (5,)), ri(0, 3, (5,))]),
    "index2": lambda: (lambda x, i: x[:, i], [r(4, 6, 3), ri(-6, 6, (5, 2))]),
    "onehot": lambda: (lambda i: F.one_hot(i, 7), [ri(0, 7, (5, 2))]),
    "bucket": lambda: (lambda x, e: torch.bucketize(x, e), [r(4, 5), torch.linspace(-1, 1, 7)]),
    "sort": lambda: (lambda x: torch.sort(x, 1), [r(5, 17)]),
    "sort0": lambda: (lambda x: torch.sort(x, 0, descending=True), [r(5, 17)]),
    "argsort": lambda: (lambda x: torch.argsort(x, 1), [r(5, 17)]),
    "topk": lambda: (lambda x: torch.topk(x, 3, 1), [r(5, 17)]),
    "topks": lambda: (lambda x: torch.topk(torch.softmax(x, -1), 2, -1), [r(5, 17)]),
    "kth": lambda: (lambda x: torch.kthvalue(x, 3, 1), [r(5, 17)]),
    "median": lambda: (lambda x: torch.median(x, 1), [r(5, 17)]),
    "scatter": lambda: (
        lambda x, i, s: x.scatter(1, i, s),
        [r(5, 17), torch.stack([torch.randperm(17)[:4] for _ in range(5)]), r(5, 4)],
    ),
    "scatter0": lambda: (lambda x, i, s: x.scatter_add(0, i, s), [r(5, 17), ri(0, 5, (8, 17)), r(8, 17)]),
    "scatv": lambda: (lambda x, i: x.scatter(1, i, 2.0), [r(5, 17), ri(0, 17, (5, 3))]),
    "iadd": lambda: (lambda x, i, s: x.index_add(0, i, s), [r(5, 17), ri(0, 5, (8,)), r(8, 17)]),
    "iadd1": lambda: (lambda i, s: torch.zeros(5).index_add(0, i, s), [ri(0, 5, (8,)), r(8)]),
    "iput": lambda: (lambda x, i, s: x.index_put((i,), s), [r(5, 17), torch.tensor([3, 1]), r(2, 17)]),
    "iput2": lambda: (
        lambda x, i, s: x.index_put((torch.arange(2)[:, None], i), s, accumulate=True),
        [r(2, 17, 3), ri(0, 17, (2, 4)), r(2, 4, 3)],
    ),
    "setitem": lambda: (lambda x, s: torch.slice_scatter(x, s, 1, 2, 5), [r(5, 17), r(5, 3)]),
    "setit": lambda: (
        lambda x: (lambda y: (y.__setitem__((slice(None), slice(0, None, 2)), 0.0), y)[1])(x.clone()),
        [r(5, 17)],
    ),
    "mask": lambda: (lambda x: (lambda y: (y.__setitem__(y < 0, 0.0), y)[1])(x.clone()), [r(5, 17)]),
    "rit": lambda: (lambda c: torch.repeat_interleave(torch.arange(4), c, output_size=9), [torch.tensor([2, 3, 0, 4])]),
    "fp8": lambda: (
        lambda x: x.to(torch.float8_e4m3fn).float(),
        [torch.cat([r(500), r(500) * 100, r(500) * 0.01, torch.tensor([448.0, 464.0, 465.0, float("nan"), 1e9, 0.0, -0.0])])],
    ),
    "fp85": lambda: (
        lambda x: x.to(torch.float8_e5m2).float(),
        [
            torch.cat(
                [
                    r(500),
                    r(500) * 10000,
                    r(500) * 0.00001,
                    torch.tensor([448.0, 57344.0, 61440.0, 61439.0, float("nan"), float("inf"), 1e9, 0.0]),
                ]
            )
        ],
    ),
    "hist": lambda: (lambda i: torch.zeros(7).scatter_add(0, i, torch.ones(20)), [ri(0, 7, (20,))]),
}


@pytest.mark.parametrize("name", CASES)
def test_indexing(name: str) -> None:
    torch.manual_seed(0)
    subject, inputs = CASES[name]()
    designed(subject, *inputs)
