"""From a trace to a sketch: launches become kernels, fills and copies too, memory becomes tensors.

In: a `Trace`, and the language's function that writes a launch's body into a `Program`. Out: a `Lifted`: a sketch that checks, and
notes. A parallel loop whose independence the checker cannot prove is made an ordinary one (some order of the programs is always a
right one).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from kernelwright.compiler.lift.access import axis
from kernelwright.compiler.lift.grid import Grid
from kernelwright.compiler.lift.launches import Buffer, Copy, Fill, Launch, Operation, Step, Trace, View, row_major
from kernelwright.compiler.lift.program import Program, Views
from kernelwright.compiler.lift.values import Data, Ints, Mask, Num, Ptr, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.errors import CannotLift
from kernelwright.sketch import nodes
from kernelwright.sketch.check.bounds import Prover
from kernelwright.sketch.check.declarations import bases
from kernelwright.sketch.check.races import races
from kernelwright.sketch.check.rules import check
from kernelwright.sketch.index import simplify
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int, Sym
from kernelwright.sketch.types import Typer

ROW = 4096
"""Elements of a tile in a fill or a copy."""
Read = Callable[[Launch, Program], None]


@dataclass(frozen=True)
class Lifted:
    """A foreign kernel as a sketch, and what its reader should know about it."""

    sketch: nodes.Sketch
    notes: tuple[str, ...]
    entry: str = "ModelNew"
    """The class or function that was called."""
    init: str = "[]"
    """What it was constructed with, as `get_init_inputs` would return it."""


def compose(trace: Trace, read: Read, *, name: str, doc: str, path: str) -> Lifted:
    """The sketch of a whole forward."""
    buffers = dict(trace.buffers)
    steps = list(trace.steps)
    returns = _returned(trace.returns, buffers, steps)
    steps = _live(_ordered_inputs(buffers) + steps, buffers)
    views = Views(buffers)
    notes = list(trace.notes)
    kernels: list[nodes.Kernel] = []
    titles: set[str] = set()
    for step in steps:
        if isinstance(step, Operation):
            raise CannotLift(f"forward calls {step.name}, which computes outside of the kernels", path=path, line=step.line)
        grid = Grid(step.grid if isinstance(step, Launch) else ())
        program = Program(grid, views, set(buffers) | {"size", "tunable", "tensor", "load", "store", "full", "iota"}, path)
        if isinstance(step, Launch):
            read(step, program)
        else:
            _moved(step, program)
        body, told = grid.loops(tuple(program.out))
        notes += [note for note in (*program.notes, *told) if note not in notes]
        title = _title(step, titles)
        if body:
            kernels.append(nodes.Kernel(title, body, doc=_doc(step)))
    sketch = nodes.Sketch(
        _identifier(name),
        doc,
        (),
        (),
        _tensors(buffers, views, kernels),
        tuple(kernels),
        json.dumps(returns),
        _constants(buffers),
    )
    return _checked(sketch, notes, path)


# ---------------------------------------------------------------- memory


def _returned(tree: Any, buffers: dict[str, Buffer], steps: list[Step]) -> Any:
    """The tree of names that forward returns. What is returned whole becomes an output; anything else is copied into one."""
    if isinstance(tree, View):
        buffer = buffers[tree.buffer]
        if buffer.role == "temp" and tree.whole(buffer):
            buffers[tree.buffer] = replace(buffer, role="output", shape=tree.shape)
            return tree.buffer
        if tree.whole(buffer) and buffer.order is None and tree.shape == buffer.shape:
            return tree.buffer
        name = f"result{sum(key.startswith('result') for key in buffers)}"
        buffers[name] = Buffer(name, "output", tree.shape, buffer.dtype)
        steps.append(Copy(View(name, tree.shape, row_major(tree.shape)), tree))
        return name
    if isinstance(tree, tuple):
        return [_returned(item, buffers, steps) for item in tree]
    if isinstance(tree, list):
        return {"$list": [_returned(item, buffers, steps) for item in tree]}
    if isinstance(tree, dict):
        return {str(key): _returned(item, buffers, steps) for key, item in tree.items()}
    if tree is None or isinstance(tree, bool | int | float):
        return tree
    raise CannotLift(f"forward returns a {type(tree).__name__}")


def _ordered_inputs(buffers: dict[str, Buffer]) -> list[Step]:
    """Inputs that do not lie row by row: a sketch's tensors do, so they are copied into the order that the kernel counts on."""
    copies: list[Step] = []
    for name, buffer in list(buffers.items()):
        if buffer.order is None or buffer.role in ("temp", "output"):
            continue
        given = f"{name}_given"
        shape = tuple(buffer.shape[buffer.order.index(k)] for k in range(len(buffer.shape)))
        strides = row_major(shape)
        buffers[given] = replace(buffer, name=given, shape=shape, order=None)
        buffers[name] = replace(buffer, role="temp", source="", order=None)
        source = View(given, buffer.shape, tuple(strides[k] for k in buffer.order))
        copies.append(Copy(View(name, buffer.shape, row_major(buffer.shape)), source))
    return copies


