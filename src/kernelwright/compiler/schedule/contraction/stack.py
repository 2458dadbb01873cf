"""Putting tiles side by side along a new axis, with the only means that the sketch has: choices by position.

The C++ coder knows the pattern (compiler/lower/stacks.py) and writes all parts in one pass; for any other language it is a plain where.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import Binary, Iota, Number, Tile


def stack(tiles: Sequence[Tile], axis: int, behind: int) -> Tile:
    """Tiles of one shape along a new axis at place `axis`, with `behind` axes after it."""
    which: Tile = Iota(nodes.Int(len(tiles)))
    for _ in range(behind):
        which = nodes.Unsqueeze(which, 1)
    result: Tile = nodes.Unsqueeze(tiles[-1], axis)
    for k in reversed(range(len(tiles) - 1)):
        result = nodes.Where(Binary("le", which, Number(k)), nodes.Unsqueeze(tiles[k], axis), result)
    return result
