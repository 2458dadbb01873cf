"""The bound: honest arithmetic in another order is inside, lower precision and zeros are outside, over many scales and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.judge.reference import numerics
from kernelwright.judge.reference.numerics import Yardstick, compare_exact, drift, effective_reach, pieces

torch.set_num_threads(1)
Function = Callable[[Any], Any]

scales = st.sampled_from([1e-30, 1e-6, 1.0, 37.0, 1e6, 1e20])
seeds = st.integers(0, 2**32)
quick = settings(deadline=None, max_examples=25)


def yardstick(function: Function, x: Any, terms: int) -> Yardstick:
    """As the referee makes it: fp64 truth, native result, noise of half the drift."""
    reach = effective_reach(terms)

    def noisy() -> list[Any]:
        size = drift(x.dtype, reach) / 2
        dice = torch.Generator().manual_seed(1)
        spread = torch.rand(x.shape, generator=dice, dtype=torch.float64) * 2 - 1
        return [function(x.double() * (1 + size * (spread + sign))) for sign in (1, -1)]

    return Yardstick(function(x), function(x.double()), reach, noisy)


def normal(seed: int, *shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def running_sum(x: Any) -> Any:
    total = torch.zeros(x.shape[0])
    for column in x.unbind(1):
        total = total + column
    return total


@quick
@given(seeds, scales, st.integers(1, 40), st.integers(1, 600), st.booleans())
def test_sums_in_any_order_are_accepted(seed: int, scale: float, rows: int, columns: int, positive: bool) -> None:
    x = normal(seed, rows, columns) * scale
    x = x.abs() if positive else x
    stick = yardstick(lambda t: t.sum(1), x, columns)
    order = torch.randperm(columns, generator=torch.Generator().manual_seed(seed))
    assert stick.judge(running_sum(x)).count == 0
    assert stick.judge(running_sum(x[:, order])).count == 0


@quick
@given(seeds, scales, st.integers(2, 24), st.integers(2, 300))
def test_products_in_another_order_are_accepted_and_half_precision_is_not(
    seed: int, scale: float, rows: int, depth: int
) -> None:
    x, weight = normal(seed, rows, depth) * scale, normal(seed + 1, depth, 32)
    stick = yardstick(lambda t: t @ weight.to(t.dtype), x, depth)
    blocked = sum(x[:, k : k + 7] @ weight[k : k + 7] for k in range(0, depth, 7))
    assert stick.judge(blocked).count == 0
    rounded = (x / scale).bfloat16().float() * scale
    assert stick.judge(rounded @ weight).count > 0
    rounded = (x / scale).half().float() * scale
    assert stick.judge(rounded @ weight.half().float()).count > 0


@quick
@given(seeds, st.sampled_from([torch.relu, torch.tanh, torch.exp, torch.sigmoid, torch.sin]), st.integers(8, 3000))
def test_one_rounding_to_half_is_seen_in_elementwise_functions(seed: int, function: Function, count: int) -> None:
    x = normal(seed, count).abs() + 0.01
    stick = yardstick(function, x, 1)
    assert stick.judge(function(x)).count == 0
    assert stick.judge(function(x) * (1 + 4e-6)).count == 0, "an exponential of one's own may be some roundings off"
    assert stick.judge(function(x).half().float()).count > 0
    assert stick.judge(function(x.half().float())).count > 0


@quick
@given(seeds, scales, st.integers(1, 9), st.integers(1, 2000))
def test_zeros_are_rejected_at_every_scale(seed: int, scale: float, rows: int, columns: int) -> None:
    for function, x in (
        (lambda t: torch.softmax(t, -1), normal(seed, rows, columns)),
        (lambda t: t * scale, normal(seed, rows, columns)),
        (lambda t: t.mean(1), normal(seed, rows, columns) * scale),
    ):
        assert yardstick(function, x, columns).judge(torch.zeros_like(function(x))).count > 0


def test_a_tiny_row_in_a_large_tensor_keeps_its_own_scale() -> None:
    x = torch.ones(64, 64)
    x[5] = 1e-12
    stick = yardstick(lambda t: t * 3, x, 1)
    wrong = x * 3
    wrong[5] = 0
    assert stick.judge(wrong).wrong.nonzero()[:, 0].unique().tolist() == [5]


def test_cancellation_is_allowed_for_where_the_reference_has_it() -> None:
    x = normal(0, 32, 512) + 1000
    stick = yardstick(lambda t: t - t.mean(1, keepdim=True), x, 512)
    assert stick.judge(x - (running_sum(x) / 512)[:, None]).count == 0
    assert stick.judge(x.bfloat16().float() - x.mean(1, keepdim=True)).count > 0


def test_gelu_tails_of_an_honest_formula() -> None:
    x = normal(3, 100_000) * 3
    stick = yardstick(torch.nn.functional.gelu, x, 1)
    assert stick.judge(0.5 * x * (1 + torch.erf(x * 0.70710678))).count == 0
    assert stick.judge(torch.nn.functional.gelu(x, approximate="tanh")).count > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_tasks_allow_one_rounding_of_the_output(dtype: Any) -> None:
    x = normal(1, 64, 128).to(dtype)
    stick = yardstick(lambda t: torch.softmax(t, -1), x, 128)
    assert stick.judge(torch.softmax(x.float(), -1).to(dtype)).count == 0
    assert stick.judge((torch.softmax(x.float(), -1) * 1.05).to(dtype)).count > 0


def test_nan_and_infinity_must_be_where_the_reference_has_them() -> None:
    x = torch.tensor([1.0, 0.0, -1.0, 4.0])
    stick = yardstick(lambda t: torch.log(t), x, 1)
    right = torch.log(x)
    assert stick.judge(right).count == 0
    for place, value in ((0, torch.nan), (1, 0.0), (1, torch.nan), (1, torch.inf), (2, 0.0), (2, -torch.inf), (3, torch.inf)):
        forged = right.clone()
        forged[place] = value
        assert stick.judge(forged).wrong.nonzero().flatten().tolist() == [place]


def test_overflow_of_the_narrow_reference_may_be_finite_in_the_kernel() -> None:
    x = torch.tensor([300.0, 2.0], dtype=torch.float16)
    stick = yardstick(lambda t: t * t, x, 1)
    assert stick.judge(torch.tensor([torch.inf, 4.0], dtype=torch.float16)).count == 0
    assert stick.judge(torch.tensor([7.0, 4.0], dtype=torch.float16)).count == 1


def test_complex_numbers_are_compared_by_parts() -> None:
    x = torch.complex(normal(1, 100), normal(2, 100))
    stick = Yardstick(x * x, x.to(torch.complex128) ** 2, 1, list)
    assert stick.judge(x * x).count == 0
    assert stick.judge((x * x).conj().resolve_conj()).count > 0


def test_integers_are_exact() -> None:
    want = torch.tensor([1, 2, 3])
    assert compare_exact(want.clone(), want, want).count == 0
    assert compare_exact(torch.tensor([1, 2, 4]), want, want).wrong.tolist() == [False, False, True]
    assert compare_exact(torch.tensor([1, 2, 4]), want, torch.tensor([1, 2, 4])).count == 0, "where fp64 decides otherwise"


@given(st.lists(st.integers(0, 40), max_size=4))
def test_pieces_cover_everything_once(shape: list[int]) -> None:
    seen = torch.zeros(shape)
    for piece in pieces(seen.shape):
        seen[piece] += 1
    assert bool((seen == 1).all())


def test_large_outputs_are_compared_piece_by_piece() -> None:
    x = normal(0, 300, 1000)
    stick = yardstick(lambda t: t * 2, x, 1)
    wrong = x * 2
    wrong[299, 999] += 1
    difference = stick.judge(wrong)
    assert difference.wrong.nonzero().tolist() == [[299, 999]]
    assert difference.worst_error == pytest.approx(1.0, rel=1e-5)
    assert difference.bound < 1e-4


@pytest.mark.parametrize("shape", [(40, 3), (3, 40), (9, 10, 11), (17,)])
def test_lines_are_the_same_part_by_part(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(shape)
    whole = [numerics._line(values, dim) for dim in range(len(shape))]
    monkeypatch.setattr(numerics, "WIDENED", 16)
    for dim, line in enumerate(whole):
        torch.testing.assert_close(numerics._line(values, dim), line)
