"""Which shapes a running program calls its modules with, and how often: `kernelwright.record_shapes()`.

    with kernelwright.record_shapes("shapes.json"):          # or record_shapes("shapes.json", model.encoder)
        serve()

In: a file, and perhaps the module that is meant. Out: the file, which `kernelwright tune TASK --shapes shapes.json` reads; what it held
before is added to, so that a program's days can be put together. Calls keep their results and cost a few microseconds more.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from kernelwright.core.task import tree
from kernelwright.core.task.shape_counts import ShapeCount, parse_shapes, written

Call = tuple[str, tuple[tuple[int, ...], ...]]
MOST = 100_000
"""Kinds of calls that are kept; a program with more has no shapes that keep coming."""


@contextmanager
def record_shapes(path: str | Path, module: torch.nn.Module | None = None) -> Iterator[Counter[Call]]:
    """Counts the calls of modules (of all of them, or only of one) by the shapes of their tensors, and writes them to `path` at the end,
    also when the block ends with an error. Gives the counter, which grows as the program runs."""
    known: Counter[Call] = Counter()
    if Path(path).is_file():
        for one in parse_shapes(Path(path).read_text()):  # a file of something else is refused before the program runs
            known[one.module, one.shapes] += one.count
    calls: Counter[Call] = Counter()
    lock = threading.Lock()

    def count(called: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if torch.compiler.is_compiling():
            return
        given = [*args, *kwargs.values()]
        shapes = tuple(tuple(map(int, tensor.shape)) for tensor in tree.tensors(given))
        key = f"{type(called).__module__}.{type(called).__qualname__}", shapes
        with lock:
            if key in calls or len(calls) < MOST:
                calls[key] += 1

    original: Any = torch.nn.Module.__call__

    def counted(called: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if module is None or called is module:
            count(called, args, kwargs)
        return original(called, *args, **kwargs)

    # torch's hooks for all modules are not told the arguments that are given by name
    torch.nn.Module.__call__ = counted
    try:
        yield calls
    finally:
        torch.nn.Module.__call__ = original
        with lock:
            known.update(calls)
            Path(path).write_text(written(ShapeCount(times, (), name, shapes) for (name, shapes), times in known.items()))