def _live(steps: Sequence[Step], buffers: Mapping[str, Buffer]) -> list[Step]:
    """Steps whose results somebody needs."""
    wanted = {name for name, buffer in buffers.items() if buffer.role == "output"}
    kept: list[Step] = []
    for step in reversed(steps):
        written = _written(step)
        if written is None or written & wanted:
            kept.append(step)
            wanted |= _read(step)
    return list(reversed(kept))


def _written(step: Step) -> set[str] | None:
    """The buffers a step writes; None for a launch, which may write any of its tensors."""
    match step:
        case Fill(target) | Copy(target, _):
            return {target.buffer}
        case Operation(outputs=outputs):
            return {view.buffer for view in outputs}
    return None


def _read(step: Step) -> set[str]:
    found: set[str] = set()
    match step:
        case Copy(target, source):
            found |= {source.buffer, target.buffer}
        case Launch(arguments=arguments):
            found |= _views(list(arguments.values()))
        case Operation(arguments=given, keywords=named):
            found |= _views([*given, *named.values()])
    return found


def _views(value: Any) -> set[str]:
    if isinstance(value, View):
        return {value.buffer}
    if isinstance(value, tuple | list):
        return set().union(*map(_views, value))
    return set()


# ---------------------------------------------------------------- fills and copies


