"""The body of a CUDA kernel: effects of one iteration of the parallel loops, carried out by a block of threads together.

In: the graph of a kernel and what of it is materialized. Out: CUDA lines. The order of work is that of the C family; what differs is how it
is written: nests are dealt out to threads (cooperate.py), kept tiles lie in shared memory (or in global scratch memory when they are
too large), single numbers are registers that all threads hold alike, and barriers stand where one nest needs another's results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from kernelwright.compiler.backends.cuda_c import cooperate, special, tile_product
from kernelwright.compiler.lower.c_family.nest import Nest
from kernelwright.compiler.lower.c_family.schedule import Scheduler, loop_head
from kernelwright.compiler.lower.c_types import STORED
from kernelwright.compiler.lower.tile_values import LoopEffect, Storage, Value
from kernelwright.sketch.index import Poly, poly, to_c

SHARED_BYTES = 44 * 1024
"""Of the 48 KiB that every block may have, for kept tiles; the rest is for meeting points and products."""


@dataclass
class BlockScheduler(Scheduler):
    """Writes what one block does."""

    nest_writer: ClassVar[type[cooperate.NestWriter]] = cooperate.NestWriter
    shared_bytes: ClassVar[int] = SHARED_BYTES
    threads: int = 256
    position: str = "int"
    shared: int = 0
    scratch_bytes: Poly = field(default_factory=Poly)
    meets: bool = False
    unread: set[str] = field(default_factory=set)  # written since the last barrier
    unwritten: set[str] = field(default_factory=set)  # read since the last barrier
    watched: set[str] = field(default_factory=set)  # C names of tensors that this kernel both reads and writes
    kept: list[Storage] = field(default_factory=list)

    # ------------------------------------------------------------ barriers

    def barrier(self) -> None:
        """Everything before is seen by everything after."""
        if self.unread or self.unwritten:
            self.out.append("__syncthreads();")
        self.unread.clear()
        self.unwritten.clear()

    def touch(self, reads: set[str], writes: set[str]) -> None:
        """Places a barrier if what comes now needs one, and remembers what it touches."""
        local = {storage.name for storage in self.kept}
        reads, writes = (names & (local | self.watched) for names in (reads, writes))
        if (reads | writes) & self.unread or writes & self.unwritten:
            self.barrier()
        self.unread |= writes
        self.unwritten |= reads

    def emit(self, nest: Nest, shape: tuple[Poly, ...]) -> None:
        written = self.nest_writer(nest, self.threads, self.position).write()
        self.touch(written.reads, written.writes)
        if written.meets:
            self.meets = True
        self.out += written.lines

    def declare_storage(self, storage: Storage) -> None:
        kind = STORED[storage.dtype]
        self.context.taken.add(storage.name)
        if storage.scalar:
            self.out.append(f"{kind} {storage.name};")
            return
        self.kept.append(storage)
        size = poly(1)
        for extent in storage.extents:
            size = size * extent
        count = size.constant
        bytes_ = None if count is None else (count * storage.dtype.size + 15) // 16 * 16
        if bytes_ is not None and self.shared + bytes_ <= self.shared_bytes:
            self.shared += bytes_
            self.out.append(f"__shared__ __align__(16) {kind} {storage.name}[{max(count or 1, 1)}];")
            return
        offset = to_c(self.scratch_bytes)
        self.out.append(f"{kind}* const {storage.name} = reinterpret_cast<{kind}*>(scratch_of_block + {offset});")
        self.scratch_bytes = self.scratch_bytes + _rounded(size * storage.dtype.size)

    # ------------------------------------------------------------ effects

    def scan(self, value: Value) -> None:
        special.scan(self, value)

    def argsort(self, value: Value) -> None:
        special.argsort(self, value)

    def product(self, value: Value) -> None:
        tile_product.product(self, value)

    def loop(self, loop: LoopEffect) -> None:
        """A loop that all threads walk together; one that is parallel inside a block's work too."""
        self.make_outer_values(loop)
        self.begin_carried(loop)
        self.barrier()
        self.out.append(loop_head(loop, self.position) + " {")
        self.inside(loop)
        self.barrier()
        self.out.append("}")
        self.left(loop)


def _rounded(size: Poly) -> Poly:
    return poly((size.constant + 255) // 256 * 256) if size.constant is not None else size + 256
