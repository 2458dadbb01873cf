"""A decision tree over sizes: measurements in, the `SizeTable` that loses least time at the sizes that occur, weighted by how often, out.

A split must be worth more than noise: what two variants differ by less is served by one of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kernelwright.core.size_choice import SizeTable, Split, Tree

WORTH = 0.03
"""The share of a part's time that a split must save."""
DEEPEST = 4


@dataclass(frozen=True)
class Measured:
    """The seconds of each variant at one setting of the sizes; `count` is how often it occurs. A variant that could not run has None."""

    sizes: Mapping[str, int]
    count: int
    seconds: tuple[float | None, ...]

    def cost(self, variant: int) -> float:
        """The time of all its calls with a variant."""
        seconds = self.seconds[variant]
        return math.inf if seconds is None else seconds * self.count


def table_of(measured: Sequence[Measured], labels: Mapping[str, str], where: str) -> SizeTable:
    """The table, and what it rests on in words; `labels` are the sizes as people call them, `where` is the machine and the day."""
    tree = _grown(list(measured), DEEPEST)
    total = sum(one.count for one in measured)
    evidence = [f"Milliseconds of the variants {', '.join(map(str, range(len(measured[0].seconds))))}, measured on {where}:"]
    for one in measured:
        at = ", ".join(f"{labels.get(name, name)} = {size}" for name, size in one.sizes.items())
        times = "  ".join("-" if seconds is None else f"{seconds * 1e3:.4g}" for seconds in one.seconds)
        evidence.append(f"{at} ({one.count} of {total} calls): {times}")
    return SizeTable(tree, tuple(evidence))


def seconds_of(measured: Sequence[Measured], table: SizeTable) -> float:
    """The time of all calls under a table."""
    return sum(one.cost(table.choose(one.sizes)) for one in measured)


def best_alone(measured: Sequence[Measured]) -> int:
    """The one variant that serves all of them best; the first among equals."""
    return min(range(len(measured[0].seconds)), key=lambda variant: sum(one.cost(variant) for one in measured))


def _grown(part: list[Measured], depth: int) -> Tree:
    alone = best_alone(part)
    cost = _cost(part, alone)
    best: tuple[float, str, int] | None = None
    for name in part[0].sizes if depth else ():
        values = sorted({one.sizes[name] for one in part})
        for low, high in pairwise(values):
            limit = min(high, max(low + 1, round(math.sqrt(low * high))))
            sides = _sides(part, name, limit)
            split = sum(_cost(side, best_alone(side)) for side in sides)
            if best is None or split < best[0]:
                best = split, name, limit
    if best is None or not best[0] < cost * (1 - WORTH):
        # a later split may still pay where this one does not by itself
        return alone if best is None or depth <= 1 else _worthwhile(part, alone, cost, best[1], best[2], depth)
    below, rest = _sides(part, best[1], best[2])
    return _merged(best[1], best[2], _grown(below, depth - 1), _grown(rest, depth - 1))


def _worthwhile(part: list[Measured], alone: int, cost: float, name: str, limit: int, depth: int) -> Tree:
    """The split with what comes under it, if both together are worth it."""
    below, rest = _sides(part, name, limit)
    tree = _merged(name, limit, _grown(below, depth - 1), _grown(rest, depth - 1))
    return tree if seconds_of(part, SizeTable(tree)) < cost * (1 - WORTH) else alone


def _merged(name: str, limit: int, below: Tree, rest: Tree) -> Tree:
    return below if below == rest else Split(name, limit, below, rest)


def _sides(part: list[Measured], name: str, limit: int) -> tuple[list[Measured], list[Measured]]:
    return [one for one in part if one.sizes[name] < limit], [one for one in part if one.sizes[name] >= limit]


def _cost(part: list[Measured], variant: int) -> float:
    return sum(one.cost(variant) for one in part)
