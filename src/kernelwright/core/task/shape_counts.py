"""The shapes that a program really calls with, and how often: `--shapes` as somebody wrote it, or what `record_shapes` recorded. Imports no
torch.

In: `"512,768; 64,768*10"` (the sizes that vary, in the task's order, and how often), or a recorded file's text. Out: `ShapeCount`s; with a
task's `Dynamic`, how often each setting of its sizes came (`counted`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.core.errors import ConfigError
from kernelwright.core.task.dynamic import Dynamic

HOW = 'write the sizes that vary as "512,768; 64,768*10" (how often after *), or name a file of kernelwright.record_shapes()'
FORMAT = "kernelwright-shapes-1"

_SETTING = re.compile(r"\s*(\d+(?:\s*,\s*\d+)*)\s*(?:\*\s*(\d+))?\s*")


@dataclass(frozen=True)
class ShapeCount:
    """One kind of call: the sizes that vary (written by hand), or the shapes of all input tensors of a module (recorded)."""

    count: int
    sizes: tuple[int, ...] = ()
    module: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()


def parse_shapes(text: str) -> list[ShapeCount]:
    """What `--shapes` says, with a file's text in place of its name; a ConfigError of one sentence for anything else."""
    if text.lstrip().startswith("{"):
        return _recorded(text)
    found = []
    for item in filter(str.strip, text.split(";")):
        said = _SETTING.fullmatch(item)
        if said is None:
            raise ConfigError(f"--shapes: {item.strip()!r} is no list of sizes; {HOW}")
        found.append(ShapeCount(int(said[2] or 1), tuple(int(size) for size in said[1].split(","))))
    if not found:
        raise ConfigError(f"--shapes names no sizes; {HOW}")
    return found


def shapes_text(said: str) -> str:
    """The text behind `--shapes`: of the file that it names, else itself. It is read, so that what cannot be is told at once."""
    path = Path(said)
    try:
        text = path.read_text() if path.is_file() else said
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--shapes {said}: the file cannot be read: {error}") from error
    parse_shapes(text)
    return text


def written(counts: Iterable[ShapeCount]) -> str:
    """Recorded calls as the text of a file, the most frequent first."""
    calls = [
        {"module": one.module, "count": one.count, "shapes": [list(shape) for shape in one.shapes]}
        for one in sorted(counts, key=lambda one: (-one.count, one.module, one.shapes))
    ]
    return json.dumps({"format": FORMAT, "calls": calls}, indent=1) + "\n"


def _recorded(text: str) -> list[ShapeCount]:
    try:
        told: dict[str, Any] = json.loads(text)
        if told["format"] != FORMAT:
            raise ValueError(f"its format is {told['format']}")
        found = [
            ShapeCount(int(call["count"]), (), str(call["module"]), tuple(tuple(map(int, shape)) for shape in call["shapes"]))
            for call in told["calls"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"--shapes: this is no file of kernelwright.record_shapes(): {error}") from error
    if not found:
        raise ConfigError("--shapes: no call was recorded in this file")
    return found


def counted(
    said: Sequence[ShapeCount], dynamic: Dynamic, own: Sequence[Sequence[int]], module: str = ""
) -> dict[tuple[int, ...], int]:
    """How often each setting of a task's sizes (in the order of its symbols) came, the most frequent first. Of recorded calls those
    count that the task could have been: all fixed extents as in its `own` inputs, and of a module of the task's name where one was
    recorded. Raises ConfigError where nothing is left."""
    found: dict[tuple[int, ...], int] = {}
    recorded = [one for one in said if one.shapes and _fits(one, dynamic, own)]
    named = [one for one in recorded if one.module.rpartition(".")[2] == module]
    for one in [*(named or recorded), *(one for one in said if not one.shapes)]:
        sizes = one.sizes or tuple(dynamic.read(one.shapes)[symbol.name] for symbol in dynamic.symbols)
        if len(sizes) != len(dynamic.symbols):
            raise ConfigError(
                f"--shapes {','.join(map(str, sizes))}: this task varies {len(dynamic.symbols)} sizes: {dynamic.ranges}"
            )
        for symbol, size in zip(dynamic.symbols, sizes, strict=True):
            if not symbol.admits(size):
                raise ConfigError(f"--shapes: {dynamic.label(symbol.name)} = {size} is not in {symbol.range}")
        found[sizes] = found.get(sizes, 0) + one.count
    if not found:
        raise ConfigError(f"--shapes: none of the recorded calls is one of this task, where {dynamic.ranges} vary")
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _fits(one: ShapeCount, dynamic: Dynamic, own: Sequence[Sequence[int]]) -> bool:
    if [len(shape) for shape in one.shapes] != [len(shape) for shape in own]:
        return False
    sizes = dynamic.read(one.shapes)
    inside = all(symbol.admits(sizes[symbol.name]) for symbol in dynamic.symbols)
    return inside and dynamic.shapes(own, sizes) == [tuple(shape) for shape in one.shapes]
