"""Lessons: what worked is found again, the nearest first."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the store needs SQLAlchemy (pip install 'kernelwright[store]')")

from kernelwright.store import Lesson, Store

LESSONS = [
    Lesson("kernel", "norm", "cpp", "cpu", "RMSNorm over the last axis, 4096 rows", {"text": "rms"}),
    Lesson("kernel", "norm", "cpp", "cpu", "LayerNorm with weight and bias", {"text": "layer"}),
    Lesson("kernel", "matmul", "cpp", "cpu", "matmul + bias + gelu", {"text": "gemm"}),
    Lesson("kernel", "norm", "triton", "h100", "RMSNorm over the last axis", {"text": "triton rms"}),
    Lesson("sketch", "norm", "any", "cpu", "RMSNorm", {"text": "sketch"}),
    Lesson("fix", "scan", "cpp", "cpu", "error: 'vfloat' was not declared in this scope", {"text": "include the prelude"}),
]


@pytest.fixture(params=["words indexed", "words compared"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """With FTS5, and as on a database without it."""
    store = Store.open(tmp_path)
    store._database.full_text = store._database.full_text and request.param == "words indexed"
    for lesson in LESSONS:
        store.learn(lesson)
    return store


def texts(found: list[Lesson]) -> list[str]:
    return [lesson.payload["text"] for lesson in found]


def test_words_and_family_decide(store: Store) -> None:
    assert texts(store.lessons("rms_norm of 128 rows", "norm", "cpp", "cpu"))[:2] == ["rms", "sketch"]
    assert texts(store.lessons("fused GELU after a matmul", "matmul", "cpp", "cpu"))[0] == "gemm"
    assert texts(store.lessons("'vfloat' was not declared", kind="fix")) == ["include the prelude"]


def test_a_language_is_a_must_and_the_limit_is_kept(store: Store) -> None:
    found = store.lessons("RMSNorm", "norm", "triton", "h100", 10)
    assert texts(found)[0] == "triton rms"
    assert {lesson.dsl for lesson in found} == {"triton", "any"}
    assert len(store.lessons("norm", "norm", "cpp", "cpu", 2)) == 2


def test_what_shares_nothing_is_not_found(store: Store) -> None:
    assert store.lessons("completely elsewhere") == []
    assert store.lessons('"); DROP TABLE lessons; -- " OR NEAR( *') == []
    assert texts(store.lessons("gelu")) == ["gemm"]


def test_the_same_lesson_twice_is_one(store: Store) -> None:
    store.learn(LESSONS[0])
    assert texts(store.lessons("RMSNorm rows", "norm", "cpp", "cpu", 10)).count("rms") == 1


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="kind 'poem' is unknown"):
        Lesson("poem", "", "", "", "", {})  # type: ignore[arg-type]
