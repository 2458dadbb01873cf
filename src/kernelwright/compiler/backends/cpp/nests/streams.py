"""The order in which a parallel loop walks through memory: several places in turn, where it would else read one long stream.

In: a chain of parallel loops and the tensors they touch. Out: how many places the loop visits in turn, and the lines that give it
its position. One core that reads a single stream waits at every page (the hardware fetches ahead within a page only, and each page
is looked up first): measured on Zen 4 with 4 KiB pages, two threads read 55 GB/s from one stream each and 76 GB/s from four
in turn, 2 KiB at a time; a copy past the caches goes from 62 to 84 GB/s. Data that lies in a cache is read as fast either way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernelwright.compiler.lower.c_family.elements import TensorPlace
from kernelwright.compiler.lower.tile_values import (
    Access,
    AtAccess,
    Block,
    LoopEffect,
    PickAccess,
    SpanAccess,
    StoreEffect,
    Value,
)
from kernelwright.sketch.index import Poly, Ranges, poly, to_c

LEAST_BYTES = 4 << 20
"""What all iterations together walk through; less stays in the cores' own caches, where the order does not matter."""
GRANULE = (512, 8 << 10)
"""Bytes of one tensor that an iteration reads: shorter pieces end before the hardware has begun to fetch ahead, longer ones are
streams of their own (rows of 16 KiB, in turn, made a softmax 1.2x slower)."""
SHARED_BYTES = 256 << 10
"""What every iteration reads again, or again with its neighbours, stays in the second cache if it is no more than this."""


@dataclass(frozen=True)
class _Walk:
    """One tensor as the loops see it: elements an iteration moves by (outermost loop first), the first and the last that it touches
    before it has moved, how many of them it does touch, and their width."""

    moves: tuple[int, ...]
    first: int
    last: int
    count: int
    width: int

    @property
    def span(self) -> int:
        return self.last - self.first + 1

    def joined(self, other: _Walk) -> _Walk:
        """Two accesses to one tensor as one: neighbours share what either of them reads."""
        first, last = min(self.first, other.first), max(self.last, other.last)
        return _Walk(self.moves, first, last, max(self.count, other.count), self.width)


def places_in_turn(
    chain: list[LoopEffect],
    values: Iterable[Value],
    tensors: Mapping[str, TensorPlace],
    ranges: Ranges,
    wish: int,
) -> int:
    """In how many places at once the loops may walk; 1 if their order must stay, or does not matter."""
    trips = [_trips(loop) for loop in chain]
    accesses = [(v.data.tensor, v.data.axes) for v in values if v.op == "load"] + _stores(chain[-1].body)
    if wish < 2 or any(v.op in ("gemm", "argsort") for v in values):
        return 1
    if None in trips:
        return 1
    walks: dict[str, _Walk] = {}
    for tensor, axes in accesses:
        place = tensors[tensor]
        if any(isinstance(axis, PickAccess) for axis in axes):
            if isinstance(axes[-1], PickAccess) and any(_moves(axis, chain[-1].var) for axis in axes):
                return 1  # picked from the next row in each iteration, which is fetched ahead
            continue  # picked at run time from anywhere: no order is better than another
        walk = _walk(place, axes, chain, ranges)
        other = walks.get(place.pointer, walk)
        if walk is None or other is None or walk.moves != other.moves:
            return 1
        walks[place.pointer] = walk.joined(other)
    counts = [t for t in trips if t is not None]
    bytes_of = [_walked(walk, counts) for walk in walks.values()]
    if None in bytes_of or math.prod(counts) < 8 * wish:
        return 1
    return wish if sum(n for n in bytes_of if n is not None) >= LEAST_BYTES else 1


def _moves(axis: Access, var: str) -> bool:
    """Whether a position along an axis follows a loop."""
    at = axis.index if isinstance(axis, AtAccess) else axis.start if isinstance(axis, SpanAccess) else poly(0)
    return var in at.names


