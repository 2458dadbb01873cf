"""How much of a GPU's core a kernel can fill: registers, shared memory and threads of a block in, a fraction and its limiter out.

The rules are those of the vendors' occupancy calculators: a core takes whole blocks until threads, block slots, registers (given
to a warp in units) or shared memory run out.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.target.sheet import Target

REGISTER_UNIT = 256
"""Registers are given to a warp in this many at once (CUDA: compute capability 7.0 and later)."""
VECTOR_REGISTER_UNIT = 8
"""On AMD a wave's vector registers are given out in eights per lane."""
SHARED_UNIT = 128
SHARED_RESERVED = 1024
"""Shared memory that CUDA keeps for itself in each block from compute capability 8.0 on."""


@dataclass(frozen=True)
class Occupancy:
    """`fraction` of the warps that a core can hold; `limiter` is what ran out first."""

    fraction: float
    limiter: str
    blocks: int


def occupancy(target: Target, *, threads: int, registers: int, shared_memory: int) -> Occupancy:
    """The occupancy of one kernel on a target; zero blocks when a block does not fit at all."""
    warps = max(1, -(-threads // target.warp))
    room = max(1, target.threads_per_core // target.warp)
    limits = {"threads": room // warps, "blocks": target.blocks_per_core}
    if target.registers and registers:
        limits["registers"] = _warps_by_registers(target, registers) // warps
    if target.shared_memory and shared_memory:
        reserved = SHARED_RESERVED if target.kind == "cuda" and not target.arch.startswith("sm_7") else 0
        block = -(-(shared_memory + reserved) // SHARED_UNIT) * SHARED_UNIT
        limits["shared memory"] = target.shared_memory // block
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(min(1.0, blocks * warps / room), limiter, blocks)


def _warps_by_registers(target: Target, registers: int) -> int:
    if target.kind == "rocm":
        per_wave = -(-registers // VECTOR_REGISTER_UNIT) * VECTOR_REGISTER_UNIT * target.warp
        return target.registers // per_wave
    per_warp = -(-registers * target.warp // REGISTER_UNIT) * REGISTER_UNIT
    # Each of a multiprocessor's four schedulers has a quarter of the registers.
    return 4 * (target.registers // 4 // per_warp)
