"""Small words of the contraction families: index arithmetic that stays readable, loops, and the choice of block sizes."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.graph.symbolic import Extent, Size, size_index
from kernelwright.sketch import nodes
from kernelwright.sketch.index import simplify
from kernelwright.sketch.nodes import DType, Index, Int, Statement, Sym

Number = int | str | Index | Size
ZERO: dict[DType, float | int] = {DType.f32: 0.0, DType.f64: 0.0, DType.i32: 0, DType.i64: 0}


def index(value: Number) -> Index:
    """An integer or a loop variable's name as an Index."""
    if isinstance(value, int | Size):
        return size_index(value)
    return Sym(value) if isinstance(value, str) else value


def add(*terms: Number) -> Index:
    """The sum of all terms, simplified."""
    total = index(terms[0])
    for term in terms[1:]:
        total = nodes.IndexOp("+", total, index(term))
    return simplify(total)


def mul(left: Number, right: Number) -> Index:
    return simplify(nodes.IndexOp("*", index(left), index(right)))


def op(name: str, left: Number, right: Number) -> Index:
    """Any other integer operation: `//`, `%`, `min`, `max`, `-`."""
    return simplify(nodes.IndexOp(name, index(left), index(right)))  # type: ignore[arg-type]


def span(start: Number, extent: Extent, step: int = 1) -> nodes.Span:
    return nodes.Span(index(start), size_index(extent), Int(step))


def at(position: Number) -> nodes.At:
    return nodes.At(index(position))


def ints(*extents: Extent) -> tuple[Index, ...]:
    return tuple(size_index(e) for e in extents)


def loop(kind: str, var: str, start: Number, stop: Number, step: int, body: Sequence[Statement]) -> nodes.For:
    return nodes.For(var, kind, index(start), index(stop), Int(step), tuple(body))  # type: ignore[arg-type]


def accumulator(dtype: DType, *extents: Extent) -> nodes.Full:
    return nodes.Full(ints(*extents), ZERO[dtype], dtype, "accumulator")


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def block(extent: int, ideal: int, multiple: int = 1) -> int:
    """A block size near `ideal`: a divisor of the extent if one lies within reach (tiles then need no padding), else the size
    that cuts the extent in equal parts, rounded up to `multiple`."""
    if extent <= ideal + ideal // 4:
        return max(extent, 1)
    fitting = [b for b in range(max(ideal // 2, 1), ideal + ideal // 4 + 1) if extent % b == 0]
    for wanted in (multiple, 8, 4, 1):
        good = [b for b in fitting if b % wanted == 0] if multiple % wanted == 0 else []
        if good:
            return min(good, key=lambda b: abs(b - ideal))
    even = ceil_div(extent, ceil_div(extent, ideal))
    return ceil_div(even, multiple) * multiple


def scaled(extent: int, size: int, grain: float, multiple: int = 1) -> int:
    """A block of so many times the size, as far as the extent goes; the same block where it is to stay."""
    return size if grain == 1 else block(extent, max(1, min(extent, round(size * grain))), multiple)


def smaller(extent: int, size: int, least: int, multiple: int = 1) -> int:
    """About half the block, not under `least`; the same block if it cannot be halved."""
    half = block(extent, max(least, size // 2), multiple)
    return half if half < size else size
