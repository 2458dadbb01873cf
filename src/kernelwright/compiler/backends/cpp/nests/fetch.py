"""What is fetched ahead: prefetches of memory that a nest, or the same nest in a later iteration, is about to read.

In: a nest and the loop around it. Out: lines of C. Two cases. A nest that reads a row for the second time has it in the cache, and
fetches the row of the next iteration meanwhile. A nest that reads a large tensor for the first time fetches what comes next in it:
the hardware does so within a page of 4 KiB only, and begins anew, with a look into the page tables, at each. Measured on Zen 4
(16 MiB, two threads, four places in turn, pages not looked up yet): sums of rows of 8 KiB in 0.52 ms without, 0.47 ms with it, a
pointwise map in 0.79 and 0.69 ms; one process each on a busy machine, where processes of one kernel differ by 15 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelwright.compiler.backends.cpp.nests.loops import Loop
from kernelwright.compiler.lower.c_family.elements import Place
from kernelwright.compiler.lower.c_family.materialize import cost_of
from kernelwright.sketch.index import Poly, poly, to_c

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.nests.loop_nest import LoopNest

ROW_BYTES = (1 << 10, 1 << 18)
"""Rows of this size are fetched one ahead: shorter ones come by themselves, longer ones would leave the second cache again."""
LARGE_BYTES = 2 << 20
"""Tensors from this size on are expected beyond the cores' own caches."""
NEAR_BYTES = 1 << 10
"""At least so far ahead: what takes as long to read as memory takes to answer."""
LONG_ROW = 8 << 10
"""Rows of this size are fetched ahead within themselves, by a fourth."""
LINE_BYTES = 64
PICKED = 64
"""Elements that are picked from a row between two prefetches of the next one: 1024 of 2048 floats, a thousand times, took 1.42 ms
without, 0.97 ms with the next row fetched at once, 0.75 ms with it fetched piece by piece."""
BUSY_COST = 12.0
"""Nests that compute more than this many cycles a vector wait for their own arithmetic. The border is a guess: measurements of a
sigmoid (0.89 to 1.05 ms) differed as much from process to process as with and without prefetches."""


class Ahead(str):
    """A line that fetches a tensor ahead of its first reading; not needed if a later nest fetches the whole next row."""

    memory: str

    @classmethod
    def of(cls, memory: str, text: str) -> Ahead:
        """The line, with the tensor that it is about."""
        made = cls(text)
        made.memory = memory
        return made


class NextRow(str):
    """A line that fetches the row of the next iteration. Each nest that reads a row again offers one; one of them is chosen."""

    memory: str
    nest: int
    good: int  # how well it suits: 2 beside long arithmetic, 1 beside writes to memory

    @classmethod
    def of(cls, nest: LoopNest, memory: str, text: str) -> NextRow:
        """The line, with the tensor that it is about and what its nest does beside it."""
        made = cls(text)
        made.memory, made.nest = memory, id(nest)
        writes = any(place.writes and place.memory in nest.context.streamed for place in nest.elems.places)
        made.good = 2 if _busy(nest) else int(writes)
        return made


def fetches(nest: LoopNest, inner: Loop, start: str, count: str) -> list[str]:
    """Prefetches for a step of the innermost loop, which reads `count` elements from `start` on."""
    if nest.context.ahead is None or not nest.context.options.fetch:
        return []
    return [*_next_rows(nest, inner, start, count), *_further_on(nest, inner, start, count)]


def chosen(lines: list[str]) -> list[str]:
    """The lines of a loop's body, with each next row fetched once: by the first nest that leaves memory idle for long, else by one
    that writes to memory, which takes reads and writes together better than one after the other (a group norm of 59 MB, groups of
    200 KB: 2.39 ms with the next group fetched beside the variance, 1.85 ms beside the result). What is fetched as a whole row needs
    no other prefetches."""
    nests: dict[str, int] = {}
    for row in sorted((line for line in lines if isinstance(line, NextRow)), key=lambda row: -row.good):
        nests.setdefault(row.memory, row.nest)
    kept: list[str] = []
    for line in lines:
        if isinstance(line, NextRow):
            kept += [str(line)] if nests[line.memory] == line.nest else []
        elif not (isinstance(line, Ahead) and line.memory in nests):
            kept.append(line)
    return kept


