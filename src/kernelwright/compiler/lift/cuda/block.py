"""One launch followed: blocks of threads run on the tape, as many as the time allows.

In: the program, a launch, the buffers its pointers lead into. Out: for every tensor that was written, the code of each element
(tape.py). Where not all blocks are run, corners, neighbours and a few others are; what is made of them is checked later on all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelwright.compiler.lift.cuda.allocations import Accessor, Pointer, Slot, fitted
from kernelwright.compiler.lift.cuda.read import Function, Program
from kernelwright.compiler.lift.cuda.scope import Scope, declared, named_type
from kernelwright.compiler.lift.cuda.statements import Statements, deduce
from kernelwright.compiler.lift.formulas.memory import Followed, Memory, order_of_blocks
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape, Value
from kernelwright.compiler.lift.launches import Buffer, Launch, View

SECONDS = 6.0


def follow(program: Program, launch: Launch, buffers: Mapping[str, Buffer]) -> Followed:
    """Runs blocks of a launch."""
    found = [f for f in program.functions.get(str(launch.kernel), []) if len(f.parameters) == len(launch.arguments)]
    if not found:
        raise Refused(0, f"the kernel {launch.name} is not in the source")
    function = found[0]
    block: tuple[int, int, int] = launch.options["block"]
    tape = Tape(int(np.prod(block)))
    machine = Statements(tape, program)
    machine.start()
    memories = {name: Memory("global", name, buffer.dtype.value, buffer.elements, buffer) for name, buffer in buffers.items()}
    root = machine.scope
    lanes = tape.lane
    values: Any
    for axis, values in zip(
        "xyz", (lanes % block[0], lanes // block[0] % block[1], lanes // (block[0] * block[1])), strict=True
    ):
        machine.places[f"threadIdx.{axis}"] = Value("u32", values)
    for k, axis in enumerate("xyz"):
        machine.places[f"blockDim.{axis}"] = Value("u32", block[k])
        machine.places[f"gridDim.{axis}"] = Value("u32", int(launch.grid[k]))
    grid = (launch.grid[0], launch.grid[1], launch.grid[2])
    total = int(np.prod(grid))
    started = time.monotonic()
    done = 0
    for place in order_of_blocks(grid, total):
        for k, axis in enumerate("xyz"):
            machine.places[f"blockIdx.{axis}"] = Value("u32", place[k])
        machine.statics = {}
        machine.steps = 0
        machine.dynamic_shared = int(launch.options["shared"])
        machine.scope = root
        scope = _arguments(machine, function, launch, memories, root)
        try:
            machine.execute(function, scope, root)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Refused(machine.line, f"this is not read ({type(error).__name__}: {error})") from error
        done += 1
        if time.monotonic() - started > SECONDS and done >= min(total, 4):
            break
    complete = done == total
    if not complete:
        for memory in memories.values():
            if memory.types:
                raise Refused(
                    function.line, f"{launch.name} updates {memory.name} atomically from {total} blocks, too many to follow"
                )
    return Followed(tape, memories, complete)


def _arguments(machine: Statements, function: Function, launch: Launch, memories: dict[str, Memory], root: Scope) -> Scope:
    scope = Scope(root)
    machine.scope = scope
    for (name, kind, _), text in zip(function.templates, launch.options["templates"], strict=False):
        scope.names[name] = (
            named_type(text, root, machine.program, function.line) if kind == "type" else Value("i32", int(text))
        )
        if kind != "type" and text in ("0", "1"):
            scope.names[name] = Value("i32", int(text))
    for name, kind, default in function.templates:
        if name not in scope.names and default is not None:
            scope.names[name] = machine.type(default) if kind == "type" else machine.value(default)
    for parameter, given in zip(function.parameters, launch.arguments.values(), strict=True):
        value: object
        if isinstance(given, View):
            memory = memories[given.buffer]
            from kernelwright.compiler.lift.formulas.tape import SIZES

            value = Pointer(memory, given.offset * SIZES[memory.type], memory.type)
            if given.shape:
                value = Accessor(value, given.shape, given.strides)
        elif isinstance(given, bool):
            value = Value("bool", given)
        elif isinstance(given, int):
            value = Value("i64", given)
        elif isinstance(given, float):
            value = Value("f64", given)
        elif "*" in parameter.text:
            value = Value("i64", 0)  # a null pointer
        else:
            raise Refused(parameter.line, f"the argument {parameter.text} is neither number nor pointer")
        deduce(function, parameter, value, scope)
        base = named_type(parameter["type"].text, scope, machine.program, parameter.line)
        name, type, _, _ = declared(parameter["declarator"], base)
        scope.names[name] = Slot(machine, type, fitted(machine.tape, value, type))
    return scope
