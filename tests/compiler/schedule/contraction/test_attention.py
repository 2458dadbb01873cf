"""Attention: running softmax and decoding, causal, masked, grouped heads, against torch."""

from __future__ import annotations

import math

import pytest
import torch
from building import attention_sketches
from torch.nn import functional

from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret.interpreter import run

INFINITY = math.inf


def agree(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, **facts: object) -> None:
    repeat = q.shape[-3] // k.shape[-3]
    expected = functional.scaled_dot_product_attention(
        q,
        k.repeat_interleave(repeat, -3),
        v.repeat_interleave(repeat, -3),
        attn_mask=mask,
        is_causal=bool(facts.get("causal", False)),
        scale=facts.get("scale"),  # type: ignore[arg-type]
    )
    inputs = {"q": q, "k": k, "v": v} | ({} if mask is None else {"mask": mask})
    for sketch in attention_sketches(q, k, v, mask, **facts):
        assert not check(sketch)
        out = run(sketch, inputs, strict=True, shuffle=1)["out"]
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("queries", [1, 3, 17, 70, 131])
@pytest.mark.parametrize("causal", [False, True])
def test_lengths_and_grouped_heads(queries: int, causal: bool) -> None:
    agree(torch.randn(2, 4, queries, 16), torch.randn(2, 2, 131, 16), torch.randn(2, 2, 131, 24), causal=causal)


def test_scale_and_no_batch() -> None:
    agree(torch.randn(3, 70, 16), torch.randn(3, 90, 16), torch.randn(3, 90, 8), scale=0.3)


@pytest.mark.parametrize("queries", [2, 70])
def test_masked_rows(queries: int) -> None:
    mask = torch.randn(queries, 131)
    mask[0, :128] = -INFINITY
    mask[1] = -INFINITY  # sees nothing: torch answers 0
    agree(torch.randn(2, 4, queries, 16), torch.randn(2, 2, 131, 16), torch.randn(2, 2, 131, 16), mask)


def test_large_scores_do_not_overflow() -> None:
    agree(torch.randn(1, 1, 20, 8) * 300, torch.randn(1, 1, 150, 8) * 300, torch.randn(1, 1, 150, 8))
