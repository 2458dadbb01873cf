"""Operations that move or combine whole tiles: shapes, reductions, scans, products.

In: an operation and its operands as values. Out: values, one for each result.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kernelwright.compiler.lift.access import axes_in, axis, fixed
from kernelwright.compiler.lift.program import Program
from kernelwright.compiler.lift.triton.elements import dtype_of
from kernelwright.compiler.lift.triton.integers import renamed
from kernelwright.compiler.lift.triton.ttir import Op
from kernelwright.compiler.lift.values import Data, Ints, Mask, Num, Ptr, Shape, Value
from kernelwright.sketch import nodes
from kernelwright.sketch.index import simplify
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int, Tile

COMBINERS = {
    "arith.addf": "sum", "arith.addi": "sum", "arith.mulf": "prod", "arith.muli": "prod", "arith.maxnumf": "max",
    "arith.maximumf": "max", "arith.maxsi": "max", "arith.minnumf": "min", "arith.minimumf": "min", "arith.minsi": "min",
    "arith.ori": "any", "arith.andi": "all",
}  # fmt: skip


# ---------------------------------------------------------------- shapes


def reshaped(program: Program, value: Value, shape: Shape) -> Value:
    """tt.reshape, tt.expand_dims, tt.splat of a tile with one element: the same elements in the same order."""
    old = value.shape
    if isinstance(value, Num):
        return Num(value.value, shape, value.dtype)
    if isinstance(value, Data):
        return _reshaped_data(value, shape)
    where = _axes_after(old, shape)
    if isinstance(value, Mask):
        rest = None if value.rest is None else _reshaped_data(value.rest, shape)
        return Mask(
            tuple(renamed(program, c, where, shape, lambda d: _reshaped_data(d, shape)) for c in value.conditions), shape, rest
        )
    index = renamed(program, value.index, where, shape, lambda d: _reshaped_data(d, shape))
    return Ints(index, shape, value.bits) if isinstance(value, Ints) else Ptr(value.buffer, index, shape)


def _units(old: Shape, new: Shape) -> bool:
    """Whether two shapes differ only by axes of extent 1."""
    return [e for e in old if e != 1] == [e for e in new if e != 1]


def _reshaped_data(value: Data, shape: Shape) -> Data:
    if value.shape == shape:
        return value
    if _units(value.shape, shape) and all(a == s for a, s in zip(value.actual, value.shape, strict=True) if s == 1):
        left = [a for a, s in zip(value.actual, value.shape, strict=True) if s != 1]
        actual = tuple(left.pop(0) if extent != 1 else 1 for extent in shape)
        if len(shape) == len(value.shape) + 1:
            place = next(
                (k for k in range(len(shape)) if (*actual[:k], *actual[k + 1 :]) == value.actual and shape[k] == 1), None
            )
            if place is not None:
                return Data(nodes.Unsqueeze(value.node, place), shape, actual, value.dtype)
        return Data(nodes.Reshape(value.node, tuple(map(Int, actual))), shape, actual, value.dtype)
    return Data(nodes.Reshape(value.full(), tuple(map(Int, shape))), shape, shape, value.dtype)


def _axes_after(old: Shape, new: Shape) -> dict[int, Index]:
    """What each old axis is in terms of the new ones."""
    if _units(old, new):
        places = [k for k, extent in enumerate(new) if extent != 1]
        moving = [k for k, extent in enumerate(old) if extent != 1]
        return {**{k: Int(0) for k, e in enumerate(old) if e == 1}, **{k: axis(p) for k, p in zip(moving, places, strict=True)}}
    flat: Index = Int(0)
    step = prod(new)
    for k, extent in enumerate(new):
        step //= extent
        flat = IndexOp("+", flat, IndexOp("*", axis(k), Int(step)))
    found, step = {}, prod(old)
    for k, extent in enumerate(old):
        step //= extent
        quotient: Index = IndexOp("//", flat, Int(step))
        found[k] = simplify(quotient if k == 0 else IndexOp("%", quotient, Int(extent)))
    return found


def expanded(program: Program, value: Value, number: int) -> Value:
    """tt.expand_dims."""
    shape = (*value.shape[:number], 1, *value.shape[number:])
    if isinstance(value, Data):
        return Data(
            nodes.Unsqueeze(value.node, number), shape, (*value.actual[:number], 1, *value.actual[number:]), value.dtype
        )
    if isinstance(value, Num):
        return Num(value.value, shape, value.dtype)
    where: dict[int, Index] = {k: axis(k if k < number else k + 1) for k in range(len(value.shape))}

    def moved(data: Data) -> Data:
        found = expanded(program, data, number)
        assert isinstance(found, Data)
        return found

    if isinstance(value, Mask):
        rest = None if value.rest is None else moved(value.rest)
        return Mask(tuple(renamed(program, c, where, shape, moved) for c in value.conditions), shape, rest)
    index = renamed(program, value.index, where, shape, moved)
    return Ints(index, shape, value.bits) if isinstance(value, Ints) else Ptr(value.buffer, index, shape)


def broadcast(value: Value, shape: Shape) -> Value:
    """tt.broadcast and tt.splat: only what is meant changes."""
    match value:
        case Data(node, old, actual, dtype):
            if len(old) < len(shape):
                node = (
                    nodes.Reshape(node, (Int(1),) * len(shape)) if isinstance(node, nodes.Load | nodes.Var) or not old else node
                )
                return Data(node, shape, (1,) * len(shape), dtype)
            return Data(node, shape, actual, dtype)
        case Mask(conditions, old, rest):
            spread = broadcast(rest, shape) if rest is not None else None
            return Mask(conditions, shape, spread if isinstance(spread, Data) else None)
        case Num(number, _, dtype):
            return Num(number, shape, dtype)
        case Ints(index, _, bits):
            return Ints(index, shape, bits)
        case Ptr(buffer, index, _):
            return Ptr(buffer, index, shape)


def permuted(program: Program, value: Value, order: Sequence[int]) -> Value:
    """tt.trans."""
    shape = tuple(value.shape[k] for k in order)
    if isinstance(value, Data):
        return Data(nodes.Permute(value.node, tuple(order)), shape, tuple(value.actual[k] for k in order), value.dtype)
    if isinstance(value, Num):
        return Num(value.value, shape, value.dtype)
    where: dict[int, Index] = {old: axis(new) for new, old in enumerate(order)}

    def moved(data: Data) -> Data:
        found = permuted(program, data, order)
        assert isinstance(found, Data)
        return found

    if isinstance(value, Mask):
        rest = None if value.rest is None else moved(value.rest)
        return Mask(tuple(renamed(program, c, where, shape, moved) for c in value.conditions), shape, rest)
    index = renamed(program, value.index, where, shape, moved)
    return Ints(index, shape, value.bits) if isinstance(value, Ints) else Ptr(value.buffer, index, shape)


def join(program: Program, a: Value, b: Value) -> Data:
    """tt.join: two tiles along a new last axis."""
    x, y = program.as_data(a), program.as_data(b)
    last = len(x.shape)
    first = nodes.Binary("eq", nodes.Reshape(nodes.Iota(Int(2)), (*(Int(1),) * last, Int(2))), nodes.Number(0))
    node = nodes.Where(first, nodes.Unsqueeze(x.full(), last), nodes.Unsqueeze(y.full(), last))
    return Data(node, (*x.shape, 2), (*x.shape, 2), x.dtype)


def split(program: Program, value: Value, label: str) -> list[Value]:
    """tt.split: the two halves of a last axis of extent 2."""
    data = program.as_data(value)
    data = program.bind(Data(data.full(), data.shape, data.shape, data.dtype), label)
    whole = tuple(nodes.Span(Int(0), Int(extent)) for extent in data.shape[:-1])
    shape = data.shape[:-1]
    return [Data(nodes.Part(data.node, (*whole, nodes.At(Int(k)))), shape, shape, data.dtype) for k in (0, 1)]


# ---------------------------------------------------------------- reductions and scans


def combiner(op: Op) -> tuple[str, bool]:
    """What the region of a reduction does with two elements: the sketch's name for it, and whether positions come along."""
    (block,) = op.regions[0]
    body = [inner for inner in block.ops if not inner.name.endswith(".return")]
    last = block.ops[-1]
    if len(last.operands) == 1 and len(body) == 1 and set(body[0].operands) == {name for name, _ in block.arguments}:
        return COMBINERS.get(body[0].name, ""), False
    if (
        len(last.operands) == 1
        and len(body) == 2
        and body[0].name in ("arith.cmpf", "arith.cmpi")
        and body[1].name == "arith.select"
    ):
        sides = [name for name, _ in block.arguments]
        if body[0].operands == sides and body[1].operands == [body[0].results[0], *sides]:
            return {"gt": "max", "ge": "max", "lt": "min", "le": "min"}.get(body[0].text.split(",")[0].strip()[1:], ""), False
    if len(last.operands) == 2 and len(block.arguments) == 4:
        a, _, b, _ = (name for name, _ in block.arguments)
        first = [inner for inner in body if inner.operands[:2] == [a, b] and inner.name in ("arith.cmpf", "arith.cmpi")]
        kinds = {inner.text.split(",")[0].strip()[1:] for inner in first} - {"eq", "q"}
        selects = [inner for inner in body if inner.name == "arith.select"]
        known = {"arith.cmpf", "arith.cmpi", "arith.andi", "arith.ori", "arith.select"}
        if len(selects) == 2 and {inner.name for inner in body} <= known and len(kinds) == 1:
            return {"gt": "max", "lt": "min"}.get(kinds.pop(), ""), True
    return "", False


