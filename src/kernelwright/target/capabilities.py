"""What a schedule may count on: a Target's sheet and the way in which a language uses it in, one frozen description out.

Designer, cost model and lowering read this and nothing else of the hardware: no rule asks for a language's or a device's name. The
same device is another machine to another language (a CPU by OpenCL runs blocks), so a description belongs to both.

A *unit* is what runs one iteration of the outermost parallel loops at a time: a core of a CPU, a multiprocessor or compute unit of a
GPU, a vector core of an NPU. Figures are in base units: bytes, bytes/s, FLOP/s, seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from kernelwright.target.predict import LAUNCH_SECONDS
from kernelwright.target.sheet import Target

Execution = Literal["threads", "blocks"]
"""How a language runs parallel iterations: a thread of a core takes several in turn, with vectors inside; or each is a block, all of
whose threads work on one tile."""

ASSUMED_CACHES = {"L1d": 32 << 10, "L2": 512 << 10}
"""Of a CPU whose sheet says nothing of its caches."""
ASSUMED_SHARED, ASSUMED_REGISTERS = 48 << 10, 65_536
"""Shared memory of a block and 32-bit registers of a unit where a GPU's sheet is silent: what every CUDA device since 2012 has."""
OWN_CACHES = ("L1d", "L2")
"""Caches that a core has for itself; what is behind them is shared."""
ASSUMED_PEAK = 1.0e11
"""FLOP/s of a unit of which no sheet says anything."""
FEW_CORES = 4
WAKE_SECONDS = 5e-6
"""Waking the threads of a CPU for a loop, where it was not measured."""
MATRIX_UNITS = frozenset(("tensor_core", "matrix_core", "cube"))


@dataclass(frozen=True)
class Memory:
    """One level between registers and main memory, of one unit (the last level: of all units); a bandwidth of 0 is not known."""

    name: str
    bytes: int
    bandwidth: float = 0.0


