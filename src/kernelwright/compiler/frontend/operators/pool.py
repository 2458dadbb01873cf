"""Pooling of all dimensions: a window view, then a reduction over the window's axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.reduce import arg_fold
from kernelwright.compiler.frontend.operators.table import Result, first, rule
from kernelwright.compiler.frontend.rewrites.sections import in_sections
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.rewrites.pooled_convolution import averaged
from kernelwright.compiler.graph.symbolic import certainly_less, likely
from kernelwright.compiler.graph.values import Value
from kernelwright.sketch.nodes import DType


def _full(values: Any, n: int, default: Any = None) -> list[int]:
    values = default if values is None or values == [] else values
    full: list[int] = [values] if isinstance(values, int) else list(values)
    return full * n if len(full) == 1 else full


def _beyond(
    space: Sequence[int],
    outputs: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> bool:
    """Whether some window leaves the source."""
    ends = ((o - 1) * s + (k - 1) * d - p for o, k, s, p, d in zip(outputs, kernel, stride, padding, dilation, strict=True))
    return any(padding) or any(not certainly_less(end, e) for end, e in zip(ends, space, strict=True))


def max_pool(n: int) -> Any:
    def build(
        out: Any, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        k = _full(kernel, n)
        s, p, d = _full(stride, n, k), _full(padding, n), _full(dilation, n)
        shape = first(out).shape
        outputs = shape[-n:]
        space = x.shape[-n:]
        fill = x.dtype.lowest if _beyond(space, outputs, k, s, p, d) else None
        cut = b.windows(x, k, s, p, d, outputs, fill)
        best = b.reduce("max", cut, tuple(range(len(shape), len(shape) + n)))
        if not isinstance(out, tuple):
            return best
        window = b.reshape(cut, (*shape, math.prod(k)))
        inside = arg_fold("max", window, len(shape), False)
        place: Value | None = None
        for i in range(n):
            within = b.apply("mod", b.apply("floordiv", inside, math.prod(k[i + 1 :])), k[i]) if n > 1 else inside
            at = b.add(b.mul(b.position(shape, len(shape) - n + i), s[i]), -p[i])
            at = b.add(at, b.mul(within, d[i]))
            place = at if place is None else b.add(b.mul(place, space[i]), at)
        return best, place

    return build


def avg_pool(n: int) -> Any:
    def build(
        out: Result, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:  # fmt: skip
        k = _full(kernel, n)
        s, p = _full(stride, n, k), _full(padding, n)
        ones = [1] * n
        outputs, space = out.shape[-n:], x.shape[-n:]
        leaves = _beyond(space, outputs, k, s, p, ones)
        together = None if leaves or divisor_override else averaged(x, k, s, outputs)
        if together is not None:
            return together
        cut = b.windows(x, k, s, p, ones, outputs, 0 if leaves else None)
        total = b.reduce("sum", cut, tuple(range(len(out.shape), len(out.shape) + n)))
        if divisor_override:
            return b.div(total, divisor_override)
        if not leaves or (
            count_include_pad
            and all(
                certainly_less((o - 1) * t + q - r, e + r + 1) for o, t, q, r, e in zip(outputs, s, k, p, space, strict=True)
            )
        ):
            return b.div(total, math.prod(k))
        count: Value | None = None
        for i in range(n):
            start = b.add(b.mul(b.position(out.shape, len(out.shape) - n + i), s[i]), -p[i])
            stop = b.apply("minimum", b.add(start, k[i]), space[i] + p[i])
            if not count_include_pad:
                start, stop = b.apply("maximum", start, 0), b.apply("minimum", stop, space[i])
            length = b.sub(stop, start)
            count = length if count is None else b.mul(count, length)
        assert count is not None
        return b.div(total, b.cast(count, out.dtype))

    return build


def _limits(at: Value, extent: int, outputs: int) -> tuple[Value, Value]:
    """Where the window of an output begins and ends: floor(at * extent / outputs), ceil((at + 1) * extent / outputs)."""
    start = b.apply("floordiv", b.mul(at, extent), outputs)
    return start, b.apply("floordiv", b.add(b.mul(at, extent), extent + outputs - 1), outputs)


def _ragged(x: Value, outputs: Sequence[int], op: str) -> Value:
    """Windows of unequal length, one axis after another: rows are added (or compared) whole before their columns are."""
    n, lead = len(outputs), len(x.shape) - len(outputs)
    fill = x.dtype.lowest if op == "max" else 0
    reduced = x
    for i, o in enumerate(outputs):
        axis, extent = lead + i, x.shape[lead + i]
        longest = max(-(-(k + 1) * extent // o) - k * extent // o for k in range(o))
        shape = (*reduced.shape[:axis], o, *reduced.shape[axis + 1 :], longest)

        def move(coords: v.MultiIndex, axis: int = axis, extent: int = extent, o: int = o) -> v.MultiIndex:
            return (*coords[:axis], coords[axis] * extent // o + coords[-1], *coords[axis + 1 : -1])

        cut: Value = v.View(shape, x.dtype, reduced, move, fill=fill, kind="windows")
        start, stop = _limits(b.position(shape, axis), extent, o)
        inside = b.apply("lt", b.position(shape, len(shape) - 1), b.sub(stop, start), dtype=DType.bool, compute=DType.i64)
        reduced = b.reduce("max" if op == "max" else "sum", b.where(inside, cut, fill, x.dtype), (len(shape) - 1,))
        reduced.stored = i < n - 1
    if op == "max":
        return reduced
    count: Value | None = None
    for i, o in enumerate(outputs):
        start, stop = _limits(b.position(reduced.shape, lead + i), x.shape[lead + i], o)
        length = b.sub(stop, start)
        count = length if count is None else b.mul(count, length)
    assert count is not None
    return b.div(reduced, b.cast(count, x.dtype))


def adaptive(n: int, op: str) -> Any:
    def build(out: Any, x: Value, sizes: Any) -> Any:
        """Windows from floor(i*n/o) to ceil((i+1)*n/o): plain windows when o divides n, else ragged ones under a mask."""
        result = first(out)
        outputs, space = result.shape[-n:], x.shape[-n:]
        lead = len(x.shape) - n
        if all(e % o == 0 for e, o in zip(space, outputs, strict=True)):
            k = [e // o for e, o in zip(space, outputs, strict=True)]
            if op == "max":
                return max_pool(n)(out, x, k, k)
            return avg_pool(n)(out, x, k, k)
        if not isinstance(out, tuple):
            between = likely(x.size) // likely(space[0]) * outputs[0] if n > 1 and x.size and lead > 1 else 0
            return in_sections(x, result, between, lambda part: _ragged(part, outputs, op))
        longest = [max(-(-(i + 1) * e // o) - i * e // o for i in range(o)) for e, o in zip(space, outputs, strict=True)]
        shape = (*result.shape, *longest)

        def move(coords: v.MultiIndex) -> v.MultiIndex:
            inner = (coords[lead + i] * space[i] // outputs[i] + coords[lead + n + i] for i in range(n))
            return (*coords[:lead], *inner)

        cut = v.View(shape, x.dtype, x, move, fill=0, kind="windows")
        inside: Value | None = None
        for i in range(n):
            at = b.position(shape, lead + i)
            start, stop = _limits(at, space[i], outputs[i])
            here = b.apply("lt", b.position(shape, lead + n + i), b.sub(stop, start), dtype=DType.bool, compute=DType.i64)
            inside = here if inside is None else b.apply("logical_and", inside, here)
        assert inside is not None
        axes = tuple(range(len(result.shape), len(shape)))
        masked = b.where(inside, cut, x.dtype.lowest, x.dtype)
        window = b.reshape(masked, (*result.shape, math.prod(longest)))
        within = arg_fold("max", window, len(result.shape), False)
        place: Value | None = None
        for i in range(n):
            offset = b.apply("mod", b.apply("floordiv", within, math.prod(longest[i + 1 :])), longest[i])
            at = b.add(_limits(b.position(result.shape, lead + i), space[i], outputs[i])[0], offset)
            place = at if place is None else b.add(b.mul(place, space[i]), at)
        return b.reduce("max", masked, axes), place

    return build


for _n in (1, 2, 3):
    rule(f"max_pool{_n}d", f"max_pool{_n}d_with_indices")(max_pool(_n))
    rule(f"avg_pool{_n}d")(avg_pool(_n))
    rule(f"adaptive_avg_pool{_n}d", f"_adaptive_avg_pool{_n}d")(adaptive(_n, "avg"))
    rule(f"adaptive_max_pool{_n}d")(adaptive(_n, "max"))
