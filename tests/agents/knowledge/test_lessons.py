"""Lessons: what one run learns, the next one of the same kind is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra store is not installed")

from kernelwright.agents.knowledge.lessons import LONGEST, keep_fix, keep_win, recall
from kernelwright.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as store:
        yield store


def win(store: Store, family: str, kernel: str, dsl: str = "cpp") -> None:
    keep_win(
        store, families=[family], dsl=dsl, target="cpu", task=family, words=f"{family} torch", sketch=f"sketch of {family}", kernel=kernel,
        speedup=1.5,
    )  # fmt: skip


def test_a_kernel_comes_back_for_a_task_of_its_family(store: Store) -> None:
    win(store, "norm", "the norm kernel")
    win(store, "softmax", "the softmax kernel")
    found = recall(store, "kernel", words="layer norm", families=["norm"], dsl="cpp", target="cpu", limit=1)
    assert [one.text for one in found] == ["the norm kernel"]
    assert "1.50x eager" in found[0].reason


def test_a_sketch_is_of_no_language_and_a_kernel_is(store: Store) -> None:
    win(store, "norm", "the norm kernel")
    common = {"words": "norm", "families": ["norm"], "dsl": "triton", "target": "h100", "limit": 3}
    assert [one.text for one in recall(store, "sketch", **common)] == ["sketch of norm"]  # type: ignore[arg-type]
    assert recall(store, "kernel", **common) == []  # type: ignore[arg-type]


def test_a_failure_brings_back_its_fix(store: Store) -> None:
    keep_fix(
        store, families=["norm"], dsl="cpp", target="cpu", failure="int64_t was not declared", patch="+ #include <cstdint>"
    )
    found = recall(store, "fix", words="error: int64_t was not declared", families=["conv"], dsl="cpp", target="cpu", limit=2)
    assert len(found) == 1
    assert "#include <cstdint>" in found[0].text


def test_what_is_too_long_to_be_shown_is_not_kept(store: Store) -> None:
    win(store, "norm", "x" * (LONGEST + 1))
    assert recall(store, "kernel", words="norm", families=["norm"], dsl="cpp", target="cpu", limit=1) == []


def test_a_lesson_of_another_family_is_not_shown_however_alike_its_words_are(store: Store) -> None:
    for family in ("sort index pointwise", "fft pointwise"):
        keep_win(
            store, families=family.split(), dsl="cpp", target="cpu", task=family, words="ctc loss over a batch", sketch="a sketch",
            kernel=f"kernel of {family}", speedup=100.0,
        )  # fmt: skip
    common = {"words": "ctc loss over a batch", "dsl": "cpp", "target": "cpu", "limit": 3}
    assert recall(store, "kernel", families=["loss", "index", "pointwise"], **common) == []  # type: ignore[arg-type]
    assert recall(store, "sketch", families=["loss", "pointwise"], **common) == []  # type: ignore[arg-type]
    found = recall(store, "kernel", families=["sort", "pointwise"], **common)  # type: ignore[arg-type]
    assert [one.text for one in found] == ["kernel of sort index pointwise"]
    assert "shares family sort" in found[0].reason


def test_a_kernel_by_hand_teaches_no_design(store: Store) -> None:
    """Its sketch was 0.60x eager, the kernel 8.50x: the figure is the kernel's."""
    keep_win(
        store, families=["loss"], dsl="cpp", target="cpu", task="ctc", words="ctc", sketch="the slow sketch", kernel="the fast kernel",
        speedup=8.5, by_hand=True,
    )  # fmt: skip
    common = {"words": "ctc", "families": ["loss"], "dsl": "cpp", "target": "cpu", "limit": 3}
    assert recall(store, "sketch", **common) == []  # type: ignore[arg-type]
    assert "8.50x eager, written by hand" in recall(store, "kernel", **common)[0].reason  # type: ignore[arg-type]


def test_lessons_come_from_different_tasks(store: Store) -> None:
    for number in range(3):
        win(store, "norm", f"kernel {number}")
    keep_win(
        store,
        families=["norm"],
        dsl="cpp",
        target="cpu",
        task="other",
        words="norm",
        sketch="",
        kernel="another task's",
        speedup=1.1,
    )
    found = recall(store, "kernel", words="norm torch", families=["norm"], dsl="cpp", target="cpu", limit=2)
    assert len(found) == 2
    assert "another task's" in [one.text for one in found]
