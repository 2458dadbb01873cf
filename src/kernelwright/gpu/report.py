"""What a launch says of itself: faults with their source lines, counts by instruction."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.gpu.ptx import Location

KINDS = {
    1: "out_of_bounds",
    2: "misaligned",
    3: "uninitialised",
    4: "shared_race",
    5: "global_race",
    6: "divergent_barrier",
    7: "deadlock",
    8: "stale_copy",
    9: "trap",
    10: "assert",
    11: "shared_out_of_bounds",
    12: "local_out_of_bounds",
    13: "missing_lanes",
    14: "bad_map",
    15: "block_ended",
    16: "unfinished_product",
    17: "lane_race",
}
_SENTENCES = {
    "out_of_bounds": "accesses memory outside of all allocations",
    "misaligned": "accesses an address that is not a multiple of the access's size",
    "uninitialised": "reads shared memory that nothing has written",
    "shared_race": "accesses shared memory that another warp accessed with no barrier between",
    "global_race": "accesses global memory that another block wrote in the same launch",
    "divergent_barrier": "reaches a barrier with a part of its warp",
    "deadlock": "waits for what never comes",
    "stale_copy": "reads shared memory into which an asynchronous copy has not been waited for",
    "trap": "stops by a trap",
    "assert": "fails an assertion",
    "shared_out_of_bounds": "accesses shared memory beyond what its block has",
    "local_out_of_bounds": "accesses local memory beyond its frame",
    "missing_lanes": "names lanes that do not come to this instruction",
    "bad_map": "copies a tile by a tensor map that was not made, has another rank or an interleaved layout",
    "block_ended": "accesses shared memory of a block of its cluster that has ended",
    "lane_race": "stores another value to a place than a lane beside it does",
    "unfinished_product": "uses a register of a product on matrix units that has not been waited for",
}


@dataclass(frozen=True)
class Fault:
    """Something that a kernel must not do, with the thread that was seen doing it."""

    kind: str
    kernel: str
    instruction: str
    ptx_line: int
    location: Location | None
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    address: int = 0
    detail: int = 0
    where: str = ""

    def __str__(self) -> str:
        place = str(self.location.outermost) if self.location else f"line {self.ptx_line} of the PTX"
        inner = f" (inlined from {self.location})" if self.location and self.location.inlined_at else ""
        where = f": {self.where}" if self.where else ""
        return (
            f"{place}{inner}: {self.kernel}, block {self.block}, thread {self.thread}: {self.instruction} "
            f"{_SENTENCES.get(self.kind, self.kind)}{where}"
        )


@dataclass(frozen=True)
class Count:
    """An instruction: how often warps executed it, with how many lanes in all.

    Of accesses to memory also: requests (executions with at least one lane), their lanes, the units that they took (32-byte
    sectors of global memory, passes over the banks of shared memory) and the least with which the same bytes could be had.
    """

    instruction: str
    ptx_line: int
    location: Location | None
    warps: int
    lanes: int
    block: int
    place: int
    """Where the instruction stands: its basic block among the module's, and its number there."""
    requests: int = 0
    active: int = 0
    units: int = 0
    least_units: int = 0
    wavefronts: int = 0
    """Turns of the memory's pipe: lines of 128 bytes, or passes over the banks when equal words of the whole warp are had at once."""
    missed: int = 0
    """Of a sample: sectors that the first level of caches did not have."""


@dataclass(frozen=True)
class Report:
    """The outcome of a launch."""

    entry: str
    faults: tuple[Fault, ...] = ()
    counts: tuple[Count, ...] = ()
    checked: bool = False
    misses: bytes = b""
    """Of a sample: what went on to the second level, in order: pairs of 64-bit words, a sector's number and the site."""

    @property
    def ok(self) -> bool:
        """Whether nothing wrong was seen."""
        return not self.faults

    def by_opcode(self) -> dict[str, int]:
        """Executions by warps for each kind of instruction, the most frequent first."""
        found: dict[str, int] = {}
        for c in self.counts:
            found[c.instruction] = found.get(c.instruction, 0) + c.warps
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def by_line(self) -> dict[str, int]:
        """Executions by warps for each line of the kernel's source, inlined code at its call."""
        found: dict[str, int] = {}
        for c in self.counts:
            place = str(c.location.outermost) if c.location else "?"
            found[place] = found.get(place, 0) + c.warps
        return dict(sorted(found.items(), key=lambda item: -item[1]))
