"""Everything that can be known about a Sketch before any code is written.

In: a Sketch. Out: all SketchErrors found (`check`), the first one raised (`require`), or the type of every expression
(`infer`).

  declarations.py  names, declarations, what forward returns      types.py   shapes and dtypes
  bounds.py        integer proofs inside loops                    races.py   parallel iterations that may meet
  all_sizes.py     what these leave open for dynamic sizes

This file walks the kernels: scopes, carried names, bounds of loads and parts, reads before writes, hints, once-kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.all_sizes import Settled, declared, settle
from kernelwright.sketch.check.bounds import Prover
from kernelwright.sketch.check.claims import Claim
from kernelwright.sketch.check.declarations import bases, declaration_errors
from kernelwright.sketch.check.races import bound_once, meetings
from kernelwright.sketch.index import constant, show, substitute, symbols
from kernelwright.sketch.nodes import For, Index, IndexOp, Int, Tile
from kernelwright.sketch.types import TileType, Typer, Unknown, show_shape
from kernelwright.sketch.walk import bound_names, roots, subtiles

HINTS = ("serial_below",)
LEVELS = ("register", "fast", "accumulator")

Names = dict[str, TileType | None]


@dataclass
class Typing:
    """The type of every expression object of one sketch, and of the names each kernel binds."""

    sketch: nodes.Sketch
    tiles: dict[int, TileType] = field(default_factory=dict)
    names: dict[str, dict[str, TileType]] = field(default_factory=dict)
    unclear: set[int] = field(default_factory=set)

    def of(self, tile: Tile) -> TileType:
        """The type of an expression of this sketch (the object itself, not an equal one)."""
        if id(tile) in self.unclear:
            raise SketchError(f"one expression object has two types, because {_names_in(tile)} was bound anew between its uses")
        return self.tiles[id(tile)]

    def shape_of(self, tile: Tile) -> tuple[Index, ...]:
        """The extents of an expression."""
        return self.of(tile).shape

    def dtype_of(self, tile: Tile) -> nodes.DType:
        """The element type of an expression."""
        return self.of(tile).dtype


@dataclass(frozen=True)
class Examination:
    """All faults of a sketch, and what was shown for every one of its dynamic sizes (None where it has none, or declares nonsense)."""

    faults: list[SketchError]
    settled: Settled | None = None


def check(sketch: nodes.Sketch) -> list[SketchError]:
    """All faults of a sketch; an empty list means every rule of `nodes` holds."""
    return examine(sketch).faults


def examine(sketch: nodes.Sketch) -> Examination:
    """All faults of a sketch; for one with dynamic sizes also what they rest on: what the index algebra leaves open goes to the solver."""
    errors = declaration_errors(sketch)
    if errors:
        return Examination(errors)
    checker = _Checker(sketch, errors)
    checker.all()
    if not any(size.dynamic for size in sketch.sizes):
        return Examination(errors)
    claims, shown = declared(sketch, checker.prover)
    claims += [replace(claim, line=claim.line or claim.fault.line) for claim in checker.claims]
    settled, left = settle(sketch, claims, shown + checker.shown, checker.trusted)
    open_ = {id(claim.fault) for claim in checker.claims}
    return Examination([*(error for error in errors if id(error) not in open_), *left], settled)


def require(sketch: nodes.Sketch) -> nodes.Sketch:
    """The sketch itself if it checks; otherwise its first fault is raised."""
    for error in check(sketch):
        raise error
    return sketch


def infer(sketch: nodes.Sketch) -> Typing:
    """The types of all expressions, for emitters. Raises the first fault of typing or scope; bounds and races are left out."""
    errors = declaration_errors(sketch)
    checker = _Checker(sketch, errors, types_only=True)
    if not errors:
        checker.all()
    for error in errors:
        raise error
    return checker.typing


class _Checker:
    """One walk over all kernels in order."""

    def __init__(self, sketch: nodes.Sketch, errors: list[SketchError], types_only: bool = False) -> None:
        self.sketch = sketch
        self.errors = errors
        self.types_only = types_only
        self.typing = Typing(sketch)
        self.typer = Typer(sketch)
        self.prover = Prover(self.typer)
        self.tensors = self.typer.tensors
        self.bases = bases(sketch)
        self.written = {t.name for t in sketch.tensors if t.role in ("input", "param", "constant")}
        self.made_once: set[str] = set()
        self.kernel: nodes.Kernel | None = None
        self.claims: list[Claim] = []
        """What the algebra did not show; each has its fault among the errors, until somebody shows it for all dynamic sizes."""
        self.shown = 0
        self.trusted: list[int] = []

    def fault(self, reason: str, line: int = 0, hint: str = "") -> None:
        self.errors.append(SketchError(reason, line=line, hint=hint))

    def all(self) -> None:
        for step in self.sketch.steps:
            if isinstance(step, nodes.LibraryCall):
                self.library(step)
                continue
            self.kernel = step
            self.typing.names[step.name] = {}
            self.block(step.body, {}, ())
            if not self.types_only:
                self.races(step)
        for tensor in self.sketch.tensors:
            if tensor.role == "output" and tensor.name not in self.written:
                self.fault(f"output {tensor.name} is never written")

    def races(self, kernel: nodes.Kernel) -> None:
        found, apart = meetings(kernel, self.bases, self.prover)
        self.shown += apart
        told: set[int] = set()
        for meeting in found:
            fault = meeting.error
            self.claims.append(Claim("race", fault.line, fault, meeting=meeting, names=bound_once(kernel)))
            if id(meeting.store) not in told or self.typer.dynamic:
                self.errors.append(fault)
            told.add(id(meeting.store))

    def library(self, step: nodes.LibraryCall) -> None:
        for name in step.inputs:
            if self.bases.get(name) not in self.written:
                self.fault(f"{step.operator} reads {name} before it is written")
        self.written.update(self.bases[name] for name in step.outputs if name in self.bases)

    # ---- statements

    def block(self, body: Sequence[nodes.Statement], names: Names, loops: tuple[For, ...]) -> None:
        for statement in body:
            self.typer.found = {}
            match statement:
                case nodes.Assign(name, value):
                    found = self.value(value, names, loops, statement.line)
                    names[name] = found
                    if name in self.tensors or name in self.typer.constants or any(loop.var == name for loop in loops):
                        self.fault(
                            f"{name} is bound as a tile, but it is already a tensor, size or loop variable", statement.line
                        )
                    if found is not None and self.kernel:
                        self.typing.names[self.kernel.name][name] = found
                case nodes.Store():
                    self.store(statement, names, loops)
                case For():
                    self.loop(statement, names, loops)
            self.remember(statement)

    def remember(self, statement: nodes.Statement) -> None:
        """Keeps the types found for a statement's expressions."""
        found = self.typer.found or {}
        for tile in subtiles(*roots(statement)):
            if id(tile) not in found:
                continue
            if self.typing.tiles.setdefault(id(tile), found[id(tile)]) != found[id(tile)]:
                self.typing.unclear.add(id(tile))

    def value(self, value: Tile, names: Names, loops: tuple[For, ...], line: int) -> TileType | None:
        """The type of an expression, after looking at everything inside it; None when it does not check."""
        try:
            found = self.typer.type_of(value, names)
        except Unknown:
            return None
        except SketchError as error:
            self.errors.append(SketchError(error.reason, line=error.line or line, hint=error.hint))
            return None
        self.inside((value,), names, loops, line)
        return found

    def inside(self, tiles: Sequence[Tile], names: Names, loops: tuple[For, ...], line: int) -> None:
        """What typing does not see: names of integers, levels, bounds, reads of tensors."""
        for tile in subtiles(*tiles):
            match tile:
                case nodes.FromIndex(index):
                    self.scope(index, loops, line)
                case nodes.Full(level=level):
                    self.level(level, line)
                case nodes.Load():
                    at = tile.line or line
                    self.level(tile.level, at)
                    self.reads(tile, at)
                    self.region(tile.region, loops, at)
                    if tile.pad is None and not self.types_only:
                        shape = self.tensors[tile.tensor].shape
                        self.stays(tile.region, shape, loops, f"load of {tile.tensor}", at)
                case nodes.Part(x, region):
                    self.region(region, loops, line)
                    if not self.types_only:
                        self.stays(region, self.typer.type_of(x, names).shape, loops, "this part of a tile", line)

    def level(self, level: str, line: int) -> None:
        if level not in LEVELS:
            self.fault(f"unknown level {level!r}", line, f"levels are {', '.join(LEVELS)}")

    def scope(self, index: Index, loops: tuple[For, ...], line: int) -> None:
        known = self.typer.constants | {loop.var for loop in loops}
        for name in sorted(symbols(index) - known):
            self.fault(f"{name} is not a size, a tunable or a variable of a loop around this", line)

    def region(self, region: Sequence[nodes.Axis], loops: tuple[For, ...], line: int) -> None:
        for axis in region:
            match axis:
                case nodes.Span(start, _, step):
                    self.scope(start, loops, line)
                    self.scope(step, loops, line)
                    if constant(substitute(step, self.typer.static)) == 0:
                        self.fault("the step of a slice is 0", line)
                case nodes.At(index):
                    self.scope(index, loops, line)

    # ---- tensors

    def reads(self, load: nodes.Load, line: int) -> None:
        base = self.bases.get(load.tensor, load.tensor)
        if base not in self.written:
            self.fault(
                f"load of {load.tensor}, which nothing has written yet", line, "store to it earlier, or in a kernel before"
            )
        if self.kernel and self.kernel.once:
            role = self.tensors[base].role
            if role not in ("param", "constant") and base not in self.made_once:
                self.fault(
                    f"a once-kernel reads {load.tensor}, a tensor of role {role}",
                    line,
                    "it may read params, constants and temps made by once-kernels",
                )

    def store(self, store: nodes.Store, names: Names, loops: tuple[For, ...]) -> None:
        tensor = self.tensors.get(store.tensor)
        base = self.tensors.get(self.bases.get(store.tensor, ""))
        if tensor is None or base is None:
            self.fault(f"store to unknown tensor {store.tensor}", store.line)
            return
        if base.role not in ("output", "temp"):
            self.fault(f"store to {store.tensor}, a tensor of role {base.role}", store.line, "stores go to outputs and temps")
            return
        if self.kernel and self.kernel.once and base.role != "temp":
            self.fault(f"a once-kernel stores to {store.tensor}, which is not a temp", store.line)
        if len(store.region) != len(tensor.shape):
            self.fault(f"{store.tensor} has {len(tensor.shape)} axes, but the store names {len(store.region)}", store.line)
            return
        self.region(store.region, loops, store.line)
        self.fits(store, tensor, names, loops)
        if store.mode not in ("set", "add", "max", "min"):
            self.fault(f"unknown store mode {store.mode!r}", store.line, "modes are set, add, max, min")
        if store.mode != "set" and base.name not in self.written:
            self.fault(
                f"store to {store.tensor} with mode={store.mode!r} updates what nothing has written yet",
                store.line,
                "fill it first, in a loop or kernel before",
            )
        self.written.add(base.name)
        if self.kernel and self.kernel.once:
            self.made_once.add(base.name)
        elif base.name in self.made_once:
            self.fault(f"{store.tensor} is made by a once-kernel and may not be changed by another", store.line)

    def fits(self, store: nodes.Store, tensor: nodes.Tensor, names: Names, loops: tuple[For, ...]) -> None:
        """The stored tile has the tensor's dtype and broadcasts to the region."""
        picks = [axis.indices for axis in store.region if isinstance(axis, nodes.Pick)]
        self.inside(picks, names, loops, store.line)
        try:
            shape = self.typer.region_shape(store.region, names)
            if isinstance(store.value, nodes.Number):
                self.typer.require_number(store.value.value, tensor.dtype, "stored number")
                return
            found = self.value(store.value, names, loops, store.line)
            if found is None:
                return
            if found.dtype is not tensor.dtype:
                raise SketchError(
                    f"store of a {found.dtype.value} tile to {tensor.name}, which is {tensor.dtype.value}",
                    hint=f"write cast(…, {tensor.dtype.value})",
                )
            whole = self.typer.broadcast(found.shape, shape, f"store to {tensor.name}")
            if len(whole) != len(shape) or not all(map(self.typer.same, whole, shape)):
                raise SketchError(f"store of a tile {show_shape(found.shape)} to a region {show_shape(shape)} of {tensor.name}")
        except Unknown:
            return
        except SketchError as error:
            self.errors.append(SketchError(error.reason, line=error.line or store.line, hint=error.hint))

    # ---- loops

    def loop(self, loop: For, names: Names, loops: tuple[For, ...]) -> None:
        taken = self.typer.constants | self.tensors.keys() | names.keys() | {outer.var for outer in loops}
        if loop.var in taken:
            self.fault(f"loop variable {loop.var} has the name of something else in scope", loop.line)
        for bound in (loop.start, loop.stop, loop.step):
            self.scope(bound, loops, loop.line)
        if symbols(loop.step) - self.typer.constants or not self.prover.never_negative(IndexOp("-", loop.step, Int(1)), ()):
            self.fault(f"the step {show(loop.step)} of loop {loop.var} must be a positive size, tunable or number", loop.line)
        for hint, _ in loop.hints:
            if hint not in HINTS:
                self.fault(f"unknown hint {hint}", loop.line, f"hints are {', '.join(HINTS)}")
        again = sorted(bound_names(loop.body) & names.keys())
        if loop.kind == "parallel" and again:
            self.fault(
                f"{', '.join(again)} is bound outside the parallel loop {loop.var} and again inside it",
                loop.line,
                "parallel iterations carry nothing from one to the next; use another name, or range",
            )
        inner = dict(names)
        self.block(loop.body, inner, (*loops, loop))
        if loop.kind == "range":
            self.carried(loop, again, names, inner)

    def carried(self, loop: For, again: Sequence[str], names: Names, inner: Mapping[str, TileType | None]) -> None:
        """A name carried through a loop has one type."""
        for name in again:
            before, after = names[name], inner[name]
            if before is None or after is None:
                continue
            same = before.dtype is after.dtype and len(before.shape) == len(after.shape)
            if not same or not all(map(self.typer.same, before.shape, after.shape)):
                self.fault(
                    f"{name} enters the loop {loop.var} as {before} and leaves it as {after}",
                    loop.line,
                    "a carried name keeps its shape and dtype; use another name inside, or make the first binding fit",
                )
                names[name] = None

    # ---- bounds

    def stays(self, region: Sequence[nodes.Axis], shape: Sequence[Index], loops: tuple[For, ...], what: str, line: int) -> None:
        """Every position of the region lies inside the shape."""
        known = self.typer.constants | {loop.var for loop in loops}
        extents = [axis.extent for axis in region if isinstance(axis, nodes.Span)]
        given = tuple(IndexOp("-", extent, Int(1)) for extent in extents if constant(extent) is None)  # else nothing is touched
        for number, (axis, size) in enumerate(zip(region, shape, strict=True)):
            match axis:
                case nodes.Span(start, extent, step):
                    last: Index = IndexOp("+", start, IndexOp("*", IndexOp("-", extent, Int(1)), step))
                    by = constant(substitute(step, self.typer.static)) or 0
                case nodes.At(index):
                    start = last = index
                    by = 1
                case _:
                    self.trusted.append(line)
                    continue
            if not symbols(start) | symbols(last) <= known:
                continue
            every: list[Index] = []
            example = None
            for first, end in ((start, last),) if by > 0 else ((last, start),) if by < 0 else ((start, last), (last, start)):
                goals = (first, IndexOp("-", IndexOp("-", size, Int(1)), end))
                every += goals
                example = next((e for e in (self.prover.counterexample(g, loops) for g in goals) if e is not None), example)
            if example is None:
                self.shown += 1
                continue
            self.leaves(axis, number, size, example, what, line)
            self.claims.append(Claim("bounds", line, self.errors[-1], loops, tuple(every), given))

    def leaves(self, axis: nodes.Axis, number: int, size: Index, example: dict[str, int], what: str, line: int) -> None:
        setting = " with " + ", ".join(f"{k}={v}" for k, v in example.items()) if example else ""
        shown = (
            show(axis.index) if isinstance(axis, nodes.At) else f"{show(axis.start)} …" if isinstance(axis, nodes.Span) else ""
        )
        self.fault(
            f"{what} may leave axis {number} (extent {show(size)}) at {shown}{setting}",
            line,
            "give the load a pad, or make the steps divide the extent" if what.startswith("load") else "slice inside the tile",
        )


def _names_in(tile: Tile) -> str:
    found = sorted({part.name for part in subtiles(tile) if isinstance(part, nodes.Var)})
    return " or ".join(found) or "a name"
