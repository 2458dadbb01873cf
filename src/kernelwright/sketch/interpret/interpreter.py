"""The reference interpreter: a Sketch run on torch tensors, statement by statement, exactly as `nodes` defines it.

In: a sketch and its tensors by name (`run`), or a module's arguments and state_dict (`call`). Out: the outputs by name, or the
structure that forward returns. Slow and plain on purpose: every emitter is tested against it.

  operations.py  what each operation computes        memory.py   what loads read and stores write
  observe.py     (strict=True) who wrote which element: races, reads of unwritten memory, outputs left unwritten
  witness.py     what went into one element
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate, polynomial
from kernelwright.sketch.interpret import library, operations, storage
from kernelwright.sketch.interpret.operations import TORCH_DTYPE
from kernelwright.sketch.interpret.strict import Observer
from kernelwright.sketch.interpret.witness import Witness


def run(
    sketch: nodes.Sketch,
    inputs: Mapping[str, torch.Tensor],
    sizes: Mapping[str, int] | None = None,
    *,
    tunables: Mapping[str, int] | None = None,
    shuffle: int | None = None,
    strict: bool = False,
    witness: Witness | None = None,
) -> dict[str, torch.Tensor]:
    """Runs all kernels; `inputs` maps names of input, param and constant tensors to values. Returns the output tensors by name.

    `sizes` and `tunables` replace declared values (dynamic sizes are otherwise read from the inputs' shapes). `shuffle` is a
    seed: parallel loops then run in a random order, which shows wrong independence as wrong values. `strict` watches every
    element: a race, a read of something never written or an output element left unwritten is a SketchError. `witness` sees the
    making of one element.
    """
    integers = _integers(sketch, inputs, sizes or {}, tunables or {})
    tensors = _tensors(sketch, inputs, integers)
    observer = Observer(sketch, tensors) if strict else None
    if witness:
        witness.begin(tensors)
    order = random.Random(shuffle) if shuffle is not None else None
    for step in sketch.steps:
        if isinstance(step, nodes.LibraryCall):
            _library(step, tensors)
            if observer:
                observer.written_by_library(step.outputs)
        else:
            if observer:
                observer.begin_kernel(step.name)
            _Machine(sketch, tensors, dict(integers), order, observer, witness).block(step.body, {})
    outputs = {t.name: tensors[t.name] for t in sketch.tensors if t.role == "output"}
    if observer:
        observer.require_written(outputs)
    return outputs


def call(
    sketch: nodes.Sketch,
    arguments: Sequence[Any],
    state: Mapping[str, torch.Tensor] | None = None,
    **options: Any,
) -> Any:
    """What a module lowered from this sketch would return for forward's flattened `arguments` and its state_dict `state`."""
    inputs: dict[str, torch.Tensor] = {}
    for tensor in sketch.tensors:
        if tensor.role == "input":
            inputs[tensor.name] = torch.as_tensor(arguments[int(tensor.source)])
        elif tensor.role == "param":
            if tensor.source not in (state or {}):
                raise SketchError(f"parameter {tensor.name} needs {tensor.source!r} of the state_dict, which is not there")
            inputs[tensor.name] = (state or {})[tensor.source]
    named = {**inputs, **run(sketch, inputs, **options)}
    return returned(sketch.returns, named.__getitem__)


def returned(returns: str, lookup: Callable[[str], Any]) -> Any:
    """Forward's result built from `Sketch.returns`: strings are tensor names, arrays tuples, `{"$list": […]}` lists."""

    def build(tree: Any) -> Any:
        if isinstance(tree, str):
            return lookup(tree)
        if isinstance(tree, list):
            return tuple(build(item) for item in tree)
        if isinstance(tree, dict):
            if list(tree) == ["$list"]:
                return [build(item) for item in tree["$list"]]
            return {key: build(value) for key, value in tree.items()}
        return tree

    return build(json.loads(returns))


# ---------------------------------------------------------------- setting up


def _integers(
    sketch: nodes.Sketch, inputs: Mapping[str, torch.Tensor], sizes: Mapping[str, int], tunables: Mapping[str, int]
) -> dict[str, int]:
    values = {size.name: size.value for size in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    dynamic = {size.name for size in sketch.sizes if size.dynamic}
    for tensor in sketch.tensors:
        if tensor.role == "input" and tensor.name in inputs and inputs[tensor.name].ndim == len(tensor.shape):
            for extent, actual in zip(tensor.shape, inputs[tensor.name].shape, strict=True):
                terms = polynomial(extent).terms
                if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][0][0] in dynamic:  # a size, or a multiple of one
                    values[str(terms[0][0][0])] = int(actual) // terms[0][1]
    for name, value in {**sizes, **tunables}.items():
        if name not in values:
            raise SketchError(f"there is no size or tunable {name}")
        values[name] = value
    return values


def _tensors(sketch: nodes.Sketch, inputs: Mapping[str, torch.Tensor], integers: Mapping[str, int]) -> dict[str, torch.Tensor]:
    constants = dict(sketch.constants)
    tensors: dict[str, torch.Tensor] = {}
    for declared in sketch.tensors:
        shape = [evaluate(extent, integers) for extent in declared.shape]
        dtype = TORCH_DTYPE[declared.dtype]
        if declared.role in ("output", "temp"):
            tensors[declared.name] = storage.poisoned(shape, dtype)
            continue
        if declared.role == "view":
            tensors[declared.name] = tensors[declared.source].view(shape)
            continue
        if declared.name in inputs:
            value = inputs[declared.name].detach()
        elif declared.role == "constant" and declared.source in constants:
            value = torch.tensor(constants[declared.source], dtype=dtype).reshape(shape)
        else:
            raise SketchError(f"no value was given for the {declared.role} tensor {declared.name}")
        if list(value.shape) != shape or value.dtype != dtype:
            raise SketchError(
                f"tensor {declared.name} is declared {shape} {declared.dtype.value} but got {list(value.shape)} {value.dtype}"
            )
        tensors[declared.name] = value.contiguous()
    return tensors


def _library(step: nodes.LibraryCall, tensors: dict[str, torch.Tensor]) -> None:
    """One ATen operator, called as library.py reads its attributes."""
    target: Any = torch.ops
    for part in step.operator.split("."):
        target = getattr(target, part)
    plan = library.plan(step)

    def tensor(k: int) -> torch.Tensor:
        value = tensors[step.inputs[k]]
        return torch.view_as_complex(value) if k in plan.complex_inputs else value

    keywords = {
        name: library.filled(value, tensor, lambda text: getattr(torch, text), lambda plain: plain)
        for name, value in plan.keywords.items()
    }
    results = target(*map(tensor, plan.positional), **keywords)
    results = results if isinstance(results, tuple | list) else (results,)
    for k, name in enumerate(step.outputs):
        result = results[plan.results[k] if plan.results else k]
        tensors[name].copy_(torch.view_as_real(result.resolve_conj()) if k in plan.complex_outputs else result)


# ---------------------------------------------------------------- running


class _Machine:
    """One kernel's execution: integers in scope, and the tensors in main memory."""

    def __init__(
        self,
        sketch: nodes.Sketch,
        tensors: dict[str, torch.Tensor],
        integers: dict[str, int],
        order: random.Random | None,
        observer: Observer | None,
        witness: Witness | None = None,
    ) -> None:
        self.tensors = tensors
        self.witness = witness
        self.declared = frozenset(integers)
        self.integers = integers
        self.order = order
        self.observer = observer
        self.known: dict[int, torch.Tensor] = {}  # by object, within one statement: shared parts are evaluated once
        owned = {t.name for t in sketch.tensors if t.role in ("output", "temp")}
        self.mutable = owned | {t.name for t in sketch.tensors if t.role == "view" and t.source in owned}

    def block(self, body: Sequence[nodes.Statement], names: dict[str, torch.Tensor]) -> None:
        for statement in body:
            self.known = {}
            match statement:
                case nodes.Assign(name, value):
                    names[name] = self.tile(value, names)
                case nodes.Store():
                    self.store(statement, names)
                case nodes.For():
                    self.loop(statement, names)

    def loop(self, loop: nodes.For, names: dict[str, torch.Tensor]) -> None:
        """`range` carries names bound before the loop; `parallel` iterations each start from the names before it."""
        start, stop, step = (self.index(bound) for bound in (loop.start, loop.stop, loop.step))
        if step <= 0:
            raise SketchError(f"the step of loop {loop.var} is {step}; it must be positive", line=loop.line)
        values = list(range(start, stop, step))
        parallel = loop.kind == "parallel"
        if parallel and self.order:
            self.order.shuffle(values)
        if self.observer and parallel:
            self.observer.enter()
        for value in values:
            self.integers[loop.var] = value
            if self.observer and parallel:
                self.observer.iterate(loop.var, value)
            scope = dict(names)
            self.block(loop.body, scope)
            if not parallel:
                names.update({name: scope[name] for name in names})
        self.integers.pop(loop.var, None)
        if self.observer and parallel:
            self.observer.leave()

    def index(self, index: nodes.Index) -> int:
        try:
            return evaluate(index, self.integers)
        except KeyError as missing:
            raise SketchError(f"unknown size, tunable or loop variable {missing.args[0]}") from None

    def shape(self, shape: Sequence[nodes.Index]) -> list[int]:
        return [self.index(extent) for extent in shape]

    def places(self, region: Sequence[nodes.Axis], names: dict[str, torch.Tensor]) -> list[storage.Place]:
        result: list[storage.Place] = []
        for axis in region:
            match axis:
                case nodes.Span(start, extent, step):
                    result.append(storage.Run(self.index(start), self.index(extent), self.index(step)))
                case nodes.At(index):
                    result.append(storage.Run(self.index(index), 1, kept=False))
                case nodes.Pick(indices):
                    result.append(self.tile(indices, names))
        return result

    def tensor(self, name: str, region: Sequence[nodes.Axis], line: int) -> torch.Tensor:
        if name not in self.tensors:
            raise SketchError(f"unknown tensor {name}", line=line)
        tensor = self.tensors[name]
        if tensor.ndim != len(region):
            raise SketchError(f"tensor {name} has {tensor.ndim} axes, but the region names {len(region)}", line=line)
        return tensor

    def store(self, store: nodes.Store, names: dict[str, torch.Tensor]) -> None:
        tensor = self.tensor(store.tensor, store.region, store.line)
        if store.tensor not in self.mutable:
            raise SketchError(f"store to {store.tensor}, which is not an output or a temp", line=store.line)
        value = self.tile(store.value, names, like=tensor.dtype)
        if value.dtype != tensor.dtype:
            raise SketchError(f"store of {value.dtype} to {store.tensor}, which is {tensor.dtype}", line=store.line)
        places = self.places(store.region, names)
        if self.observer:
            self.observer.on_store(store, places)
        if self.witness:
            variables = {name: number for name, number in self.integers.items() if name not in self.declared}
            self.witness.on_store(store, tensor, places, value, names, variables)
        storage.store(store.tensor, tensor, places, value, store.mode, store.line)

    def tile(self, tile: nodes.Tile, names: dict[str, torch.Tensor], like: torch.dtype | None = None) -> torch.Tensor:
        """The value of an expression; `like` is the dtype that a bare number takes here."""
        if isinstance(tile, nodes.Number):
            if like is None:
                raise SketchError(
                    f"the number {tile.value} meets no tile to take its dtype from", hint="use full([], …, dtype)"
                )
            return torch.tensor(tile.value, dtype=like)
        if id(tile) not in self.known:
            self.known[id(tile)] = self.computed(tile, names)
        return self.known[id(tile)]

    def computed(self, tile: nodes.Tile, names: dict[str, torch.Tensor]) -> torch.Tensor:
        """Loads and elementwise maths."""
        match tile:
            case nodes.Var(name):
                if name not in names:
                    raise SketchError(f"{name} is read before it is bound")
                return names[name]
            case nodes.Load(name, region, pad):
                places = self.places(region, names)
                tensor = self.tensor(name, region, tile.line)
                if self.observer:
                    self.observer.on_load(tile, places)
                found = storage.load(name, tensor, places, pad, tile.line)
                return found.clone() if name in self.mutable else found
            case nodes.Unary(op, x):
                return operations.unary(op, self.tile(x, names))
            case nodes.Binary(op, a, b):
                left, right = self.pair(a, b, names, op, tile.line)
                return operations.binary(op, left, right)
            case nodes.Where(condition, a, b):
                left, right = self.pair(a, b, names, "where", 0)
                return torch.where(self.tile(condition, names), left, right)
            case nodes.Cast(nodes.Number(value), dtype):
                return torch.tensor(value).to(TORCH_DTYPE[dtype])
            case nodes.Cast(x, dtype):
                return self.tile(x, names).to(TORCH_DTYPE[dtype])
            case nodes.Bitcast(x, dtype):
                return self.tile(x, names).contiguous().view(TORCH_DTYPE[dtype])
            case nodes.FromIndex(index):
                return torch.tensor(self.index(index), dtype=torch.int64)
            case nodes.Iota(extent):
                return torch.arange(self.index(extent), dtype=torch.int64)
            case nodes.Full(shape, value, dtype):
                return torch.full(self.shape(shape), value, dtype=TORCH_DTYPE[dtype])
            case nodes.Gemm(a, b, acc):
                start = None if acc is None else self.tile(acc, names)
                return operations.gemm(self.tile(a, names), self.tile(b, names), start)
        return self.movement(tile, names)

    def pair(
        self, a: nodes.Tile, b: nodes.Tile, names: dict[str, torch.Tensor], op: str, line: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Both sides of an operation, a bare number adapted to the other side's dtype."""
        if isinstance(a, nodes.Number):
            right = self.tile(b, names)
            return self.tile(a, names, like=right.dtype), right
        left = self.tile(a, names)
        right = self.tile(b, names, like=left.dtype)
        if left.dtype != right.dtype:
            raise SketchError(f"{op} of {left.dtype} and {right.dtype}", line=line, hint="cast one side")
        return left, right

    def movement(self, tile: nodes.Tile, names: dict[str, torch.Tensor]) -> torch.Tensor:
        """Reductions, scans, sorts and changes of shape."""
        match tile:
            case nodes.Reduce(op, x, axes):
                return operations.reduce(op, self.tile(x, names), axes)
            case nodes.ArgReduce(op, x, axis):
                return operations.arg_reduce(op, self.tile(x, names), axis)
            case nodes.Scan(op, x, axis, reverse, exclusive):
                return operations.scan(op, self.tile(x, names), axis, reverse, exclusive)
            case nodes.ArgSort(x, axis, descending):
                return torch.argsort(self.tile(x, names), dim=axis, descending=descending, stable=True)
            case nodes.Take(x, indices, axis):
                return torch.take_along_dim(self.tile(x, names), self.tile(indices, names).to(torch.int64), dim=axis)
            case nodes.Permute(x, order):
                return self.tile(x, names).permute(order)
            case nodes.Reshape(x, shape):
                return self.tile(x, names).reshape(self.shape(shape))
            case nodes.Squeeze(x, axis):
                return self.tile(x, names).squeeze(axis)
            case nodes.Unsqueeze(x, axis):
                return self.tile(x, names).unsqueeze(axis)
            case nodes.Stack(tiles, axis):
                return torch.stack([self.tile(part, names) for part in tiles], dim=axis)
            case nodes.Expand(x, shape):
                return self.tile(x, names).broadcast_to(self.shape(shape))
            case nodes.Part(x, region):
                value = self.tile(x, names)
                return storage.load("the tile", value, self.places(region, names), None, 0)
        raise SketchError(f"unknown tile expression {type(tile).__name__}")