def _walked(walk: _Walk, trips: list[int]) -> int | None:
    """Bytes that the loops walk through in this tensor, 0 if it stays in a cache; None if neighbours share what they read."""
    if not any(walk.moves):
        return 0 if walk.span * walk.width <= SHARED_BYTES else None
    reach = walk.span
    for move, count in zip(reversed(walk.moves), reversed(trips), strict=True):
        if move < reach:  # it moves by less than it reads (or not at all, along this loop)
            total = sum(m * (t - 1) for m, t in zip(walk.moves, trips, strict=True)) + walk.span
            return 0 if 0 <= total * walk.width <= SHARED_BYTES else None
        reach = move * (count - 1) + reach
    if walk.span > 2 * walk.count:
        return None  # pieces far apart: these are several streams already
    if not GRANULE[0] <= walk.count * walk.width <= GRANULE[1]:
        return 0 if walk.count * walk.width < GRANULE[0] else None
    return walk.count * walk.width * math.prod(trips)


def _walk(tensor: TensorPlace, axes: tuple[Access, ...], chain: list[LoopEffect], ranges: Ranges) -> _Walk | None:
    start, span, count = poly(0), 1, 1
    for axis, stride in zip(axes, tensor.strides, strict=True):
        if isinstance(axis, AtAccess):
            start = start + axis.index * stride
        elif isinstance(axis, SpanAccess):
            start = start + axis.start * stride
            extent, step = axis.extent.constant, (axis.step * stride).constant
            if extent is None or step is None:
                return None
            span += (extent - 1) * abs(step)
            count *= extent
    moves = []
    for loop in chain:
        factor = start.coefficient(loop.var)
        move = None if factor is None else (factor * loop.step).constant
        if move is None:
            return None
        moves.append(move)
    rest = start.substitute({loop.var: poly(0) for loop in chain})
    low, high = ranges.lower(rest), ranges.upper(rest)
    if low is None or high is None or low.constant is None or high.constant is None:
        return None
    inner = high.constant - low.constant
    if inner:  # loops inside walk on: what they touch altogether counts
        count = min(inner + span, count * (inner // span + 1))
    return _Walk(tuple(moves), low.constant, high.constant + span - 1, count, tensor.dtype.size)


def _stores(block: Block) -> list[tuple[str, tuple[Access, ...]]]:
    found = []
    for effect in block.effects:
        if isinstance(effect, StoreEffect):
            found.append((effect.tensor, effect.axes))
        elif isinstance(effect, LoopEffect):
            found += _stores(effect.body)
    return found


def _trips(loop: LoopEffect) -> int | None:
    distance, step = (loop.stop - loop.start).constant, loop.step.constant
    return None if distance is None or not step else -(-distance // step)


def heads(chain: list[LoopEffect], places: int, turn: str, at: str) -> list[str]:
    """The one loop that stands for the chain, and the lines that say where each of its turns is."""
    total = math.prod(_trips(loop) or 1 for loop in chain)
    each = total // places
    where = f"{turn} % {places} * {each} + {turn} / {places}"
    if total % places:
        where = f"{turn} < {each * places} ? {where} : {turn}"
    lines = [
        f"for (int64_t {turn} = 0; {turn} < {total}; ++{turn}) {{",
        f"// {places} places in turn: memory answers them together",
    ]
    if len(chain) == 1:
        return [*lines, f"const int64_t {chain[0].var} = {_scaled(chain[0], f'({where})', where)};"]
    lines.append(f"const int64_t {at} = {where};")
    below = total
    for loop in chain:
        count = _trips(loop) or 1
        below //= count
        position = f"{at} / {below}" if below > 1 else at
        position = f"{position} % {count}" if loop is not chain[0] else position
        lines.append(f"const int64_t {loop.var} = {_scaled(loop, f'({position})', position)};")
    return lines


def _scaled(loop: LoopEffect, closed: str, text: str) -> str:
    step, start = loop.step.constant, to_c(loop.start)
    scaled = text if step == 1 else f"{closed} * {step}"
    if start == "0":
        return scaled
    return f"{start} + {closed if step == 1 else scaled}"


def following(loop: LoopEffect, places: int) -> Poly:
    """What most often comes next: the same row of the next place."""
    return poly(loop.var) + loop.step * ((_trips(loop) or places) // places)
