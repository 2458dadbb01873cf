"""Products of bf16 where the machine multiplies pairs of them (AVX-512 BF16): twice the operations of floats, half the bytes.

In: the scheduler and a `gemm` value with two bf16 operands. Out: lines that compute it, to stand in an `#if` beside those that convert
both operands to floats first (tile_product.py); prelude/bf16_products.h holds what they call. Products of pairs are exact and their
sums are floats, as with converted operands.

A is read in place, two elements of a row at a time. B is copied into panels of a cache line, `[n / 16][ceil(k / 2)][16][2]`, zeros
behind its ends; so a pair that runs over the end of k meets a zero, and A's part of it is masked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kernelwright.compiler.lower.tile_values import VIEWS, Storage, Value
from kernelwright.sketch.index import combine, poly, to_c
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.products.tile_product import View
    from kernelwright.compiler.backends.cpp.schedule import Scheduler

CONDITION = "#if defined(__AVX512BF16__)"
PANEL = 16


def prelude() -> str:
    """The functions that calls name."""
    return "\n" + (Path(__file__).parent.parent / "prelude" / "bf16_products.h").read_text(encoding="utf-8")


def operands(scheduler: Scheduler, value: Value) -> tuple[Value, Value] | None:
    """The two bf16 tiles that a product of floats multiplies, if all of their elements are numbers of bf16; ask before they are
    converted."""
    if value.dtype is not DType.f32:
        return None
    found = [_narrow(scheduler, x, value) for x in value.args[:2]]
    return (found[0], found[1]) if found[0] is not None and found[1] is not None else None


def _narrow(scheduler: Scheduler, x: Value, value: Value) -> Value | None:
    """A tile of floats as a tile of bf16 with the same numbers: a conversion is left out, whatever stands around it (a border of zeros,
    a view) stays. None where floats may not be numbers of bf16."""
    if x.dtype is DType.bf16:
        return x
    if x.storage is not None or x.kept or scheduler.usage.consumers.get(x, 0) > 1:
        return None
    if x.op == "cast":
        return x.args[0] if x.args[0].dtype is DType.bf16 else None
    if x.op == "const":
        return scheduler.builder.number(0, DType.bf16, x.shape) if x.data == 0 else None
    if x.op == "where":
        args: list[Value | None] = [x.args[0], *(_narrow(scheduler, arg, value) for arg in x.args[1:])]
    elif x.op in VIEWS:
        args = [_narrow(scheduler, x.args[0], value)]
    else:
        return None
    same = tuple(arg for arg in args if arg is not None)
    if len(same) != len(args):
        return None
    made = scheduler.builder.value(x.op, same, x.shape, DType.bf16, x.data)
    made.home = value.home
    return made


def lines(scheduler: Scheduler, value: Value, pair: tuple[Value, Value], target: Storage, fresh: str) -> list[str]:
    """The product of a pair of bf16 tiles, into `target`."""
    a, b = pair
    mark = len(scheduler.out)
    left, right = _operand(scheduler, a, value, 0), _operand(scheduler, b, value, 1)
    if left.column.constant != 1:
        left = _copied(scheduler, a, value)
    depth = combine("min", left.columns, right.rows)
    panels = Storage(
        scheduler.builder.fresh("pairs"),
        (combine("//", right.columns + PANEL - 1, poly(PANEL)), b.shape[0] + 1, poly(PANEL)),
        DType.bf16,
    )
    scheduler.declare_storage(panels)
    packing = (to_c(depth), to_c(right.columns), right.pointer(), to_c(right.row), to_c(right.column), panels.name)
    scheduler.out.append(f"pack_pairs({', '.join(packing)});")
    sizes = (to_c(left.rows), to_c(right.columns), to_c(depth))
    places = (left.pointer(), to_c(left.row), panels.name, target.name, to_c(target.extents[-1]), fresh)
    scheduler.out.append(f"gemm_pairs({', '.join((*sizes, *places))});")
    found = scheduler.out[mark:]
    del scheduler.out[mark:]
    return found


def _operand(scheduler: Scheduler, x: Value, value: Value, axis: int) -> View:
    """The operand as it lies in memory, if all of the tile's rows (of B: columns) do; else a copy."""
    from kernelwright.compiler.backends.cpp.products.tile_product import view

    found = view(scheduler, x, x.dtype)
    if found is None or (found.rows, found.columns)[axis] != x.shape[axis]:
        return _copied(scheduler, x, value)
    return found


def _copied(scheduler: Scheduler, x: Value, value: Value) -> View:
    """The operand computed into a tile of bf16."""
    from kernelwright.compiler.backends.cpp.products.tile_product import View

    copy = scheduler.builder.value("reshape", (x,), x.shape, x.dtype)
    copy.home = value.home
    scheduler.make(copy)
    storage = copy.storage
    assert storage is not None
    name = f"&{storage.name}" if storage.scalar else storage.name
    return View(name, poly(0), storage.extents[-1], poly(1), storage, x.shape[0], x.shape[1], poly(0))
