"""What is migrated: a kernel file in, the sketches that it carries and the state_dict that it declares out. Nothing is run.

A file of ours has `SKETCH` (and `SKETCH_1` … for further input shapes) and declares its parameters by `_declare(self, name,
torch.zeros(shape, dtype=…), buffer)`. Of any other file both are empty; its sketch has to be lifted.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from kernelwright.core.errors import KernelFileError, SketchError
from kernelwright.core.kernel import Kernel
from kernelwright.sketch.nodes import Sketch
from kernelwright.sketch.parse import parse

Entry = tuple[str, tuple[int, ...], str, bool]


@dataclass(frozen=True)
class Carried:
    """The sketches of a file of ours, the main one first, and its state_dict in outline."""

    texts: tuple[str, ...]
    state: tuple[Entry, ...]

    @property
    def sketches(self) -> tuple[Sketch, ...]:
        return tuple(parse(text) for text in self.texts)


def carried(kernel: Kernel) -> Carried:
    """What a file carries; no texts when it is none of ours. A sketch that does not parse is the file's fault, and said so."""
    try:
        tree = ast.parse(kernel.source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise KernelFileError(f"{kernel.path}:{line}" if line else kernel.path, f"this is not Python: {error}") from error
    found: dict[int, str] = {}
    for node in tree.body:
        if (
            not isinstance(node, ast.Assign)
            or not isinstance(node.value, ast.Constant)
            or not isinstance(node.value.value, str)
        ):
            continue
        for target in node.targets:
            named = re.fullmatch(r"SKETCH(?:_(\d+))?", getattr(target, "id", ""))
            if named:
                found[int(named[1] or 0)] = node.value.value
    texts = tuple(found[number].strip() + "\n" for number in sorted(found))
    for text in texts:
        try:
            parse(text)
        except SketchError as error:
            raise KernelFileError(kernel.path, f"the sketch that it carries does not parse: {error}") from error
    return Carried(texts, _state(tree))


def _state(tree: ast.Module) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_declare" and len(node.args) == 4:
            _, name, zeros, buffer = node.args
            if not isinstance(zeros, ast.Call) or not isinstance(name, ast.Constant) or not isinstance(buffer, ast.Constant):
                continue
            try:
                shape = ast.literal_eval(zeros.args[0])
            except (ValueError, IndexError):
                continue
            dtype = next(
                (k.value.attr for k in zeros.keywords if k.arg == "dtype" and isinstance(k.value, ast.Attribute)), "float32"
            )
            entries.append((str(name.value), tuple(int(n) for n in shape), dtype, bool(buffer.value)))
    return tuple(entries)
