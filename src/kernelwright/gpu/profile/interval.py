"""How long a launch would take: an interval model over what was counted. Never a measurement.

1. a block's instructions by pipe, and turns of the memory's pipe → cycles of a multiprocessor that is never short of work;
2. the longest chain of results in each basic block, times its executions → cycles of a warp that is alone;
3. the blocks that are resident together overlap these: the larger of both, and of the smaller the part that nothing hides;
4. waves of blocks over the multiprocessors; bytes of the second level and of memory over their bandwidths; the slowest decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.gpu.profile.advice import advice
from kernelwright.gpu.profile.costs import cost, is_access, registers_of
from kernelwright.gpu.profile.hardware import Hardware, Resources
from kernelwright.gpu.profile.sampling import SECTOR, Counted, Executed, global_access

RESIDENT = 0.75
"""Of the second level: what is less stays there from one wave to the next."""
LANES = ("float", "integer", "double", "special", "convert")
"""Pipes of which the hardware says how many lanes they take in a cycle."""
ERROR = 0.25
"""Of a prediction, either way: the median of what was published, held against this model (docs/gpu_predictions.md)."""


@dataclass(frozen=True)
class Prediction:
    """Seconds of one launch, what they are made of, and what would change them."""

    seconds: float
    error: float
    bound: str
    parts: Mapping[str, float]
    """Seconds that each resource alone would take."""
    second_level_bytes: float
    memory_bytes: float
    waves: float
    blocks_resident: int
    advice: tuple[str, ...]


def predict(counted: Counted, hardware: Hardware, resources: Resources, *, warm: bool = False) -> Prediction:
    """The time of a launch. `warm`: what fits into the second level is there from an earlier launch."""
    h = hardware
    pipes = _pipes(counted, h)
    resident = max(1, min(resources.blocks, math.ceil(counted.blocks / h.multiprocessors)))
    slots = h.multiprocessors * resident
    waves = counted.blocks / slots
    level2, memory = _traffic(counted, h, resident, warm)
    alone = _alone(counted, h, memory / level2 if level2 else 0.0)
    busiest = max(pipes, key=lambda name: pipes[name])
    throughput = resident * pipes[busiest]
    groups = resident if _has_barriers(counted) else resident * counted.warps
    cycles = max(throughput, alone) + min(throughput, alone) / max(groups, 1)
    most = math.ceil(counted.blocks / h.multiprocessors)
    scale = max(1.0, most / resident)
    cores = cycles * scale / h.clock
    parts = {name: counted.blocks * each / h.multiprocessors / h.clock for name, each in pipes.items()}
    parts["latency"] = alone * scale / h.clock
    parts["second level"] = level2 / h.second_level_bandwidth
    parts["memory"] = memory / h.bandwidth
    parts["waves and tail"] = max(0.0, cores - counted.blocks * max(pipes.values()) / h.multiprocessors / h.clock)
    levels = max(parts["second level"], parts["memory"])
    start = (h.latencies.memory + h.latencies.barrier) / h.clock
    seconds = max(cores, levels) + start
    if cores >= levels:
        bound = "latency" if alone > throughput else busiest
    else:
        bound = "memory" if parts["memory"] >= parts["second level"] else "second level"
    error = math.sqrt(ERROR**2 + counted.spread**2)
    told = advice(counted, resources, bound, resident, waves, alone / max(throughput, 1e-9))
    return Prediction(seconds, error, bound, parts, level2, memory, waves, resident, told)


def _pipes(counted: Counted, h: Hardware) -> dict[str, float]:
    """Cycles of each pipe for one block."""
    lanes = {name: getattr(h, f"{name}_lanes") for name in LANES}
    found = dict.fromkeys(("issue", "memory pipe", "matrix", *lanes), 0.0)
    for e in counted.executed:
        c = cost(e.instruction, h.latencies)
        found["issue"] += e.warps * c.issued / h.schedulers
        if c.pipe in lanes:
            found[c.pipe] += e.warps * c.issued * 32 / lanes[c.pipe]
        elif c.pipe == "matrix":
            found["matrix"] += e.warps * c.flops / (h.matrix_flops.get(c.kind) or h.matrix_flops.get("f16") or 512.0)
        elif c.pipe == "memory":
            found["memory pipe"] += turns(e, h)
    return found


def turns(e: Executed, h: Hardware) -> float:
    """Cycles of the pipe that shared memory and the first level share, for the accesses of a block."""
    least = 32 / h.memory_lanes
    if not e.requests:
        return e.warps * least
    turns = e.wavefronts
    if global_access(e):
        turns = max(turns, e.units * SECTOR / h.memory_bytes)
    return max(turns, e.requests * least)


def _traffic(counted: Counted, h: Hardware, resident: int, warm: bool) -> tuple[float, float]:
    """Bytes of the whole launch that the second level and memory move."""
    level2 = sum(e.missed for e in counted.executed) * SECTOR * counted.blocks
    grid = [float(g) for g in counted.grid]
    whole = sum(f.over(grid) for f in counted.footprints) * SECTOR
    if whole <= RESIDENT * h.second_level_bytes:
        return level2, 0.0 if warm else whole
    wave = _box(counted.grid, h.multiprocessors * resident)
    waves = max(1.0, counted.blocks / (h.multiprocessors * resident))
    each = sum(f.over(wave) for f in counted.footprints) * SECTOR
    return level2, min(max(each * waves, whole), max(level2, whole))


def _box(grid: tuple[int, int, int], blocks: int) -> tuple[float, float, float]:
    """The extents of so many blocks in the order in which they start: along x first."""
    x = min(grid[0], blocks)
    y = min(float(grid[1]), max(1.0, blocks / grid[0]))
    z = min(float(grid[2]), max(1.0, blocks / (grid[0] * grid[1])))
    return float(x), y, z


def _alone(counted: Counted, h: Hardware, beyond: float) -> float:
    """Cycles of a warp from its first to its last instruction, if it were alone: chains of results, block by block."""
    blocks: dict[int, list[Executed]] = {}
    for e in counted.executed:
        blocks.setdefault(e.block, []).append(e)
    return sum(_chain(each, h, beyond) * each[0].warps / counted.warps for each in blocks.values() if each[0].warps)


def _chain(block: list[Executed], h: Hardware, beyond: float) -> float:
    """The longest way through the results of a basic block, and at least its instructions one by one."""
    ready: dict[str, float] = {}
    issued = longest = 0.0
    for e in block:
        i = e.instruction
        c = cost(i, h.latencies)
        destinations, sources = _registers(e)
        start = max([ready.get(name, 0.0) for name in sources], default=0.0)
        issued += c.issued
        latency = c.latency
        if global_access(e) and e.requests and i.opcode in ("ld", "atom", "cp"):
            missed = min(1.0, e.missed / e.units) if e.units else 0.0
            further = h.latencies.memory * beyond + h.latencies.second_level * (1 - beyond)
            latency = h.latencies.first_level * (1 - missed) + further * missed
        if is_access(i) and e.requests:
            latency += max(0.0, turns(e, h) / e.warps - 1)
        done = start + latency
        if i.opcode == "cp" or i.opcode in ("st", "red"):
            done = start
        for name in destinations:
            ready[name] = done
        longest = max(longest, done)
    return max(longest, issued)


def _registers(e: Executed) -> tuple[list[str], list[str]]:
    """What an instruction writes and what it reads."""
    i = e.instruction
    operands = list(i.operands)
    first = operands[0] if operands else None
    guard = [i.guard.name] if i.guard is not None else []
    if i.opcode in ("st", "red", "bra", "bar", "barrier", "stmatrix", "cp"):
        return [], [*guard, *(name for o in operands for name in registers_of(o))]
    return registers_of(first), [*guard, *(name for o in operands[1:] for name in registers_of(o))]


def _has_barriers(counted: Counted) -> bool:
    return any(e.instruction.opcode in ("bar", "barrier") for e in counted.executed)
