"""What counts as better or worse between two reports, and what is only noise."""

from __future__ import annotations

from kernelwright.jobs.bench.compare import compare
from kernelwright.jobs.bench.record import Options, Record
from kernelwright.jobs.bench.report import Report, build
from tests.jobs.bench.sample import MACHINE, timing


def report(speeds: dict[str, float | None], *, spread: float = 0.02, **options: object) -> Report:
    records = [
        Record(
            key=name,
            suite="s",
            name=name,
            family="f",
            dsl="cpp",
            track="pure",
            outcome="correct" if speed else "wrong_values",
            reason="said",
            timing=timing(speed, None, 0.5, 1.0, spread) if speed else None,
        )
        for name, speed in speeds.items()
    ]
    return build("r", Options(**options), [MACHINE], records, len(records))


def kinds(before: Report, after: Report) -> dict[str, str]:
    return {change.key: change.kind for change in compare(before, after).changes}


def test_only_what_exceeds_both_intervals_counts() -> None:
    before = report({"a": 1.0, "b": 1.0, "c": 1.0, "d": 2.0})
    after = report({"a": 1.5, "b": 1.03, "c": 0.6, "d": 1.96})
    assert kinds(before, after) == {"a": "faster", "b": "same", "c": "slower", "d": "same"}
    wide = report({"a": 1.5}, spread=0.4)
    assert kinds(report({"a": 1.0}), wide) == {"a": "same"}


def test_correctness_weighs_more_than_speed() -> None:
    found = compare(report({"a": 9.0, "b": None, "c": None}), report({"a": None, "b": 0.1, "c": None}))
    assert {change.key: change.kind for change in found.changes} == {"a": "lost", "b": "gained", "c": "same"}
    assert [change.key for change in found.regressions] == ["a"]


def test_tasks_of_one_side_are_named_and_no_regression() -> None:
    found = compare(report({"a": 1.0, "b": 1.0}), report({"b": 1.0, "c": 1.0}))
    assert {change.key: change.kind for change in found.changes} == {"a": "only_before", "b": "same", "c": "only_after"}
    assert not found.regressions


def test_the_mean_is_over_what_both_timed() -> None:
    found = compare(report({"a": 1.0, "b": 2.0, "c": None}), report({"a": 2.0, "b": 4.0, "c": 5.0}))
    assert found.ratio is not None
    assert round(found.ratio.value, 6) == 2.0
    assert found.ratio.count == 2


def test_other_conditions_are_said() -> None:
    assert compare(report({"a": 1.0}), report({"a": 1.0}, scale=0.5)).differences == ("scale was 1.0, is 0.5",)
