"""Kernel files as other people write them, for a GPU: they run unchanged without one, and give what their reference gives."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.py"))
FAST = ("fused_softmax_tutorial", "descriptors_and_locks", "cooperative_groups_softmax")
"""Run in every test run, for the values alone; all files, and their compilation for a target, are slow."""
NEEDS = {"triton": "triton", "tilelang": "tilelang", "cuda_c": "torch"}


def outcome(path: Path, *options: str) -> str:
    language = path.parent.name
    if importlib.util.find_spec(NEEDS[language]) is None:
        pytest.skip(f"the extra {language} is not installed")
    done = subprocess.run(
        [sys.executable, str(HERE / "run_file.py"), language, str(path), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return "same" if done.stdout.strip().endswith("same") else done.stderr[-2000:]


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem in FAST], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_a_file_for_a_gpu_runs_without_one(path: Path) -> None:
    assert outcome(path) == "same"


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_it_is_compiled_for_the_target_too(path: Path) -> None:
    assert outcome(path, "--compile") == "same"
