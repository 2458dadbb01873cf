"""The clock's statistics: what they promise for any sample."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.judge.timing.statistics import bootstrap_median, lower_quartile, paired_ratio, self_noise

times = st.floats(min_value=1e-6, max_value=1e3)
samples = st.lists(times, min_size=1, max_size=25)


@given(samples)
def test_the_interval_holds_the_median_and_stays_within_the_sample(values: list[float]) -> None:
    interval = bootstrap_median(values, resamples=200)
    assert min(values) <= interval.low <= interval.middle <= interval.high <= max(values)
    assert interval.middle == median(values)


@given(samples, st.floats(min_value=0.01, max_value=100))
def test_what_slows_a_whole_round_cancels_in_the_ratio(values: list[float], factor: float) -> None:
    ratio = paired_ratio([value * factor for value in values], values)
    assert ratio.middle == pytest.approx(factor)
    assert ratio.half_width == pytest.approx(0, abs=1e-9)


def test_one_wild_round_does_not_move_the_median_but_few_rounds_widen_the_interval() -> None:
    calm = [2.0] * 11
    assert bootstrap_median([*calm, 900.0]).high == 2.0
    assert bootstrap_median([2.0, 2.1, 900.0]).high == 900.0


def test_the_same_measurements_give_the_same_interval() -> None:
    values = [1.0, 1.2, 0.9, 1.4, 1.1]
    assert bootstrap_median(values) == bootstrap_median(values)


def test_noise_is_zero_only_for_identical_runs() -> None:
    assert self_noise([1.0, 2.0], [1.0, 2.0]) == 0.0
    assert self_noise([1.0, 1.1, 0.9], [1.0, 1.0, 1.0]) == pytest.approx(0.1)


def test_no_values_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        bootstrap_median([])


@given(samples)
def test_three_quarters_reach_the_lower_quartile(values: list[float]) -> None:
    quartile = lower_quartile(values)
    assert sum(value >= quartile for value in values) >= 0.75 * len(values)


def test_an_interval_covers_what_differs_between_processes() -> None:
    fast, slow = [1.0, 1.01, 0.99, 1.0], [2.0, 2.02, 1.98, 2.0]
    together = bootstrap_median([*fast, *slow], starts=(0, 4))
    assert together.middle == 1.5
    assert together.low < 1.02
    assert together.high > 1.98
    assert bootstrap_median(fast, starts=(0, 4)) == bootstrap_median(fast)
    many = bootstrap_median([*fast, *fast, *fast, *slow[:1]], starts=(0, 12))
    assert many.middle == 1.5, "a process counts alike, however many rounds it had"
