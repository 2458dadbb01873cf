"""Checks of what a Sketch declares: names, sizes, tunables, tensors, steps, and what forward returns.

In: a Sketch. Out: SketchErrors. The checker stops here when there are any, since everything else builds on declarations.
"""

from __future__ import annotations

import json
import keyword
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate, symbols
from kernelwright.sketch.types import Typer, show_shape
from kernelwright.sketch.walk import statements

RESERVED = frozenset({"inf", "nan", "True", "False", "None", "pick", *(dtype.value for dtype in nodes.DType)})
ROLES = ("input", "param", "constant", "output", "temp", "view")


def bases(sketch: nodes.Sketch) -> dict[str, str]:
    """The memory each tensor names: its own, or that of the tensor it is a view of."""
    return {tensor.name: tensor.source if tensor.role == "view" else tensor.name for tensor in sketch.tensors}


def declaration_errors(sketch: nodes.Sketch) -> list[SketchError]:
    """Faults of the declarations, all of them."""
    return [*_names(sketch), *_sizes(sketch), *_tensors(sketch), *_steps(sketch), *_returns(sketch)]


def _names(sketch: nodes.Sketch) -> Iterator[SketchError]:
    declared = [size.name for size in sketch.sizes] + [tunable.name for tunable in sketch.tunables]
    declared += [tensor.name for tensor in sketch.tensors]
    kernels = [step for step in sketch.steps if isinstance(step, nodes.Kernel)]
    for group in (declared, [kernel.name for kernel in kernels]):
        for name, count in Counter(group).items():
            if count > 1:
                yield SketchError(f"{name} is declared {count} times")
    inner: set[str] = set()
    for kernel in kernels:
        for statement, _ in statements(kernel.body):
            if isinstance(statement, nodes.Assign):
                inner.add(statement.name)
            elif isinstance(statement, nodes.For):
                inner.add(statement.var)
    for name in sorted({*declared, *(k.name for k in kernels), *inner}):
        if not name.isidentifier() or keyword.iskeyword(name) or name in RESERVED:
            yield SketchError(f"{name!r} cannot be a name", hint="use a plain identifier that the language does not use itself")


def _sizes(sketch: nodes.Sketch) -> Iterator[SketchError]:
    for size in sketch.sizes:
        if size.value < 0:
            yield SketchError(f"size {size.name} is {size.value}")
    for tunable in sketch.tunables:
        if tunable.value not in tunable.domain:
            yield SketchError(f"tunable {tunable.name} is {tunable.value}, which is not in its domain {list(tunable.domain)}")
        if any(value <= 0 for value in tunable.domain):
            yield SketchError(f"tunable {tunable.name} has values that are not positive in its domain {list(tunable.domain)}")


def _tensors(sketch: nodes.Sketch) -> Iterator[SketchError]:
    typer = Typer(sketch)
    values = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    constants = {name: len(items) for name, items in sketch.constants}
    seen: dict[str, nodes.Tensor] = {}
    inputs = Counter(t.source for t in sketch.tensors if t.role == "input")
    for tensor in sketch.tensors:
        where = f"tensor {tensor.name}"
        unknown = sorted(set().union(*(symbols(extent) for extent in tensor.shape)) - values.keys())
        if unknown:
            yield SketchError(f"the shape of {where} uses {', '.join(unknown)}, which is not a size or tunable")
            continue
        if any(evaluate(extent, values) < 0 for extent in tensor.shape):
            yield SketchError(f"{where} has a negative extent in {show_shape(tensor.shape)}")
        match tensor.role:
            case "input":
                if not tensor.source.isdigit():
                    yield SketchError(f"{where}: an input's source is its position in forward, such as '0'")
                elif inputs[tensor.source] > 1:
                    yield SketchError(
                        f"{where}: argument {tensor.source} is declared twice", hint="declare a view of the first"
                    )
            case "param":
                if not tensor.source:
                    yield SketchError(f"{where}: a param's source is its name in the state_dict")
            case "constant":
                yield from _constant(tensor, constants, values)
            case "view":
                yield from _view(tensor, seen, typer)
            case role if role not in ROLES:
                yield SketchError(f"{where} has the unknown role {role!r}", hint=f"roles are {', '.join(ROLES)}")
        seen[tensor.name] = tensor


def _constant(tensor: nodes.Tensor, constants: dict[str, int], values: dict[str, int]) -> Iterator[SketchError]:
    if tensor.source not in constants:
        yield SketchError(f"tensor {tensor.name}: there is no constant({tensor.source!r}, …)")
        return
    count = 1
    for extent in tensor.shape:
        count *= evaluate(extent, values)
    if count != constants[tensor.source]:
        yield SketchError(
            f"tensor {tensor.name} has {count} elements, but constant {tensor.source!r} has {constants[tensor.source]}"
        )


def _view(tensor: nodes.Tensor, seen: dict[str, nodes.Tensor], typer: Typer) -> Iterator[SketchError]:
    base = seen.get(tensor.source)
    if base is None or base.role == "view":
        yield SketchError(f"tensor {tensor.name} is a view of {tensor.source!r}, which is not a tensor declared before it")
    elif base.dtype is not tensor.dtype:
        yield SketchError(
            f"tensor {tensor.name} is {tensor.dtype.value}, but it is a view of {base.name}, which is {base.dtype.value}"
        )
    elif not typer.same(_volume(tensor.shape), _volume(base.shape)):
        yield SketchError(
            f"view {tensor.name} {show_shape(tensor.shape)} has not as many elements as {base.name} {show_shape(base.shape)}"
        )


def _volume(shape: tuple[nodes.Index, ...]) -> nodes.Index:
    total: nodes.Index = nodes.Int(1)
    for extent in shape:
        total = nodes.IndexOp("*", total, extent)
    return total


def _steps(sketch: nodes.Sketch) -> Iterator[SketchError]:
    tensors = {tensor.name: tensor for tensor in sketch.tensors}
    base = bases(sketch)
    for step in sketch.steps:
        if isinstance(step, nodes.LibraryCall):
            for name in (*step.inputs, *step.outputs):
                if name not in tensors:
                    yield SketchError(f"{step.operator} uses the unknown tensor {name}")
            for name in step.outputs:
                if name in tensors and tensors.get(base[name], tensors[name]).role not in ("output", "temp"):
                    yield SketchError(f"{step.operator} writes {name}, which is not an output or a temp")
            try:
                whole = isinstance(json.loads(step.attributes), dict)
            except json.JSONDecodeError:
                whole = False
            if not whole:
                yield SketchError(f"the attributes of {step.operator} are not a JSON object: {step.attributes}")


def _returns(sketch: nodes.Sketch) -> Iterator[SketchError]:
    try:
        tree = json.loads(sketch.returns)
    except json.JSONDecodeError:
        yield SketchError(f"returns is not a JSON tree: {sketch.returns!r}")
        return
    tensors = {tensor.name: tensor for tensor in sketch.tensors}
    for name in _leaves(tree):
        if name not in tensors:
            yield SketchError(f"returns names {name!r}, which is not a tensor")
        elif tensors[name].role == "temp":
            yield SketchError(f"returns names the temp {name}", hint="declare it with role='output'")


def _leaves(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, list):
        for item in tree:
            yield from _leaves(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from _leaves(item)
