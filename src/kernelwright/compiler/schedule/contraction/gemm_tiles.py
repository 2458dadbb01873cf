"""The tile of the output that one task of a matrix product computes on a CPU, by what every tiling would cost.

In: extents, how many products there are, threads, and the largest tile that the caches like. Out: (tall, wide). The threads finish
together only if the tiles divide evenly among them: a seventh tile for two threads costs as much as an eighth, and measured on Zen 4
(640 x 768 x 896) that is 30 %, far more than anything else a tile's shape does.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.compiler.graph.symbolic import Extent, Size, likely
from kernelwright.compiler.schedule.contraction.blocks import ceil_div

LEAST = 24
"""Rows or columns under which a tile is mostly overhead."""
ROWS, LANES = 6, 16
"""Multiples that fill the registers of every machine: rows of a block, columns of a vector."""
BORDER = 1.02
"""What tiles that run over the end cost more: their extents are known only when the kernel runs."""

REST = 0.5
"""Rows that a last block of fewer rows costs more: it makes fewer sums at a time, and waits for them (768 x 512 x 384 in tiles of 192
rows instead of 256: 1 to 5 % less on Zen 4)."""


SMALL = 64
"""The least that the largest tile of a varying extent may be: however small the example is, others are larger."""


@dataclass(frozen=True)
class Copies:
    """What it costs to bring an element of A or B to where the products read it, in multiplications."""

    a: float
    b: float


def choose(
    m: Extent, n: Extent, products: int, threads: int, most: tuple[int, int], copies: Copies
) -> tuple[int, int]:  # fmt: skip
    """The cheapest tile no larger than `most`: rounds of all threads, times a tile's multiplications and copies. Tiles of an
    extent that varies are whole blocks, and end where it does; they are not much larger than the example, since not all that is done with
    a tile ends there (measured: 25 % for sums of 64 rows in tiles of 256)."""
    varies, m, n = (isinstance(m, Size), isinstance(n, Size)), likely(m), likely(n)
    most = (
        min(most[0], max(SMALL, ceil_div(m, 2 * ROWS) * 2 * ROWS)) if varies[0] else most[0],
        min(most[1], max(SMALL, ceil_div(n, LANES) * LANES)) if varies[1] else most[1],
    )

    def cost(tile: tuple[int, int]) -> tuple[float, int]:
        tall, wide = min(tile[0], m) if varies[0] else tile[0], min(tile[1], n) if varies[1] else tile[1]
        rounds = ceil_div(products * ceil_div(m, tall) * ceil_div(n, wide), threads)
        whole = BORDER ** ((m % tall > 0) + (n % wide > 0))
        lanes = ceil_div(wide, LANES) * LANES
        rows = tall + REST * (tall % ROWS > 0)
        return rounds * whole * (rows * lanes + copies.b * lanes + copies.a * tall), -tile[0] * tile[1]

    rows = range(ROWS * 4, most[0] + 1, ROWS * 2) if varies[0] else _extents(m, most[0], ROWS)
    columns = range(LANES * 2, most[1] + 1, LANES) if varies[1] else _extents(n, most[1], LANES)
    tiles = [(tall, wide) for tall in rows for wide in columns]
    return min(tiles, key=cost)


def _extents(extent: int, most: int, multiple: int) -> list[int]:
    """Blocks that cut an extent in equal parts: exactly, or rounded up to the multiple."""
    if extent <= LEAST:
        return [extent]
    found: dict[int, None] = {}
    for parts in range(ceil_div(extent, most), ceil_div(extent, LEAST) + 1):
        even = ceil_div(extent, parts)
        found[even if extent % parts == 0 else min(extent, ceil_div(even, multiple) * multiple)] = None
    return list(found)