def reduce(program: Program, op: Op, operands: Sequence[Value], label: str) -> list[Value]:
    """tt.reduce, also with positions (argmax)."""
    kind, positions = combiner(op)
    if not kind:
        raise program.refuse("a reduction with a combining function of its own")
    number = op.attribute("axis")
    data = program.as_data(operands[0])
    data = Data(data.full(), data.shape, data.shape, data.dtype)
    shape = (*data.shape[:number], *data.shape[number + 1 :])
    dtype = data.dtype
    if kind in ("any", "all") and dtype is not DType.bool:
        raise program.refuse("a reduction by bits of integers")
    if kind in ("sum", "prod", "max", "min") and dtype is DType.bool:
        raise program.refuse("a reduction of conditions by arithmetic")
    node: Tile = data.node
    if positions:
        data = program.bind(data, f"{label}_of")
        node = data.node
    wide = nodes.Cast(node, DType.f32) if dtype in (DType.f16, DType.bf16) and kind in ("sum", "prod") else node
    made: Tile = nodes.Squeeze(nodes.Reduce(kind, wide, (number,)), number)
    if wide is not node:
        made = nodes.Cast(made, dtype)
    results: list[Value] = [Data(made, shape, shape, dtype)]
    if positions:
        results.append(_position(program, kind, data, operands[1], number, shape, op))
    return results


