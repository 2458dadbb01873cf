"""The suites: tables of ours from which KernelBench-style task files are made.

1. A suite (`core`, `fused`, `modern`, `shapes`) is a compact table of `Row`s: what forward computes, from which inputs and layers.
2. `row.py` renders a row to the source of a task file: `Model`, `get_inputs`, `get_init_inputs`, and for rows with several
   shapes `get_inputs_dyn_list`.
3. `load` gives the rendered tasks of a suite, `find` the one called `core/relu`, `write` puts them into a folder, one file each;
   `task` is how every verb reads what names a task: a file, or one of ours.

Sizes suit a CPU: the reference takes about 1 to 300 ms on two cores. Nothing here imports torch.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.task import Task
from kernelwright.core.task.task import split_spec
from kernelwright.suites.row import Row, SuiteTask, render

NAMES = ("core", "fused", "modern", "shapes")

__all__ = ["NAMES", "Row", "SuiteTask", "find", "load", "task", "write"]


def load(suite: str) -> list[SuiteTask]:
    """All tasks of a suite in the table's order; an unknown name is told with the known ones."""
    if suite not in NAMES:
        raise KernelwrightError(f"there is no suite {suite!r}; the suites are {', '.join(NAMES)}")
    rows: tuple[Row, ...] = import_module(f"kernelwright.suites.{suite}").ROWS
    return [SuiteTask(row.name, row.family, render(row, suite)) for row in rows]


def find(spec: str) -> SuiteTask | None:
    """The task that `SUITE/NAME` means, so that every verb takes one without a file; None where the suite is none of ours."""
    suite, _, name = spec.partition("/")
    if suite not in NAMES or not name:
        return None
    tasks = load(suite)
    for task in tasks:
        if task.name == name:
            return task
    near = get_close_matches(name, [task.name for task in tasks])
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise KernelwrightError(f"there is no task {name!r} in the suite {suite}{hint}")


def task(spec: str | Path, dynamic: str | None = None) -> Task:
    """The task that a file (`softmax.py`, `module.py:ClassName`) or a suite's name (`core/softmax`) means; a file comes first.
    `dynamic` says which of its sizes vary."""
    path, _ = split_spec(str(spec))
    if not os.path.exists(path) and (found := find(str(spec))):  # Path.exists raises for a name that is too long
        return Task.from_source(found.source, path=str(spec)).varying(dynamic)
    return Task.from_path(spec).varying(dynamic)


def write(suite: str, folder: Path | str) -> list[Path]:
    """Write every task of a suite as `folder/NAME.py`, to be read, changed and benchmarked like any other."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for task in load(suite):
        path = folder / f"{task.name}.py"
        path.write_text(task.source)
        paths.append(path)
    return paths
