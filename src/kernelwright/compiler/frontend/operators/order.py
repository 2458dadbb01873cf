"""Sorting and what follows from it: sort, argsort, top-k, k-th value, median."""

from __future__ import annotations

from typing import Any

from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.values import CustomKernel, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.nodes import DType


def ordered(x: Value, axis: int, descending: bool, count: int) -> tuple[Value, Value]:
    """The first `count` elements of each sorted row, and where they stood."""
    if not x.shape or x.size == 0:
        return x, b.const(0, DType.i64, x.shape)
    axis = b.axis_of(axis, len(x.shape))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    values = CustomKernel(shape, x.dtype, None, (x,))  # type: ignore[arg-type]
    places = CustomKernel(shape, DType.i64, None, (x,))  # type: ignore[arg-type]

    def write(builder: v.KernelBuilder, _: tuple[v.Value, ...]) -> None:
        builder.sort_rows(x, axis, descending, values, places)

    for one in (values, places):
        one.write = write
        one.group = [values, places]
    return values, places


@rule("sort", "sort.stable")
def sort(out: Any, x: Value, dim: int = -1, descending: bool = False, **kw: Any) -> tuple[Value, Value]:
    dim, descending = kw.get("dim", dim), kw.get("descending", descending)
    return ordered(x, dim, descending, x.shape[dim] if x.shape else 1)


rule("sort.stable")(
    lambda out, x, stable=True, dim=-1, descending=False, **_: ordered(x, dim, descending, x.shape[dim] if x.shape else 1)
)


@rule("argsort")
def argsort(out: Result, x: Value, dim: int = -1, descending: bool = False, **kw: Any) -> Value:
    return sort(out, x, dim, descending)[1]


rule("argsort.stable")(lambda out, x, stable=True, dim=-1, descending=False, **_: sort(out, x, dim, descending)[1])


@rule("topk")
def topk(out: Any, x: Value, k: int, dim: int = -1, largest: bool = True, *_: Any, **__: Any) -> tuple[Value, Value]:
    return ordered(x, dim, largest, k)


@rule("kthvalue")
def kthvalue(out: Any, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, ...]:
    return _pick(x, k - 1, dim, keepdim)


@rule("median", "nanmedian")
def median(out: Any, x: Value, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the two middle elements; a row with a NaN has a NaN (which sorts last)."""
    flat = b.reshape(x, (x.size,)) if dim is None else x
    axis = b.axis_of(dim if dim is not None else 0, len(flat.shape))
    value, place = _pick(flat, (flat.shape[axis] - 1) // 2, axis, keepdim)
    if x.dtype in FLOATS:
        bad = b.reduce("any", b.apply("isnan", flat, dtype=DType.bool, compute=x.dtype), (axis,), keepdim)
        value = b.where(bad, float("nan"), value, x.dtype)
    return value if dim is None else (value, place)


def _pick(x: Value, at: int, dim: int, keep: bool) -> tuple[Value, Value]:
    axis = b.axis_of(dim, len(x.shape))
    found = (b.select(part, axis, at) for part in ordered(x, axis, False, at + 1))
    value, place = (b.unsqueeze(f, axis) if keep else f for f in found)
    return value, place