def picked_rows(nest: LoopNest, inner: Loop, start: str) -> list[str]:
    """Prefetches for PICKED elements from `start` on of a loop that picks from a row at random: its share of the row that the next
    iteration picks from, one line after another, which the hardware would see coming from no order of the picks."""
    if nest.context.ahead is None or not nest.context.options.fetch:
        return []
    var, step, then = nest.context.ahead
    out: dict[str, str] = {}
    for place in nest.elems.places:
        row = picked_row(place.offset, var, step)
        extent = inner.extent.constant
        if place.writes or row is None or extent is None:
            continue
        share = -(-row // extent)
        if share > LINE_BYTES // place.width.size or not ROW_BYTES[0] <= row * place.width.size <= ROW_BYTES[1]:
            continue  # most lines of the row would be read for nothing
        picks = {name: poly(0) for name in place.offset.names if name.startswith("@")}
        offset = place.offset.substitute(picks | {var: then}) + poly(start) * share
        out[place.memory] = _lines(place, offset, str(PICKED * share))
    return list(out.values())


def picked_row(offset: Poly, var: str, step: Poly) -> int | None:
    """Elements of the row that an access picks from at run time, if that is the next row in every iteration."""
    picks = [name for name in offset.names if name.startswith("@")]
    move = offset.coefficient(var)
    if len(picks) != 1 or move is None:
        return None
    unit, row = offset.coefficient(picks[0]), (move * step).constant
    return row if unit is not None and unit.constant == 1 and row is not None and row > 0 else None


def _next_rows(nest: LoopNest, inner: Loop, start: str, count: str) -> Iterator[NextRow]:
    """The row of the next iteration, while this one, which is in the cache already, is worked on."""
    assert nest.context.ahead is not None
    var, step, then = nest.context.ahead
    fetched: set[str] = set()
    for place in nest.elems.places:
        width = place.width.size
        unit, move = place.offset.coefficient(inner.var), place.offset.coefficient(var)
        read_before = place.memory in nest.context.touched and place.memory not in fetched and not place.writes
        if not read_before or unit is None or unit.constant != 1 or move is None or not move.constant:
            continue
        distance = (move * step).constant  # what one iteration takes: more than the second cache holds is not fetched
        if distance is None or not ROW_BYTES[0] <= abs(distance) * width <= ROW_BYTES[1]:
            continue
        fetched.add(place.memory)
        following = place.offset.substitute({var: then, inner.var: poly(start)})
        yield NextRow.of(nest, place.memory, _lines(place, following, count))


def _further_on(nest: LoopNest, inner: Loop, start: str, count: str) -> Iterator[Ahead]:
    """What comes next in large tensors that this iteration has not read yet."""
    if _busy(nest):
        return
    large = {
        tensor.pointer for tensor in nest.context.tensors.values() if _bytes(tensor.shape, tensor.dtype.size) >= LARGE_BYTES
    }
    reads = [place for place in dict.fromkeys(nest.elems.places) if not place.writes and place.memory in large]
    for place in reads:
        beside = sum(other.memory == place.memory for other in reads)
        distance = _distance(nest, inner, place, beside)
        if place.memory in nest.context.touched or distance is None:
            continue
        following = place.offset + distance
        others = [other.offset for other in reads if other is not place and other.memory == place.memory]
        apart = [(following - other).constant for other in others]
        near = LINE_BYTES // place.width.size
        if any(gap is not None and abs(gap) < near for gap in apart):
            continue  # another load of this very step reads it
        yield Ahead.of(place.memory, _lines(place, following.substitute({inner.var: poly(start)}), count))


def _busy(nest: LoopNest) -> bool:
    """Whether a nest waits for its own arithmetic rather than for memory."""
    return sum(cost_of(output.value) for output in nest.outputs) > BUSY_COST


def _distance(nest: LoopNest, inner: Loop, place: Place, beside: int) -> int | None:
    """How many elements further on to fetch: where the innermost loop that moves on to near what this place and the other loads
    `beside` it read now will be next (16 rows of 2 KB, 1 MB apart, and then the next 16: 0.58 ms without, 0.40 ms with the neighbour of
    each fetched); None if there is none, or it moves in a way that is not known."""
    unit = place.offset.coefficient(inner.var)
    width = place.width.size
    extent = inner.extent.constant
    if unit is None or unit.constant != 1 or extent is None or nest.context.ahead is None:
        return None
    if extent * width >= LONG_ROW:
        return LONG_ROW // 4 // width
    context = [(loop.var, poly(1)) for loop in reversed(nest.loops) if loop is not inner]
    near = NEAR_BYTES
    for var, step in [*context, nest.context.ahead[:2]]:
        move = place.offset.coefficient(var)
        if move is None:
            return None
        advance = (move * step).constant
        if advance is None:
            return None
        if advance and 2 * beside * extent >= abs(advance):
            return advance * -(-near // (abs(advance) * width))
        near = 1 if advance else near  # a loop in between goes elsewhere first: the next iteration is far enough ahead
    return None


def _bytes(shape: tuple[Poly, ...], width: int) -> int:
    """Of a tensor; 0 if its size is not known."""
    size = poly(width)
    for extent in shape:
        size = size * extent
    return size.constant or 0


def _lines(place: Place, offset: Poly, count: str) -> str:
    loop = f"for (int64_t next = 0; next < {count}; next += {LINE_BYTES // place.width.size})"
    return f"{loop} __builtin_prefetch(&{place.memory}[{to_c(offset + poly('next'))}], 0, 2);"
