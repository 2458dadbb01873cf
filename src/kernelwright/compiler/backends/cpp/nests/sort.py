"""Sorting positions: whole rows, or only the first few of a row.

In: the scheduler and an arg_sort value. Out: lines appended to the scheduler, the value's storage set. Elements of up to 32 bits
become unsigned keys whose order is the one asked for (NaN largest), with the position in the lower half: all keys differ, so any
sort of them is stable. Wider elements are sorted by comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.elements import Elements
from kernelwright.compiler.lower.c_family.nest import Nest
from kernelwright.compiler.lower.tile_values import SpanAccess, Storage, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.index import Poly, poly, to_c
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.schedule import Scheduler

SELECT_PART = 4
"""Up to a fourth of a row is selected; for more, sorting the whole row is no slower."""


def argsort(scheduler: Scheduler, value: Value) -> None:
    """Sorts positions line by line; NaN counts as the largest."""
    axis, descending = value.data
    x = value.args[0]
    if x.storage is None:
        scheduler.make(x)
    storage = scheduler.declare(value)
    source = x.storage
    assert source is not None
    nest = Nest(scheduler.context, value.shape, [], set())
    others = [a for a, e in enumerate(value.shape) if a != axis and e.constant != 1]
    zero = tuple(poly(0) if a == axis else p for a, p in enumerate(nest.index))
    out = ["{"]
    for a in others:
        out.append(f"for (int64_t {nest.vars[a]} = 0; {nest.vars[a]} < {to_c(value.shape[a])}; ++{nest.vars[a]}) {{")
    pointer = f"&{source.name}" if source.scalar else f"{source.name} + {to_c(Elements.offset_in(source, zero))}"
    target = f"&{storage.name}" if storage.scalar else f"{storage.name} + {to_c(Elements.offset_in(storage, zero))}"
    out += [f"const auto* from = {pointer};", f"int64_t* to = {target};"]
    extent, step = value.shape[axis], f"({to_c(_stride(storage, axis))})"
    element = c_expressions.load(f"from[k * ({to_c(_stride(source, axis))})]", x.dtype)
    wide = x.dtype in (DType.f64, DType.i64) or extent.constant is None or extent.constant >= 2**31
    wanted = _wanted(scheduler, value, axis)
    cost = 40
    if wide:
        out += _by_comparison(element, to_c(extent), step, x.dtype, descending)
    elif wanted is not None and wanted * SELECT_PART <= (extent.constant or 0):
        out += _selected(element, to_c(extent), step, wanted, x.dtype, descending)
        cost = 4
    else:
        out += _by_key(element, to_c(extent), step, x.dtype, descending)
    scheduler.out += [*out, *["}" for _ in others], "}"]
    value.storage = storage
    scheduler.count_work(value.shape, cost)


def _wanted(scheduler: Scheduler, value: Value, axis: int) -> int | None:
    """How many of the first positions are ever read, if every reader takes such a part."""
    parts = [v for v in scheduler.usage.values if v.op == "part" and v.args[0] is value]
    if not parts or scheduler.usage.consumers.get(value, 0) != len(parts):
        return None
    most = 0
    for part in parts:
        span = part.data[axis]
        if (
            not isinstance(span, SpanAccess)
            or span.start.constant is None
            or span.step.constant != 1
            or span.extent.constant is None
        ):
            return None
        most = max(most, span.start.constant + span.extent.constant)
    return most


def _key(element: str, dtype: DType, descending: bool) -> str:
    kind = "float" if dtype in FLOATS else "int32_t"
    return f"{'~' if descending else ''}sort_key({kind}({element}))"


def _by_key(element: str, extent: str, step: str, dtype: DType, descending: bool) -> list[str]:
    """Radix sort of key and position together."""
    return [
        f"uint64_t* keys = scratch<uint64_t, 30>({extent});",
        f"#pragma omp simd\nfor (int64_t k = 0; k < {extent}; ++k) keys[k] = uint64_t({_key(element, dtype, descending)}) << 32 | k;",
        f"sort_keys(keys, scratch<uint64_t, 29>({extent}), {extent});",
        f"for (int64_t k = 0; k < {extent}; ++k) to[k * {step}] = uint32_t(keys[k]);",
    ]


def _selected(element: str, extent: str, step: str, wanted: int, dtype: DType, descending: bool) -> list[str]:
    """One pass that keeps the first few; hardly any element of a long row gets past the test."""
    return [
        f"uint32_t* keys = scratch<uint32_t, 30>({extent});",
        f"#pragma omp simd\nfor (int64_t k = 0; k < {extent}; ++k) keys[k] = {_key(element, dtype, descending)};",
        f"uint64_t* first = scratch<uint64_t, 29>({2 * wanted + 64});",
        f"select_keys<{wanted}>(keys, {extent}, first);",
        f"for (int64_t k = 0; k < {wanted}; ++k) to[k * {step}] = uint32_t(first[k]);",
    ]


def _by_comparison(element: str, extent: str, step: str, dtype: DType, descending: bool) -> list[str]:
    first, second = element.replace("k *", "int64_t(a) *"), element.replace("k *", "int64_t(b) *")
    less = f"{second} < {first}" if descending else f"{first} < {second}"
    if dtype in FLOATS:
        nan_a, nan_b = f"({first} != {first})", f"({second} != {second})"
        less = f"({less}) || ({nan_a} && !{nan_b})" if descending else f"({less}) || (!{nan_a} && {nan_b})"
    return [
        f"int64_t* order = scratch<int64_t, 30>({extent});",
        f"for (int64_t k = 0; k < {extent}; ++k) order[k] = k;",
        f"std::stable_sort(order, order + {extent}, [&](int64_t a, int64_t b) {{ return {less}; }});",
        f"for (int64_t k = 0; k < {extent}; ++k) to[k * {step}] = order[k];",
    ]


def _stride(storage: Storage, axis: int) -> Poly:
    stride = poly(1)
    for extent in storage.extents[axis + 1 :]:
        stride = stride * extent
    return stride
