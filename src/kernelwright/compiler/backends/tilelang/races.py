"""Global memory that a kernel both writes and reads, watched: TileLang places barriers for shared memory, not for global memory.

`watched(body)` names such tensors; the interpreter gives them a `Watched` array, which raises where a block reads what other threads of
it have stored since the last barrier. Who writes and reads one element is known by lanes: the same indices in the same order are the
same threads. Blocks are not compared with one another: those that share data use atomics, whose order nobody here can judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tilelang import tvm  # tilelang puts its own TVM on the path

from kernelwright.compiler.backends.tilelang.arrays import Array, Tile

tirx: Any = tvm.tirx
MOST_STORES = 64
"""Of a block since its last barrier that are remembered."""
READ, WRITE = 1, 2
"""How a `tl.region` is accessed: bits of its second argument."""


class Race(RuntimeError):
    """A block reads what other threads of it have just stored, with no barrier in between."""


class Watched(Array):
    """A tensor of the caller, with what the running block has stored in it."""

    def __init__(self, name: str, data: Tile) -> None:
        super().__init__(name, data, guarded=True)
        self._stored: list[Tile] = []

    def barrier(self) -> None:
        """All threads see what was stored before it; so it is where another block begins."""
        self._stored.clear()

    def _lanes(self, index: Sequence[Any], mask: Any) -> Tile:
        """For each lane the flat position that it touches, -1 where it touches none."""
        flat: Any = 0
        inside: Any = True if mask is None else mask
        for at, extent in zip(index, self.data.shape, strict=True):
            inside = inside & (np.asarray(at) >= 0) & (np.asarray(at) < extent)
            flat = flat * extent + at
        return np.asarray(np.where(inside, flat, -1))

    def _keep(self, lanes: Tile) -> None:
        self._stored = [*self._stored[1 - MOST_STORES :], lanes]

    def _seen(self, lanes: Tile) -> None:
        """Raise when one of these lanes reads what another stored."""
        for before in self._stored:
            if before.shape == lanes.shape and np.array_equal(before, lanes):
                continue
            common = np.intersect1d(before, lanes)
            if common.size and common[-1] >= 0:
                at = [int(each) for each in np.unravel_index(int(common[-1]), self.data.shape)]
                raise Race(
                    f"reads {self.name}[{', '.join(map(str, at))}], which other threads of the block have just stored in global "
                    "memory: a T.sync_threads() is missing in between (race)"
                )

    def load(self, index: Sequence[Any], mask: Any) -> Any:
        self._seen(self._lanes(index, mask))
        return super().load(index, mask)

    def store(self, index: Sequence[Any], value: Any, mask: Any) -> None:
        super().store(index, value, mask)
        self._keep(self._lanes(index, mask))

    def region(self, start: Sequence[int], extents: Sequence[int]) -> Tile:
        self._seen(self._lanes(_positions(start, extents), None))
        return super().region(start, extents)

    def put(self, start: Sequence[int], extents: Sequence[int], value: Any) -> None:
        super().put(start, extents, value)
        self._keep(self._lanes(_positions(start, extents), None))


def _positions(start: Sequence[int], extents: Sequence[int]) -> list[Any]:
    """The indices of a box, one array for each axis."""
    return list(np.ix_(*(np.arange(at, at + extent) for at, extent in zip(start, extents, strict=True))))


def watched(body: Any) -> set[int]:
    """Hashes of the buffers in global memory that a program both writes and reads element by element or tile by tile."""
    reads: dict[int, int] = {}
    written: set[int] = set()

    def look(node: Any) -> None:
        kind = type(node).__name__
        if kind == "BufferLoad":
            reads[hash(node)] = hash(node.buffer)
        elif kind == "BufferStore":
            written.add(hash(node.buffer))
        elif kind == "Call" and str(node.op.name).endswith("region") and type(node.args[0]).__name__ == "BufferLoad":
            access = int(node.args[1])
            if access & WRITE:
                written.add(hash(node.args[0].buffer))
            if not access & READ:
                reads.pop(hash(node.args[0]), None)

    tirx.stmt_functor.post_order_visit(body, look)
    return written & set(reads.values())
