"""Instructions of a warp, calls, and what leaves no trace (barriers, fences, hints)."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.ptx import arithmetic as on
from kernelwright.compiler.lift.ptx import library, warp
from kernelwright.compiler.lift.ptx.table import (
    elements,
    known,
    opcode,
    type_of,
)
from kernelwright.compiler.lift.ptx.words import Word, word
from kernelwright.gpu.ptx import Instruction, Symbol, Vector

NOTHING = (
    "membar", "fence", "bar", "barrier", "nanosleep", "griddepcontrol", "discard", "applypriority", "prefetch", "prefetchu", "pmevent",
    "setmaxnreg",
)  # fmt: skip


@opcode(*NOTHING)
def _nothing(m: Any, item: Instruction) -> None:
    if item.has("red"):
        raise Refused(0, "a barrier that reduces is not read")


@opcode("shfl")
def _shuffle(m: Any, item: Instruction) -> None:
    mode = next(x for x in item.modifiers if x in ("up", "down", "bfly", "idx"))
    first = 2 if item.pair else 1
    held = m.value(item.operands[first], 4)
    b, c = (known(m, o, "u32").astype(np.int64) for o in item.operands[first + 1 : first + 3])
    source, inside = warp.shuffle_source(mode, m.in_warp, b, c)
    source = np.minimum(m.warp_start + source, m.tape.lanes - 1)
    m.put(item.operands[0], warp.moved(held, source))
    if item.pair:
        m.put(item.operands[1], Word(0, inside.astype(np.uint64)))


@opcode("vote")
def _vote(m: Any, item: Instruction) -> None:
    p = m.value(item.operands[1], 0)
    if on.unknown(p) is not None and (on.unknown(p) & m.mask).any():
        raise Refused(0, "a vote on data is not read")
    value = (p.bits != 0) & m.mask
    groups = m.warp_start
    _, inverse = np.unique(groups, return_inverse=True)
    votes = np.zeros(inverse.max() + 1, dtype=np.int64)
    asked = np.zeros(inverse.max() + 1, dtype=np.int64)
    np.add.at(votes, inverse, value.astype(np.int64) << m.in_warp)
    np.add.at(asked, inverse, m.mask.astype(np.int64) << m.in_warp)
    votes, asked = votes[inverse], asked[inverse]
    if item.has("ballot"):
        m.put(item.operands[0], Word(4, votes.astype(np.uint64)))
        return
    made = votes != 0 if item.has("any") else votes == asked if item.has("all") else (votes == asked) | (votes == 0)
    m.put(item.operands[0], Word(0, made.astype(np.uint64)))


@opcode("activemask")
def _active(m: Any, item: Instruction) -> None:
    _, inverse = np.unique(m.warp_start, return_inverse=True)
    asked = np.zeros(inverse.max() + 1, dtype=np.int64)
    np.add.at(asked, inverse, m.mask.astype(np.int64) << m.in_warp)
    m.put(item.operands[0], Word(4, asked[inverse].astype(np.uint64)))


@opcode("redux")
def _redux(m: Any, item: Instruction) -> None:
    type = type_of(item)
    op = next(x for x in item.modifiers if x in ("add", "min", "max", "and", "or", "xor"))
    held = m.value(item.operands[1], 4)
    for step in (16, 8, 4, 2, 1):
        other = warp.moved(held, np.minimum(m.warp_start + (m.in_warp ^ step), m.tape.lanes - 1))
        made = on.two(m.tape, op, type, held, other) if type in on.FLOAT_TYPES else on.integer(m.tape, op, type, held, other)
        held = made
    m.put(item.operands[0], held)


@opcode("elect")
def _elect(m: Any, item: Instruction) -> None:
    m.put(item.operands[1], Word(0, (m.in_warp == 0).astype(np.uint64)))


@opcode("mma")
def _mma(m: Any, item: Instruction) -> None:
    shape = next(x for x in item.modifiers if x.startswith(("m8", "m16")))
    d, a, b, c = (elements(o) for o in item.operands[:4])
    if not m.mask.all() and (m.mask != np.repeat(m.mask.reshape(-1, 32)[:, 0], 32)).any():
        raise Refused(0, "a part of a warp multiplies matrices")
    values = [[m.value(o, 4) for o in side] for side in (a, b, c)]
    made = warp.matrix_product(m.tape, m.warp_start, shape, item.types[:4], *values)
    for target, held in zip(d, made, strict=True):
        m.put(target, held)


@opcode("createpolicy")
def _policy(m: Any, item: Instruction) -> None:
    m.put(item.operands[0], word(m.tape.lanes, 8, 0))


@opcode("call")
def _call(m: Any, item: Instruction) -> None:
    operands = list(item.operands)
    results: tuple[Any, ...] = ()
    if operands and isinstance(operands[0], Vector):
        results = operands.pop(0).elements  # type: ignore[union-attr]
    target = operands.pop(0)
    arguments = operands[0].elements if operands and isinstance(operands[0], Vector) else ()
    if not isinstance(target, Symbol):
        raise Refused(0, "a call through a pointer is not read")
    given = [m.frame.params.get(a.name, {}).get(0) if isinstance(a, Symbol) else m.value(a, 4) for a in arguments]
    made = library.called(m, target.name, [a for a in given if a is not None])
    if made is not None:
        if results:
            m.frame.params[results[0].name] = {0: made}
        return
    try:
        function = m.module.function(target.name)
    except KeyError:
        raise Refused(0, f"it calls {target.name}, which is not known") from None
    if function.declared_only:
        if target.name in ("vprintf", "__assertfail"):
            if results:
                m.frame.params[results[0].name] = {0: word(m.tape.lanes, 4, 0)}
            return
        raise Refused(0, f"it calls {target.name}, which is not known")
    outer, mask = m.frame, m.mask
    frame = type(outer)(function)
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        frame.params[parameter.name] = (
            outer.params[argument.name] if isinstance(argument, Symbol) else {0: m.value(argument, 8)}
        )
    m.frame = frame
    m.region(m.prepared(function), 0, mask, None)
    m.frame, m.mask = outer, mask
    for parameter, result in zip(function.results, results, strict=True):
        outer.params[result.name] = frame.params.get(parameter.name, {})
