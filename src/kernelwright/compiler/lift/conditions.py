"""Conditions put together, and choices between values: what `and`, `or`, `not` and a select are, whatever language they stand in.

In: masks (values.py) and the program they belong to. Out: a mask that stays a list of `>= 0` conditions as long as it can, because
addresses are cut by those; a bool tile otherwise.
"""

from __future__ import annotations

from kernelwright.compiler.lift.program import Program
from kernelwright.compiler.lift.values import Data, Mask, joined_shape
from kernelwright.sketch import nodes
from kernelwright.sketch.index import simplify
from kernelwright.sketch.nodes import DType, IndexOp, Int


def junction(program: Program, op: str, a: Mask, b: Mask) -> Mask:
    """`and`, `or`, `ne` (exclusive or) or `eq` of two conditions."""
    shape = joined_shape(a.shape, b.shape)
    first, second = program.decided(a), program.decided(b)
    if op == "and":
        if first is not None:
            return Mask(b.conditions, shape, b.rest) if first else Mask((Int(-1),), shape)
        if second is not None:
            return Mask(a.conditions, shape, a.rest) if second else Mask((Int(-1),), shape)
        rests = [mask.rest for mask in (a, b) if mask.rest is not None]
        rest = rests[0] if rests else None
        if len(rests) == 2:
            rest = Data(
                nodes.Binary("and", rests[0].node, rests[1].node),
                shape,
                joined_shape(rests[0].actual, rests[1].actual),
                DType.bool,
            )
        return Mask((*a.conditions, *(c for c in b.conditions if c not in a.conditions)), shape, rest)
    if op == "or":
        if first is not None:
            return Mask((), shape) if first else Mask(b.conditions, shape, b.rest)
        if second is not None:
            return Mask((), shape) if second else Mask(a.conditions, shape, a.rest)
    if op in ("ne", "eq"):
        for known, other in ((first, b), (second, a)):
            if known is not None:
                return negated(program, other) if known == (op == "ne") else other
    x, y = program.as_data(a), program.as_data(b)
    return Mask((), shape, Data(nodes.Binary(op, x.node, y.node), shape, joined_shape(x.actual, y.actual), DType.bool))


def negated(program: Program, mask: Mask) -> Mask:
    """`not`."""
    if mask.rest is None and len(mask.conditions) == 1:
        return Mask((simplify(IndexOp("-", Int(-1), mask.conditions[0])),), mask.shape)
    data = program.as_data(mask)
    return Mask((), mask.shape, Data(nodes.Unary("logical_not", data.node), data.shape, data.actual, DType.bool))