def _position(program: Program, kind: str, data: Data, index: Value, number: int, shape: Shape, op: Op) -> Data:
    """Where the extreme lies: what `index` has there."""
    found: Tile = nodes.ArgReduce("max" if kind == "max" else "min", data.node, number)
    target = dtype_of(program, op.result_types[1])
    if isinstance(index, Ints) and axes_in(index.index) == [number]:
        rest = simplify(IndexOp("-", index.index, axis(number)))
        if not axes_in(rest):
            if fixed(rest) != 0:
                found = nodes.Binary("add", found, nodes.FromIndex(rest))
            found = nodes.Squeeze(found, number)
            return Data(found if target is DType.i64 else nodes.Cast(found, target), shape, shape, target)
    table = program.as_data(index, target)
    return Data(nodes.Squeeze(nodes.Take(table.full(), found, number), number), shape, shape, target)


def scan(program: Program, op: Op, operands: Sequence[Value]) -> list[Value]:
    """tt.scan: cumsum, cumprod, and others with one of the usual functions."""
    kind, positions = combiner(op)
    if kind not in ("sum", "prod", "max", "min") or positions:
        raise program.refuse("a scan with a combining function of its own")
    data = program.as_data(operands[0])
    node = data.full()
    wide = nodes.Cast(node, DType.f32) if data.dtype in (DType.f16, DType.bf16) else node
    made: Tile = nodes.Scan(kind, wide, op.attribute("axis"), reverse="reverse = true" in op.text)
    if wide is not node:
        made = nodes.Cast(made, data.dtype)
    return [Data(made, data.shape, data.shape, data.dtype)]


# ---------------------------------------------------------------- products


def dot(program: Program, op: Op, a: Value, b: Value, acc: Value) -> Data:
    """tt.dot."""
    x, y = program.as_data(a), program.as_data(b)
    target = dtype_of(program, op.result_types[0])
    shape = op.result_types[0].shape
    natural = DType.f64 if x.dtype is DType.f64 else DType.i32 if x.dtype in (DType.i8, DType.u8) else DType.f32
    zero = (isinstance(acc, Num) and acc.value == 0) or (isinstance(acc, Ints) and fixed(acc.index) == 0)
    if x.dtype is DType.f32 and "tf32" in op.text:
        note = "tl.dot multiplies fp32 tiles in tf32 on the device unless told otherwise; the sketch keeps fp32"
        if note not in program.notes:
            program.notes.append(note)
    if zero and target is natural:
        return Data(nodes.Gemm(x.full(), y.full(), line=program.line), shape, shape, target)
    start = (
        program.as_data(acc, target).full()
        if not zero
        else nodes.Full(tuple(map(Int, shape)), 0.0 if target not in (DType.i32, DType.i64) else 0, target, "accumulator")
    )
    return Data(nodes.Gemm(x.full(), y.full(), start, program.line), shape, shape, target)
