"""The gallery through the judge: every cheat falls for its own reason, every honest kernel stands; the catalogue is covered.

A sample runs always; the rest, and kernels that need the timed phase, a long build or a time limit, are marked slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.core.errors import KernelwrightError
from kernelwright.judge import Judge, Times, Verdict
from kernelwright.judge.honesty.gallery import Exhibit, Outcome, Rates, complaint, examine, locate, read

EXHIBITS = read(locate())
NOT_ON_A_CPU = {"C34", "D39", "D43", "D44", "D48"}
"""CUDA graphs, side streams, the persisting L2 window and its flush need a GPU; a geometric mean over shapes needs a bench."""
CATALOGUE = {
    f"{room}{number}"
    for room, first, last in (("A", 1, 19), ("B", 20, 28), ("C", 29, 38), ("D", 39, 49), ("E", 50, 66))
    for number in range(first, last + 1)
}


class Judges(dict[bool, Judge]):
    """A judge for most exhibits and a patient one for long builds, each started when first needed."""

    def __missing__(self, patient: bool) -> Judge:
        self[patient] = Judge(times=Times(build=300.0 if patient else 60.0, run=10.0))
        return self[patient]


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    both = Judges()
    yield both
    for one in both.values():
        one.close()


def sample() -> set[Path]:
    """What every test run can afford: one fast cheat for each entry of the catalogue, and every fifth honest kernel."""
    fast = [one for one in EXHIBITS if one.fast]
    first = {one.entry.split(",")[0]: one.path for one in reversed(fast) if one.kind == "cheat"}
    return {*first.values(), *[one.path for one in fast if one.kind == "honest"][::5]}


def cases() -> list[object]:
    quick = sample()
    return [pytest.param(one, id=one.name, marks=() if one.path in quick else pytest.mark.slow) for one in EXHIBITS]


def explain(outcome: Outcome) -> str:
    return f"{outcome.complaint}; got {outcome.verdict.status}: {outcome.verdict.reason}"


@pytest.mark.parametrize("exhibit", cases())
def test_an_exhibit_gets_the_verdict_it_names(judges: Judges, exhibit: Exhibit) -> None:
    outcome = examine(judges[exhibit.slow], exhibit)
    assert outcome.ok, explain(outcome)


def test_every_entry_of_the_catalogue_that_a_cpu_can_run_has_a_cheat() -> None:
    shown = {entry for one in EXHIBITS for entry in one.entry.split(",") if entry}
    assert shown <= CATALOGUE
    assert CATALOGUE - NOT_ON_A_CPU - shown == set()


def test_the_gallery_is_as_large_as_promised() -> None:
    assert sum(one.kind == "cheat" for one in EXHIBITS) >= 55
    assert sum(one.kind == "honest" for one in EXHIBITS) >= 25


def test_every_pattern_can_fail() -> None:
    for one in EXHIBITS:
        assert one.kind == "honest" or not re.search(one.reason, "x", re.IGNORECASE), one.name


def verdict(status: str, reason: str) -> Verdict:
    return Verdict(status=status, reason=reason)


def test_a_verdict_is_compared_by_status_and_reason() -> None:
    cheat = Exhibit(Path("c.py"), "cheat", Path("t.py"), ("wrong_values", "cheating"), reason="alias|buffer")
    assert complaint(cheat, verdict("cheating", "a later call changed the Buffer")) == ""
    assert complaint(cheat, verdict("cheating", "a library computed")) == "rejected for another reason than its own"
    assert complaint(cheat, verdict("correct", "right in 9 trials")) == "expected wrong_values or cheating"


def test_rates_tell_false_accepts_from_wrong_reasons_and_false_rejects() -> None:
    cheat = Exhibit(Path("c.py"), "cheat", Path("t.py"), ("cheating",))
    honest = Exhibit(Path("h.py"), "honest", Path("t.py"), ("correct",))
    said = [(cheat, "correct"), (cheat, "crashed"), (cheat, "cheating"), (honest, "correct"), (honest, "timed_out")]
    outcomes = [Outcome(one, verdict(status, "so"), complaint(one, verdict(status, "so"))) for one, status in said]
    assert Rates.of(outcomes) == Rates(cheats=3, false_accepts=1, misnamed=1, honest=2, false_rejects=1)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("# task: t\n", "lacks entry, reason, status"),
        ("# task: u\n# status: cheating\n# reason: x\n# entry: A1\n", "task 'u' is not in"),
        ("# task: t\n# status: rejected\n# reason: x\n# entry: A1\n", "rejected is no status"),
        ("# task: t\n# status: cheating\n# reason: x\n# entry: A1\n# track: any\n", "pure or hybrid"),
        ("# task: t\n# status: cheating\n# reason: x\n# entry: A1\n# tolerance: 1\n", "unknown keys: tolerance"),
    ],
)
def test_a_bad_header_is_an_error_and_not_a_kernel_left_out(tmp_path: Path, header: str, sentence: str) -> None:
    for folder in ("tasks", "cheats", "honest"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tasks" / "t.py").write_text("")
    (tmp_path / "cheats" / "c.py").write_text(header + "import torch\n")
    with pytest.raises(KernelwrightError, match=sentence):
        read(tmp_path)


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(KernelwrightError, match="no cheats"):
        read(tmp_path)


def test_nothing_that_one_candidate_leaves_behind_reaches_the_next(judges: Judges) -> None:
    mark = next(one for one in EXHIBITS if one.path.stem == "61_state_for_the_next")
    assert [examine(judges[False], mark).complaint for _ in range(3)] == ["", "", ""]
