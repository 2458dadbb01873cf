"""Memory behind a tape, and what following a launch leaves in it."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.lift.formulas.tape import Tape

MOST_BLOCKS = 400


@dataclass(eq=False)
class Memory:
    """`kind`: global (a tensor), shared (the block's) or local (each lane its own). `type` is the element type of a tensor; the
    others hold what is put into them, by byte."""

    kind: str
    name: str
    type: str = ""
    size: int = 0
    tensor: Any = None
    written: dict[int, int] = field(default_factory=dict)
    codes: Any = None
    types: dict[int, str] = field(default_factory=dict)


@dataclass
class Followed:
    """The tape of a launch, the memories by buffer, and whether every block was run."""

    tape: Tape
    memories: dict[str, Memory]
    complete: bool


def order_of_blocks(grid: tuple[int, int, int], total: int) -> list[tuple[int, int, int]]:
    """All blocks of a small grid; else corners and neighbours first, then some at random."""
    if total <= MOST_BLOCKS:
        inside = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
        if total <= 64:
            return inside
    ends = [sorted({0, 1, extent // 2, extent - 1} & set(range(extent))) for extent in grid]
    first = list(itertools.product(*ends))
    random.Random(0).shuffle(first)
    chosen: dict[Any, None] = dict.fromkeys([(0, 0, 0), (grid[0] - 1, grid[1] - 1, grid[2] - 1), *first])
    draw = random.Random(1)
    if total <= MOST_BLOCKS:
        draw.shuffle(inside)
        chosen.update(dict.fromkeys(inside))
    else:
        while len(chosen) < MOST_BLOCKS // 4:
            chosen[(draw.randrange(grid[0]), draw.randrange(grid[1]), draw.randrange(grid[2]))] = None
    return list(chosen)
