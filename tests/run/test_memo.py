"""What a run remembers: made once, recalled from the store for this run alone, repeated from a recording on any machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelwright.core.errors import ModelError
from kernelwright.run.memo import Memory, beside


class Memos:
    """A store's memos, in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}

    def recall(self, kind: str, key: str) -> bytes | None:
        return self.kept.get((kind, key))

    def keep(self, kind: str, key: str, data: bytes, **facts: Any) -> str:
        self.kept[kind, key] = data
        return ""


def count(calls: list[int]) -> dict[str, Any]:
    calls.append(1)
    return {"value": len(calls)}


def test_a_finding_is_made_once_for_a_run_and_anew_for_another() -> None:
    memos, calls = Memos(), list[int]()
    assert Memory("run", memos).once("facts", {"task": "a"}, lambda: count(calls)) == ({"value": 1}, "made")
    assert Memory("run", memos).once("facts", {"task": "a"}, lambda: count(calls)) == ({"value": 1}, "store")
    assert Memory("run", memos).once("facts", {"task": "b"}, lambda: count(calls)) == ({"value": 2}, "made")
    assert Memory("other", memos).once("facts", {"task": "a"}, lambda: count(calls)) == ({"value": 3}, "made")


def test_a_damaged_memo_is_made_anew() -> None:
    memos = Memos()
    Memory("run", memos).once("facts", {}, lambda: {"value": 1})
    memos.kept = dict.fromkeys(memos.kept, b"{broken")
    assert Memory("run", memos).once("facts", {}, lambda: {"value": 2}) == ({"value": 2}, "made")


def test_a_recording_answers_first(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    Memory(record=file).once("facts", {"task": "a"}, lambda: {"value": "there"})
    found = Memory("run", Memos(), replay=file).once("facts", {"task": "a"}, lambda: {"value": "here"})
    assert found == ({"value": "there"}, "recording")


def test_a_recording_without_findings_is_replayed_with_new_ones_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    assert Memory(replay=file).once("facts", {}, lambda: {"value": 1}) == ({"value": 1}, "made")
    beside(file).write_text("nonsense\n")
    with pytest.raises(ModelError, match=r"talk\.jsonl\.facts:1: this is not the record of a finding"):
        Memory(replay=file)
