"""The suites: tables of ours from which KernelBench-style task files are made.

1. A suite (`core`, `fused`, `modern`) is a compact table of `Row`s: what forward computes, from which inputs and layers.
2. `row.py` renders a row to the source of a task file: `Model`, `get_inputs`, `get_init_inputs`, and for rows with several
   shapes `get_inputs_dyn_list`.
3. `load` gives the rendered tasks of a suite, `write` puts them into a folder, one file each, for `kernelwright bench`.

Sizes suit a CPU: the reference takes about 1 to 300 ms on two cores. Nothing here imports torch.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from kernelwright.errors import KernelwrightError
from kernelwright.suites.row import Row, SuiteTask, render

NAMES = ("core", "fused", "modern")

__all__ = ["NAMES", "Row", "SuiteTask", "load", "write"]


def load(suite: str) -> list[SuiteTask]:
    """All tasks of a suite in the table's order; an unknown name is told with the known ones."""
    if suite not in NAMES:
        raise KernelwrightError(f"there is no suite {suite!r}; the suites are {', '.join(NAMES)}")
    rows: tuple[Row, ...] = import_module(f"kernelwright.suites.{suite}").ROWS
    return [SuiteTask(row.name, row.family, render(row, suite)) for row in rows]


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
