"""TileLang programs as people write them are right, interpreted and executed as compiled; the same with a seeded bug are not.

They run in one child process, because our launcher takes TileLang's place for good where it is installed.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelwright.compiler.offdevice.nvcc import NVCC

pytest.importorskip("tilelang", reason="the extra tilelang is not installed")

CHILD = Path(__file__).parent / "programs.py"


def _names() -> list[str]:
    functions = [node for node in ast.parse(CHILD.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if any(getattr(each, "id", "") == "program" for each in node.decorator_list)]


GOOD = [name for name in _names() if not name.startswith("bug_")]
BAD = [name for name in _names() if name.startswith("bug_")]


@pytest.fixture(scope="module", params=["interpreter", pytest.param("emulator", marks=pytest.mark.slow)])
def report(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "emulator" and NVCC is None:
        pytest.skip("nvcc is not installed")
    done = subprocess.run([sys.executable, str(CHILD), request.param], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"executed": request.param == "emulator"}


@pytest.mark.parametrize("name", GOOD)
def test_programs_as_people_write_them_are_right(report: dict[str, Any], name: str) -> None:
    assert report["outcomes"][name] == "right"


@pytest.mark.parametrize("name", BAD)
def test_seeded_bugs_are_never_right(report: dict[str, Any], name: str) -> None:
    assert report["outcomes"][name] != "right"


def test_there_are_a_dozen_good_programs_and_as_many_kinds_of_bugs() -> None:
    assert len(GOOD) >= 12
    assert len(BAD) >= 9


def test_an_access_outside_of_shared_memory_is_named(report: dict[str, Any]) -> None:
    said = report["outcomes"]["bug_beyond_shared_memory"]
    if report["executed"]:
        assert "accesses shared memory beyond what its block has" in said
        assert "stage_[(((int)threadIdx.x) + 1)]" in said
    else:
        assert said.startswith("OutOfBounds")
        assert "stage_[64]" in said


def test_a_removed_barrier_is_named_by_the_interpreter(report: dict[str, Any]) -> None:
    if not report["executed"]:
        said = report["outcomes"]["bug_removed_barrier"]
        assert said.startswith("Race")
        assert "T.sync_threads()" in said


def test_launches_are_counted_and_autotuning_is_told(report: dict[str, Any]) -> None:
    assert report["launches"] > len(GOOD)
    assert any("autotuned" in note for note in report["notes"])
    if report["executed"]:
        assert "executed as compiled for sm_80 with no device" in report["notes"]
