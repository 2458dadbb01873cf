"""One launch followed: blocks of its PTX run on the tape, as many as the time allows.

In: a module, the entry, the launch's grid and arguments, the buffers that its pointers lead into. Out: `Followed`: the tape and for
every tensor that was written the code of each element.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.memory import Followed, order_of_blocks
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape
from kernelwright.compiler.lift.launches import Buffer, View
from kernelwright.compiler.lift.ptx.machine import Machine
from kernelwright.compiler.lift.ptx.memory import Global
from kernelwright.gpu.ptx import Function, Module, Parameter

SECONDS = 8.0
MOST_LANES = 4096
FEWEST_BLOCKS = 4


@dataclass(frozen=True)
class Started:
    """A launch in the compiler's terms: `arguments` are Views, numbers or bytes, one for each parameter of the entry (fewer: the rest
    are null)."""

    module: Module
    entry: Function
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: Sequence[Any]
    name: str
    variables: Mapping[str, View | bytes] = field(default_factory=dict)
    """Variables of the module that host code filled: where what they hold lies."""


def follow(started: Started, buffers: Mapping[str, Buffer]) -> Followed:
    """Runs blocks of a launch."""
    threads = int(np.prod(started.block))
    total = int(np.prod(started.grid))
    together = max(1, min(MOST_LANES // threads, total))
    tape = Tape(together * threads)
    memory = Global(tape, buffers)
    machine = Machine(tape, started.module, memory, started.block, started.grid, started.shared)
    for name, held in started.variables.items():
        if isinstance(held, View):
            machine.outside[name] = memory.address(held)
        elif held is not None:
            machine.fill(name, held)
    raw = _packed(started, memory)
    places = order_of_blocks(started.grid, total)
    begun, done = time.monotonic(), 0
    try:
        while done < len(places):
            some = places[done : done + together]
            machine.run(started.entry, raw, some)
            done += len(some)
            if time.monotonic() - begun > SECONDS and done >= min(total, FEWEST_BLOCKS):
                break
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Refused(
            0, f"{started.name}: this is not read ({type(error).__name__}: {error}; line {machine.line} of its PTX)"
        ) from error
    return Followed(tape, memory.memories, done == total)


def _packed(started: Started, memory: Global) -> bytes:
    """The parameter block."""
    size = max((p.offset + p.size for p in started.entry.parameters), default=0)
    raw = bytearray(size)
    for parameter, given in zip(started.entry.parameters, started.arguments, strict=False):
        raw[parameter.offset : parameter.offset + parameter.size] = _bytes_of(parameter, given, memory)
    return bytes(raw)


def _bytes_of(parameter: Parameter, given: Any, memory: Global, padded: bool = True) -> bytes:
    if isinstance(given, bytes):
        return given.ljust(parameter.size, b"\0")[: parameter.size] if padded else given
    if isinstance(given, View):
        return memory.address(given).to_bytes(8, "little")
    if isinstance(given, tuple):  # a structure with pointers in it
        return b"".join(bytes(8) if part is None else _bytes_of(parameter, part, memory, padded=False) for part in given)
    if given is None:
        return bytes(parameter.size)
    if isinstance(given, float):
        kind: Any = {2: np.float16, 4: np.float32, 8: np.float64}[parameter.size]
        return bytes(kind(given).tobytes())
    return int(given).to_bytes(16, "little", signed=int(given) < 0)[: parameter.size]
