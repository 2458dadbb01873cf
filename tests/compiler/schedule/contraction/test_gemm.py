"""Matrix products: every schedule computes what torch computes, for all layouts, odd extents and dtypes."""

from __future__ import annotations

import pytest
import torch
from building import gemm_sketches, machine
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret.interpreter import run
from kernelwright.sketch.nodes import Sketch

SMALL_CACHE = machine(tile_bytes=64 << 10)
SHAPES = [(64, 48, 40), (7, 13, 5), (300, 70, 600), (1, 200, 64), (200, 1, 64), (3, 100, 70), (16, 12, 5000), (5, 9, 0)]


def names(sketch: Sketch) -> list[str]:
    return [step.name for step in sketch.steps]  # type: ignore[union-attr]


def agree(sketches: list[Sketch], a: torch.Tensor, b: torch.Tensor, expected: torch.Tensor, tolerance: float = 2e-4) -> None:
    for sketch in sketches:
        assert not check(sketch), names(sketch)
        out = run(sketch, {"a": a, "b": b}, strict=True, shuffle=1)["out"]
        torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance, msg=lambda m: f"{names(sketch)}: {m}")  # noqa: B023


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("constant", [False, True])
def test_all_layouts(shape: tuple[int, int, int], layout: str, constant: bool) -> None:
    m, n, k = shape
    turn_a, turn_b = (letter == "t" for letter in layout)
    a = torch.randn((k, m) if turn_a else (m, k))
    b = torch.randn((n, k) if turn_b else (k, n))
    expected = (a.T if turn_a else a) @ (b.T if turn_b else b)
    agree(gemm_sketches(a, b, turn_a=turn_a, turn_b=turn_b, constant=constant, machine=SMALL_CACHE), a, b, expected)


def test_batches_broadcast() -> None:
    a, b = torch.randn(3, 2, 10, 12), torch.randn(2, 12, 9)
    agree(gemm_sketches(a, b), a, b, a @ b)


def test_the_epilogue_sees_the_whole_sum() -> None:
    a, b = torch.randn(33, 700), torch.randn(700, 50)
    agree(gemm_sketches(a, b, relu=True, machine=SMALL_CACHE), a, b, (a @ b).relu())
    long_a, long_b = torch.randn(9, 6000), torch.randn(6000, 11)
    split = gemm_sketches(long_a, long_b, relu=True)
    assert any("add_parts" in names(s) for s in split)
    agree(split, long_a, long_b, (long_a @ long_b).relu(), 1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64])
@pytest.mark.parametrize("shape", [(20, 30, 40), (1, 30, 40), (30, 1, 40)])
def test_dtypes(dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    if dtype.is_floating_point:
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        expected = (a.double() @ b.double()).to(dtype)
    else:
        a, b = torch.randint(-9, 9, (m, k)).to(dtype), torch.randint(-9, 9, (k, n)).to(dtype)
        expected = (a.long() @ b.long()).to(torch.int32 if dtype is torch.int8 else dtype)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-9)
    agree(gemm_sketches(a, b), a, b, expected, tolerance)


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_triangles_skip_blocks_but_not_values(side: str) -> None:
    cut = torch.tril if side == "lower" else torch.triu
    a, b = cut(torch.randn(300, 300)), cut(torch.randn(300, 300))
    device = machine(tile_bytes=16 << 10)
    agree(gemm_sketches(a, b, a_shape=side, b_shape=side, out_shape=side, machine=device), a, b, a @ b)
    agree(gemm_sketches(a, torch.randn_like(b), a_shape=side, machine=device)[:1], a, b, a @ b)


def test_a_small_output_with_a_long_sum_is_split() -> None:
    first = gemm_sketches(torch.empty(96, 49152), torch.empty(49152, 80))[0]
    assert names(first) == ["gemm_parts", "add_parts"]


def test_only_cores_with_vectors_get_panels() -> None:
    a, b = torch.randn(40, 30), torch.randn(50, 30)
    plain = gemm_sketches(a, b, turn_b=True, constant=True, machine=machine(execution="blocks"))
    assert not any(step.once for sketch in plain for step in sketch.steps)  # type: ignore[union-attr]
    agree(plain, a, b, a @ b.T)
    panelled = gemm_sketches(a, b, turn_b=True, constant=True)
    assert all(step.once for sketch in panelled for step in sketch.steps[:1])  # type: ignore[union-attr]


def test_a_constant_operand_is_turned_once() -> None:
    first = gemm_sketches(torch.empty(512, 256), torch.empty(128, 256), turn_b=True, constant=True)[0]
    assert [step.once for step in first.steps] == [True, False]  # type: ignore[union-attr]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(0, 90), st.integers(1, 3), st.booleans(), st.booleans())
def test_any_extents(m: int, n: int, k: int, batch: int, turn_a: bool, turn_b: bool) -> None:
    a = torch.randn((batch, k, m) if turn_a else (batch, m, k))
    b = torch.randn((batch, n, k) if turn_b else (batch, k, n))
    expected = (a.mT if turn_a else a) @ (b.mT if turn_b else b)
    agree(gemm_sketches(a, b, turn_a=turn_a, turn_b=turn_b, machine=machine(units=8, tile_bytes=32 << 10)), a, b, expected)