def _moved(step: Fill | Copy, program: Program) -> None:
    """A fill or copy as loops over rows."""
    source = step.source if isinstance(step, Copy) else None
    shape = step.target.shape
    target = _strides(step.target, shape)
    origin = _strides(source, shape) if source is not None else ()
    dense = target == row_major(shape, target) and (source is None or origin == row_major(shape, origin))
    if dense:
        shape, target, origin = (prod(shape),), (1,), (1,)
    *outer, last = shape or (1,)
    names: list[tuple[str, int, int]] = []
    at, start = Int(step.target.offset), Int(source.offset if source else 0)
    to: Index = at
    fro: Index = start
    for k, extent in enumerate(outer):
        if extent == 1:
            continue
        name = program.fresh("i")
        names.append((name, extent, 1))
        program.loops[name] = (0, extent - 1)
        to = IndexOp("+", to, IndexOp("*", Sym(name), Int(target[k])))
        fro = IndexOp("+", fro, IndexOp("*", Sym(name), Int(origin[k] if source else 0)))
    width = min(last, ROW)
    place: Index = axis(0) if width > 1 else Int(0)
    mask = None
    if last > ROW:
        name = program.fresh("i")
        names.append((name, last, ROW))
        program.loops[name] = (0, (last - 1) // ROW * ROW)
        place = IndexOp("+", Sym(name), place)
        mask = Mask((simplify(IndexOp("-", Int(last - 1), place)),), (width,))
    if shape:
        to = IndexOp("+", to, IndexOp("*", place, Int(target[-1])))
        fro = IndexOp("+", fro, IndexOp("*", place, Int(origin[-1] if source else 0)))
    with program.block() as inner:
        value: Value = _fill(step, program, width) if isinstance(step, Fill) else Num(0.0, (), DType.f32)
        if source is not None:
            value = program.load(Ptr(source.buffer, simplify(fro), (width,)), mask, None)
        program.store(Ptr(step.target.buffer, simplify(to), (width,)), value, mask)
    body = tuple(inner)
    for name, extent, stride in reversed(names):
        body = (nodes.For(name, "parallel", Int(0), Int(extent), Int(stride), body),)
    program.out.extend(body)


def _fill(step: Fill, program: Program, width: int) -> Value:
    dtype = program.views.buffers[step.target.buffer].dtype
    if dtype in FLOATS:
        return Num(float(step.value), (width,), dtype)
    if dtype is DType.bool:
        return Data(nodes.Full((Int(1),), bool(step.value), dtype), (width,), (1,), dtype)
    return Ints(Int(int(step.value)), (width,), 64)


def _strides(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides along the axes of a larger shape; 0 where the view is repeated."""
    missing = len(shape) - len(view.shape)
    own = (*(1,) * missing, *view.shape), (*(0,) * missing, *view.strides)
    return tuple(0 if extent == 1 and wide != 1 else stride for extent, stride, wide in zip(*own, shape, strict=True))


# ---------------------------------------------------------------- declarations


def _tensors(buffers: Mapping[str, Buffer], views: Views, kernels: Sequence[nodes.Kernel]) -> tuple[nodes.Tensor, ...]:
    text = repr(kernels)
    found = []
    for name, buffer in buffers.items():
        used = f"'{name}'" in text or any(b == name and f"'{v}'" in text for (b, _), v in views.made.items())
        if not used and buffer.role not in ("output", "input", "param"):
            continue
        shape = tuple(map(Int, buffer.shape))
        found.append(nodes.Tensor(name, shape, buffer.dtype, buffer.role, buffer.source))
        for (base, seen), view in views.made.items():
            if base == name and f"'{view}'" in text:
                found.append(nodes.Tensor(view, tuple(map(Int, seen)), buffer.dtype, "view", name))
    return tuple(found)


def _constants(buffers: Mapping[str, Buffer]) -> tuple[tuple[str, tuple[float | int | bool, ...]], ...]:
    return tuple((buffer.source, buffer.values) for buffer in buffers.values() if buffer.role == "constant")


def _title(step: Step, titles: set[str]) -> str:
    base = _identifier(step.name if isinstance(step, Launch) else "fill" if isinstance(step, Fill) else "copy")
    name, number = base, 1
    while name in titles:
        number += 1
        name = f"{base}_{number}"
    titles.add(name)
    return name


def _identifier(text: str) -> str:
    clean = re.sub(r"\W", "_", text).strip("_") or "kernel"
    return clean if clean[0].isalpha() else f"k_{clean}"


def _doc(step: Step) -> str:
    return f"launched on a grid of {' x '.join(map(str, step.grid))}" if isinstance(step, Launch) else ""


# ---------------------------------------------------------------- what the checker says


def _checked(sketch: nodes.Sketch, notes: list[str], path: str) -> Lifted:
    """A sketch without faults: loops that cannot be proved independent run in order, loads that cannot be proved inside are padded."""
    errors = check(sketch)
    if any("may leave axis" in error.reason for error in errors):
        sketch = replace(sketch, steps=tuple(_padded(step, sketch) for step in sketch.steps))
        errors = check(sketch)
    if any("may meet" in error.reason for error in errors):
        prover = Prover(Typer(sketch))
        named = bases(sketch)
        steps = []
        for step in sketch.steps:
            if isinstance(step, nodes.Kernel) and races(step, named, prover):
                step = _serial(step, lambda kernel: not races(kernel, named, prover))
                notes.append(f"programs of {step.name} run in order: that they never meet could not be shown")
            steps.append(step)
        sketch = replace(sketch, steps=tuple(steps))
        errors = check(sketch)
    for error in errors:
        raise CannotLift(f"the sketch made of it does not check: {error.reason}", path=path, line=error.line)
    return Lifted(sketch, tuple(notes))


def _serial(kernel: nodes.Kernel, right: Callable[[nodes.Kernel], bool]) -> nodes.Kernel:
    """As few parallel loops made ordinary ones as will do."""
    names = _parallel(kernel.body)
    for count in range(1, 1 << len(names)):
        chosen = {name for k, name in enumerate(names) if count >> k & 1}
        tried = replace(kernel, body=_ordered(kernel.body, chosen))
        if right(tried):
            return tried
    return kernel


def _parallel(body: Sequence[nodes.Statement]) -> list[str]:
    found = []
    for statement in body:
        if isinstance(statement, nodes.For):
            found += [statement.var] if statement.kind == "parallel" else []
            found += _parallel(statement.body)
    return found


def _ordered(body: tuple[nodes.Statement, ...], names: set[str]) -> tuple[nodes.Statement, ...]:
    return tuple(
        replace(s, kind="range" if s.var in names else s.kind, body=_ordered(s.body, names)) if isinstance(s, nodes.For) else s
        for s in body
    )


def _padded(step: nodes.Kernel | nodes.LibraryCall, sketch: nodes.Sketch) -> nodes.Kernel | nodes.LibraryCall:
    """Every load with a padding value."""
    from dataclasses import fields, is_dataclass

    dtypes = {tensor.name: tensor.dtype for tensor in sketch.tensors}

    def walk(item: Any) -> Any:
        if isinstance(item, tuple):
            return tuple(map(walk, item))
        if not is_dataclass(item) or isinstance(item, (type, Int | Sym | IndexOp)):
            return item
        new = replace(item, **{f.name: walk(getattr(item, f.name)) for f in fields(item)})
        if isinstance(new, nodes.Load) and new.pad is None:
            dtype = dtypes[new.tensor]
            new = replace(new, pad=0.0 if dtype in FLOATS else False if dtype is DType.bool else 0)
        return new

    return walk(step)  # type: ignore[no-any-return]