@dataclass(frozen=True)
class Capabilities:
    """`title` is the device's; `origin` says how its figures were had (measured, estimated, the vendor's)."""

    title: str
    execution: Execution
    units: int
    lanes: int
    """Floats of a vector register, or threads of a warp."""
    registers: int
    """Bytes of a unit's register file (of a core: of its vector registers)."""
    levels: tuple[Memory, ...]
    """Memories between registers and main memory, nearest first: shared memory of a block, caches."""
    bandwidth: float
    peaks: tuple[tuple[str, float], ...]
    """FLOP/s of the whole device by dtype, and of "tf32"."""
    tile_bytes: int
    """What the tiles of one task may take beside each other."""
    staged_bytes: int
    """What the operands of a product that are staged for reuse may take, all stages together."""
    accumulator_bytes: int
    """What the sums of one task may take."""
    matrix_dtypes: frozenset[str] = frozenset()
    """Dtypes that matrix units multiply."""
    matrix_operands: Literal["registers", "shared"] = "registers"
    """Where matrix units read their operands: through registers, which then hold them beside the sums, or in shared memory (wgmma)."""
    launch_seconds: float = LAUNCH_SECONDS
    """Of one more kernel: of its launch, or of waking the threads of a CPU."""
    threads_per_unit: int = 1
    grain: float = 1.0
    """Tiles of convolutions beside those that should be best, for a search: what the caches of a machine prefer is only guessed."""
    origin: str = "estimated"

    @classmethod
    def of(cls, target: Target, execution: Execution = "threads", *, shared_limit: int = 0) -> Capabilities:
        """The description of a target for a language that executes so; `shared_limit` is what its kernels may have of a block's
        shared memory, if that is less than the device gives."""
        make = cls._of_cores if target.kind == "cpu" else cls._of_multiprocessors
        found = make(target, execution, shared_limit)
        return replace(found, units=max(1, target.cores), bandwidth=target.bandwidth, origin=target.origin)

    @classmethod
    def _of_cores(cls, target: Target, execution: Execution, shared_limit: int) -> Capabilities:
        """A CPU. Half of a core's second cache is for tiles, the other half for what streams through it (measured on Zen 4 with 1 MiB)."""
        caches = target.caches or ASSUMED_CACHES
        lanes = _vector_lanes(target.features)
        vectors = 32 if lanes == 16 or {"sve", "asimd"} & set(target.features) else 16
        own = max((size for name, size in caches.items() if name in OWN_CACHES), default=ASSUMED_CACHES["L2"])
        staged = min(own, shared_limit) if shared_limit else own
        return cls(
            target.title, execution, 1, lanes, vectors * lanes * 4, _memories(caches, target), 0.0, _peaks(target),
            tile_bytes=own // 2, staged_bytes=staged, accumulator_bytes=own, launch_seconds=target.wake_seconds or WAKE_SECONDS,
        )  # fmt: skip

    @classmethod
    def _of_multiprocessors(cls, target: Target, execution: Execution, shared_limit: int) -> Capabilities:
        """A GPU or NPU. An eighth of a register file for sums lets two blocks or more share a unit, with as many registers again for
        operands and addresses."""
        shared = target.shared_memory_per_block or target.shared_memory or ASSUMED_SHARED
        shared = min(shared, shared_limit) if shared_limit else shared
        registers = 4 * (target.registers or ASSUMED_REGISTERS)
        matrix = frozenset(target.peak_flops) - {"float32", "float64"} if MATRIX_UNITS & set(target.features) else frozenset()
        operands: Literal["registers", "shared"] = "shared" if {"wgmma", "tcgen05"} & set(target.features) else "registers"
        caches = target.caches or ({"L2": target.last_level_cache} if target.last_level_cache else {})
        levels = (Memory("shared memory", shared), *_memories(caches, target))
        return cls(
            target.title, execution, 1, target.warp, registers, levels, 0.0, _peaks(target), tile_bytes=shared,
            staged_bytes=shared, accumulator_bytes=registers // 8, matrix_dtypes=matrix, matrix_operands=operands,
            threads_per_unit=target.threads_per_core,
        )  # fmt: skip

    # ------------------------------------------------------------ what rules ask

    @property
    def vectors(self) -> bool:
        """Whether a unit is a core whose vectors reach every element of a tile in its cache: transforms between products, phases put
        side by side and weights in panels are cheap there, loops carry a running value along, and several kernels cost no more than
        one. Elsewhere schedules keep to plain loads, products and stores."""
        return self.execution == "threads"

    @property
    def level1(self) -> int:
        """Bytes of the memory nearest to a unit's registers."""
        return self.levels[0].bytes

    @property
    def peak(self) -> float:
        """FLOP/s of all units in float32."""
        return self.peak_of("float32")

    @property
    def unit_peak(self) -> float:
        """FLOP/s of one unit in float32."""
        return self.peak / self.units

    def peak_of(self, dtype: str) -> float:
        """FLOP/s of all units for a dtype; one that is not named runs at the rate of float32."""
        known = dict(self.peaks)
        return known.get(dtype) or known.get("float32") or ASSUMED_PEAK * self.units

    @property
    def operations_per_second(self) -> float:
        """Of elementwise code over all units: with loads, compares and conversions between, a tenth of the multiplications."""
        return self.peak / 10

    @property
    def alone(self) -> int:
        """Floats that one unit reads in the time that another kernel costs: shorter work is not worth sharing out. For cores at least
        the 65,536 that were measured (waking and false sharing cost more than the figures say)."""
        own = self.bandwidth / self.units * self.launch_seconds / 4
        return 65_536 if self.vectors else max(4096, 1 << round(math.log2(max(1.0, own))))

    def sums_bytes(self, *, matrix: bool) -> int:
        """What the sums of one product may take of a unit's registers. Without matrix units a thread reads operands for every few sums;
        those that read shared memory themselves leave the registers to the sums."""
        if not matrix:
            return self.accumulator_bytes // 2
        return self.accumulator_bytes * (4 if self.matrix_operands == "shared" else 2)

    def busy(self, tasks: int) -> bool:
        """Whether so many iterations keep all units busy to the end. Blocks share a unit anyway; a core takes several in turn, and on
        few cores whatever else runs there is felt (measured on two), so that as many as there are cores are not enough."""
        if not self.vectors:
            return tasks >= self.units
        return tasks >= 4 * self.units or (self.units > FEW_CORES and tasks > 0 and tasks % self.units == 0)

    def worth_sharing(self, elements: int, tasks: int) -> bool:
        """Whether reading so many elements, which only so many tasks share, is worth the kernels that share it among all units: one
        for the parts, one for their sums. A unit alone gets about twice its share of the memory's bandwidth."""
        if self.vectors:
            return elements > self.alone
        return elements / max(1, tasks) * (1 - min(1.0, 2 * tasks / self.units)) > 2 * self.alone

    def facts(self) -> str:
        """The figures that decide, as one line for a reader."""
        unit, wide = ("cores", "floats in a vector") if self.vectors else ("units", "threads in a warp")
        memories = ", ".join(f"{level.name} {level.bytes >> 10:,} KiB" for level in self.levels)
        registers = f"registers {self.registers >> 10:,} KiB" if self.registers >= 1 << 10 else f"registers {self.registers} B"
        return (
            f"for {self.title} ({self.origin}): {self.units} {unit}, {self.lanes} {wide}, {registers}, {memories}, "
            f"{self.peak / 1e12:.3g} TFLOP/s, {self.bandwidth / 1e9:,.0f} GB/s"
        )


def _memories(caches: dict[str, int], target: Target) -> tuple[Memory, ...]:
    return tuple(Memory(name, size, target.level_bandwidth.get(name, 0.0)) for name, size in caches.items())


def _peaks(target: Target) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(target.peak_flops.items()))


def _vector_lanes(features: tuple[str, ...]) -> int:
    """Floats of the widest vector register."""
    if any(name.startswith("avx512") for name in features):
        return 16
    return 8 if {"avx", "avx2", "sve"} & set(features) else 4
