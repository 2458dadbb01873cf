"""Triton kernels written in the ways people write them: lifted, checked, and run in the interpreter against their references."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.compiler.lift import lift
from kernelwright.core.errors import CannotLift
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.sketch.interpret.compare import compare

HERE = Path(__file__).parent
QUICK = {"vector_add", "matmul_grouped"}
"""The others take part in `make test-all`; each lift starts a process with torch and Triton in it."""
NAMES = sorted(path.stem for path in (HERE / "kernels").glob("*.py"))


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES])
def test_lifted_sketch_agrees_with_the_reference(name: str) -> None:
    path = HERE / "kernels" / f"{name}.py"
    task = Task.from_path(HERE / "tasks" / f"{name}.py")
    lifted = lift(path.read_text(), "triton", task, path=str(path))
    loaded = load_task(task)
    found = compare(lifted.sketch, loaded.construct(0), loaded.draw(3)[0])
    assert found.agrees, found.reason


def test_other_languages_are_refused_in_a_sentence() -> None:
    with pytest.raises(CannotLift, match="no lifter for fortran"):
        lift("", "fortran")
