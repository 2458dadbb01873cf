"""What the schedules promise: fusion into few kernels, one read of a row, flat axes where nothing tells axes apart."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernelwright.compiler.designer import design_module
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.sketch.print import to_source

from .harness import Wrapped, designed, kernels


def source(function: object, *inputs: torch.Tensor) -> str:
    return to_source(design_module(Wrapped(function), inputs)[0].sketch)  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_is_one_kernel_that_reads_once(axis: int) -> None:
    design = designed(lambda x: F.softmax(x, axis), torch.randn(40, 30, 20))
    assert kernels(design) == 1
    assert to_source(design.sketch).count("load(") == 1


def test_group_norm_is_one_kernel() -> None:
    assert kernels(designed(nn.GroupNorm(2, 6), torch.randn(20, 6, 5, 7))) == 1


def test_pointwise_maths_sees_one_flat_axis() -> None:
    assert "[840]" in source(lambda x: F.relu(x) * 2, torch.randn(4, 5, 6, 7))


def test_long_sum_has_partial_results() -> None:
    design = designed(lambda x: x.sum(), torch.randn(300, 1000), tolerance=1e-2)
    assert kernels(design) == 2


def test_a_prime_length_is_cut_too() -> None:
    assert kernels(designed(lambda x: x.amax(), torch.randn(65537 * 2 + 1))) == 2


def test_rows_that_exceed_the_cache_are_walked_in_chunks() -> None:
    design = designed(lambda x: F.softmax(x, -1), torch.randn(9, 70001))
    assert "range(" in to_source(design.sketch)


@pytest.mark.parametrize("shape", [(9, 70001), (8, 5, 31, 901)])
def test_statistics_of_long_rows_take_one_walk(shape: tuple[int, ...]) -> None:
    """Mean and variance are merged chunk by chunk, also where a last chunk is shorter; a large mean does not cancel."""
    design = designed(nn.LayerNorm(shape[1:]), torch.randn(shape) * 2 + 100, tolerance=1e-3)
    text = to_source(design.sketch)
    assert kernels(design) == 1
    assert "spread" in text
    assert text.count("= load(input") == 2 * (
        2 if shape == (9, 70001) else 1
    )  # statistics and result, each with its last chunk


def test_statistics_of_few_long_rows() -> None:
    assert kernels(designed(nn.LayerNorm((5, 31, 901)), torch.randn(3, 5, 31, 901) + 10, tolerance=1e-3)) > 1


@pytest.mark.parametrize(
    ("chain", "steps"),
    [
        (lambda x: F.max_pool2d(F.group_norm(x, 2) * 2, 2).clamp(max=1.0), 3),  # two statistics; the norm where it is pooled
        (lambda x: F.group_norm(F.avg_pool2d(F.leaky_relu(x), 2), 2), 2),  # the pooling; its norm
        (lambda x: F.max_pool2d(F.softmax(x, 1), 2), 2),
        (lambda x: F.hardtanh(F.max_pool2d(x, 2)).mean((2, 3)), 2),
        (lambda x: F.max_pool2d(F.max_pool2d(x, 2), 2), 1),
    ],
)
def test_windows_share_no_kernel_with_other_reductions(chain: object, steps: int) -> None:
    """A window cuts the contiguous axis into short pieces: statistics in the same kernel went by strided elements, on one core."""
    design = designed(chain, torch.randn(4, 8, 64, 48))  # type: ignore[arg-type]
    text = to_source(design.sketch)
    assert kernels(design) == steps
    assert all("parallel(" in kernel for kernel in text.split("@kernel")[1:])


def test_ragged_windows_are_taken_axis_by_axis() -> None:
    design = designed(lambda x: (F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_max_pool1d(x[0], 5)), torch.randn(2, 3, 10, 13))
    assert kernels(design) >= 3


@pytest.mark.parametrize(
    "how", [{"scale_factor": 2.0}, {"size": (9, 7)}, {"scale_factor": (1.7, 0.6)}, {"size": (1, 11), "align_corners": True}]
)
def test_linear_resampling_is_taken_axis_by_axis(how: dict[str, object]) -> None:
    designed(lambda x: F.interpolate(x, mode="bilinear", **how), torch.randn(2, 3, 5, 8))  # type: ignore[arg-type]
    designed(lambda x: F.interpolate(x, size=13, mode="linear"), torch.randn(2, 3, 5))


def test_mish_takes_one_exponential() -> None:
    x = torch.tensor([-200.0, -30.0, -1.0, 0.0, 1e-3, 2.0, 19.0, 25.0, 1e4])
    design = designed(lambda x: (F.mish(x), torch.tanh(F.softplus(x)) * x), x, tolerance=1e-6)
    text = to_source(design.sketch)
    assert "tanh(" not in text
    assert "log1p(" not in text


def test_what_follows_a_product_is_in_its_epilogue() -> None:
    model = nn.Sequential(nn.Linear(17, 19), nn.GELU(), nn.Hardtanh())
    assert kernels(designed(model, torch.randn(33, 17))) == 1


def test_batch_norm_in_eval_mode_is_folded_into_the_convolution() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    assert kernels(designed(model, torch.randn(2, 3, 9, 9))) == 1


def test_a_diagonal_product_is_no_product() -> None:
    assert "gemm" not in source(lambda d, y: torch.diag(d) @ y, torch.randn(9), torch.randn(9, 5))


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(UnsupportedOperator, match=r"aten\.\w*eig"):
        design_module(Wrapped(lambda x: torch.linalg.eigvals(x).real), (torch.randn(3, 3),))


def test_concatenation_needs_no_choice_inside_a_kernel() -> None:
    assert "where(" not in source(lambda x, y: torch.cat([x, y], 1), torch.randn(3, 5), torch.randn(3, 4))


def test_parts_of_a_stack_are_read_where_they_lie() -> None:
    def rotated(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)

    assert "pick(" not in source(rotated, torch.randn(3, 4, 32))


def test_long_chains_are_stored_on_their_way() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(150):
            x = torch.sin(x) * 0.9 + 0.1
        return x

    assert 2 <= kernels(designed(chain, torch.randn(17))) <= 8


def test_a_loop_that_collects_its_steps_computes_each_once() -> None:
    def loop(x: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
        state, shown = torch.zeros(5), []
        for t in range(x.shape[0]):
            state = torch.tanh(state * decay + x[t]) * 0.5
            shown.append(state)
        return torch.stack(shown)

    text = source(loop, torch.randn(6, 5), torch.rand(5))
    assert text.count("tanh(") <= 8
    designed(loop, torch.randn(6, 5), torch.rand(5))
