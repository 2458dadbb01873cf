"""Figures over tasks whose values are known beforehand."""

from __future__ import annotations

import math

import pytest

from kernelwright.core.verdict import Timing
from kernelwright.jobs.bench.metrics import geomean, group, summarise
from kernelwright.jobs.bench.record import Record


def record(
    name: str, speedup: float | None, *, vs_compile: float | None = None, spread: float = 0.05, **fields: object
) -> Record:
    timing = None
    if speedup is not None:
        timing = Timing(
            kernel_ms=1.0,
            eager_ms=speedup,
            speedup=speedup,
            speedup_low=speedup * (1 - spread),
            speedup_high=speedup * (1 + spread),
            compile_ms=vs_compile,
            speedup_vs_compile=vs_compile,
            roofline_fraction=0.5,
            bound="memory",
            noise=0.01,
            rounds=7,
        )
    outcome = "correct" if speedup is not None else "wrong_values"
    values = {"outcome": outcome, "family": "gemm", "reason": "said", **fields}
    return Record(key=f"s/{name}", suite="s", name=name, dsl="cpp", track="pure", timing=timing, seconds=2.0, **values)


def test_failures_count_in_shares_and_as_one_in_the_second_mean() -> None:
    whole = summarise([record("a", 4.0), record("b", 1.0), record("c", None), record("d", None)])
    assert (whole.tasks, whole.correct, whole.correct_share) == (4, 2, 0.5)
    assert whole.over_eager.geomean_correct is not None
    assert whole.over_eager.geomean_failures_as_one is not None
    assert whole.over_eager.geomean_correct.value == pytest.approx(2.0)
    assert whole.over_eager.geomean_failures_as_one.value == pytest.approx(math.sqrt(2.0))
    assert whole.over_eager.fast(0.0) == 0.5
    assert whole.over_eager.fast(1.0) == 0.25, "as fast as eager is not faster"
    assert whole.over_eager.fast(5.0) == 0.0


def test_an_untimed_kernel_is_correct_but_has_no_speed() -> None:
    whole = summarise([record("a", None, outcome="correct"), record("b", None, outcome="too_large")])
    assert whole.over_eager.fast(0.0) == 0.5
    assert whole.over_eager.geomean_correct is None
    assert whole.over_compile is None


def test_compile_is_counted_where_it_was_measured() -> None:
    whole = summarise([record("a", 4.0, vs_compile=2.0), record("b", 3.0)])
    assert whole.over_compile is not None
    assert whole.over_compile.geomean_correct is not None
    assert whole.over_compile.geomean_correct.count == 1
    assert whole.over_compile.geomean_failures_as_one is not None
    assert whole.over_compile.geomean_failures_as_one.value == pytest.approx(math.sqrt(2.0))


def test_beyond_doubt_needs_the_whole_interval() -> None:
    whole = summarise([record("a", 1.02), record("b", 1.2), record("c", 0.8), record("d", 0.98)])
    assert (whole.over_eager.surely_faster, whole.over_eager.slower) == (1, 1)


def test_intervals_hold_the_value_and_repeat() -> None:
    many = [record(str(place), 0.5 + place / 10) for place in range(30)]
    one, two = summarise(many), summarise(many)
    figure = one.over_eager.geomean_correct
    assert figure is not None
    assert figure.low < figure.value < figure.high
    assert one == two


def test_no_tasks_are_no_division_by_zero() -> None:
    assert summarise([]).correct_share == 0.0


def test_geomean_treats_halves_and_doubles_alike() -> None:
    assert geomean([2.0, 0.5]) == pytest.approx(1.0)


def test_groups_keep_their_order() -> None:
    rows = [record("a", 1.0, family="z"), record("b", 1.0, family="a"), record("c", 1.0, family="z")]
    assert {name: len(some) for name, some in group(rows, lambda row: row.family).items()} == {"z": 2, "a": 1}


def test_phases_are_medians_over_the_right_kernels_that_had_them() -> None:
    whole = summarise(
        [
            record("a", 2.0, phases={"look": 1.0, "trials": 3.0}),
            record("b", 2.0, phases={"look": 2.0, "trials": 5.0, "clock": 7.0}),
            record("c", None, phases={"look": 90.0}),
        ]
    )
    assert whole.phases_median == {"look": 1.5, "trials": 4.0, "clock": 7.0}
    assert whole.roofline_memory_median is not None
    assert whole.roofline_memory_median.count == 2
