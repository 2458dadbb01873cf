"""Integer arithmetic on expressions: TTIR's operations on `Ints`, exact as long as nothing wraps around.

In: an operation's name and its operands. Out: an Ints or a Mask; None when the result could leave the integer type's width or
cannot be an expression, so that it has to be computed as a tile.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.compiler.lift.access import DATA, axis, fixed, folded, with_axes
from kernelwright.compiler.lift.program import Program
from kernelwright.compiler.lift.values import Data, Ints, Mask, Shape, joined_shape
from kernelwright.sketch.index import bounds, simplify, substitute, symbols
from kernelwright.sketch.nodes import Index, IndexOp, Int

_PLAIN = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.minsi": "min", "arith.maxsi": "max", "arith.minui": "min",
          "arith.maxui": "max"}  # fmt: skip
_DIVIDE = {"arith.divsi": "//", "arith.divui": "//", "arith.floordivsi": "//", "arith.remsi": "%", "arith.remui": "%",
           "arith.ceildivsi": "ceil"}  # fmt: skip


def combine(program: Program, name: str, a: Ints, b: Ints, label: str) -> Ints | None:
    """An operation of two integers."""
    shape = joined_shape(a.shape, b.shape)
    every = with_axes(program.ranges, shape)
    if name in _PLAIN:
        index: Index = IndexOp(_PLAIN[name], a.index, b.index)  # type: ignore[arg-type]
    elif name in _DIVIDE:
        found = _divided(_DIVIDE[name], a.index, b.index, every, signed=name.endswith(("si",)) and "floor" not in name)
        if found is None:
            return None
        index = found
    elif name in ("arith.shli", "arith.shrsi", "arith.shrui") and (count := fixed(b.index)) is not None:
        low = bounds(a.index, every)[0]
        if name == "arith.shrui" and (low is None or low < 0):
            return None
        index = IndexOp("*" if name == "arith.shli" else "//", a.index, Int(1 << count))
    elif name == "arith.andi" and (mask := fixed(b.index)) is not None and mask >= 0 and (mask + 1) & mask == 0:
        index = IndexOp("%", a.index, Int(mask + 1))
    elif name in ("arith.andi", "arith.ori", "arith.xori"):
        x, y = fixed(a.index), fixed(b.index)
        if x is None or y is None:
            return None
        index = Int(x & y if name == "arith.andi" else x | y if name == "arith.ori" else x ^ y)
    else:
        return None
    index = folded(simplify(index), every)
    bits = max(a.bits, b.bits)
    low, high = bounds(index, every)
    known = not any(symbol.startswith((DATA, "~")) for symbol in symbols(index))
    if known and low is not None and high is not None and (low < -(1 << (bits - 1)) or high >= 1 << (bits - 1)):
        return None
    if not shape:
        index = program.grid.settled(index, lambda: program.fresh(label)) if symbols(index) else index
    return Ints(index, shape, bits)


def _divided(op: str, a: Index, b: Index, ranges: dict[str, tuple[int | None, int | None]], *, signed: bool) -> Index | None:
    """Quotient or remainder. C rounds towards zero, expressions towards minus infinity: the same for what is never negative."""
    low, least = bounds(a, ranges)[0], bounds(b, ranges)[0]
    if (least is None or least <= 0) and not _only_programs(b):
        return None
    if op == "ceil":
        return IndexOp("-", Int(0), IndexOp("//", IndexOp("-", Int(0), a), b))
    if not signed or (low is not None and low >= 0):
        return IndexOp(op, a, b)  # type: ignore[arg-type]
    up = IndexOp("//", IndexOp("max", a, Int(0)), b)
    down = IndexOp("//", IndexOp("max", IndexOp("-", Int(0), a), Int(0)), b)
    quotient = IndexOp("-", up, down)
    return quotient if op == "//" else IndexOp("-", a, IndexOp("*", quotient, b))


def _only_programs(index: Index) -> bool:
    """Grouped orders divide by a size that is positive for every program, though not for every mix of its parts."""
    return bool(symbols(index)) and not any(name.startswith((DATA, "~", "@")) for name in symbols(index))


def compare(program: Program, predicate: str, a: Ints, b: Ints) -> Mask | None:
    """A comparison as conditions that are `>= 0`; None for `!=`, which is not one."""
    shape = joined_shape(a.shape, b.shape)
    every = with_axes(program.ranges, shape)
    gap: Index = folded(simplify(IndexOp("-", a.index, b.index)), every)
    less, more = simplify(IndexOp("-", Int(0), gap)), gap
    one = Int(1)
    if predicate[0] == "u" and any(
        (bounds(x.index, every)[0] or -1) < 0 for x in (a, b) if fixed(x.index) is None or fixed(x.index) != 0
    ):
        lows = [bounds(x.index, every)[0] for x in (a, b)]
        if any(low is None or low < 0 for low in lows):
            return None
    match predicate.lstrip("su") if predicate not in ("eq", "ne") else predicate:
        case "lt":
            found: tuple[Index, ...] = (simplify(IndexOp("-", less, one)),)
        case "le":
            found = (less,)
        case "gt":
            found = (simplify(IndexOp("-", more, one)),)
        case "ge":
            found = (more,)
        case "eq":
            found = (less, more)
        case _:
            low, high = bounds(gap, every)
            if low is not None and low >= 0:
                found = (simplify(IndexOp("-", more, one)),)
            elif high is not None and high <= 0:
                found = (simplify(IndexOp("-", less, one)),)
            else:
                return None
    return Mask(found, shape)


def renamed(program: Program, index: Index, where: dict[int, Index], shape: Shape, moved: Callable[[Data], Data]) -> Index:
    """An expression whose tile has been given other axes: `where` says what each old axis is now. `moved` changes the tiles of run
    time integers likewise."""
    env: dict[str, Index | int] = {axis(k).name: new for k, new in where.items()}
    for name in symbols(index):
        if name.startswith(DATA):
            tile = moved(program.data[name])
            again = program.as_ints(tile, name[1:].partition(":")[0])
            env[name] = again.index
    return substitute(index, env)
