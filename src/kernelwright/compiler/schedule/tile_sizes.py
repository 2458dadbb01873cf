"""How large the tiles of a nest may be: capabilities in, elements out.

On a core, tiles lie in its caches; a block keeps them in registers. Constants were measured on Zen 3 and Zen 4 with 32 KiB and 1 MiB of
own caches, and are parts of these, so that a core with less gets smaller tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.target import Capabilities

FLAT, CHUNK = 2048, 4096
"""Elements of a pointwise tile (two pages: loop overhead vanishes, a core can take several in turn), and of a row walked in pieces."""
WALKED = 512
"""Neighbours that are walked together along a strided axis."""
FLOAT = 4


@dataclass(frozen=True)
class TileSizes:
    """`row`: elements of a row that is kept whole; `column`: of a [reduced, neighbours] tile; `chunk`: of a piece of a long row."""

    row: int
    column: int
    chunk: int
    most_flat: int
    machine: Capabilities

    @classmethod
    def of(cls, machine: Capabilities) -> TileSizes:
        """For units of this device."""
        if machine.vectors:
            row = machine.tile_bytes // (2 * FLOAT)
            small = machine.level1 // (2 * FLOAT)
            return cls(row, row // 2, min(CHUNK, small), min(FLAT, small // 2), machine)
        row = machine.registers // FLOAT
        return cls(row, row // 2, row // 16, FLAT, machine)

    def flat(self, elements: int) -> int:
        """Of a pointwise tile, where there are so many elements in all."""
        return self._shared(elements, self.most_flat)

    def walked_columns(self, elements: int) -> int:
        """Of a tile of neighbours whose strided axes are walked."""
        return self._shared(elements, WALKED)

    def _shared(self, elements: int, most: int) -> int:
        """Every unit gets a block, as long as each thread of a few warps has an element. A core takes small work alone."""
        if self.machine.vectors:
            return most
        least = 4 * self.machine.lanes
        while most > least and elements < most * self.machine.units:
            most //= 2
        return most
