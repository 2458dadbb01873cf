"""Which values are computed on the spot when another is, and whether they are met element by element.

In: tile values, some of them with storage by now. Out: yes or no; the scheduler fuses passes and overwrites carried tiles by these.
"""

from __future__ import annotations

from kernelwright.compiler.lower.tile_values import ELEMENTWISE, MATERIALIZED, Value
from kernelwright.sketch.index import poly


def only_straight(value: Value, target: Value) -> bool:
    """True if `target` is reached from `value` through elementwise operations of the same shape only."""
    if value is target:
        return True
    if value.storage is not None or value.op in MATERIALIZED:
        return True
    if target not in _reach(value):
        return True
    if value.op not in ELEMENTWISE:
        return False
    return all(
        only_straight(operand, target)
        for operand in value.operands
        if target in _reach(operand) or operand is target
        if _same_shape(operand, value) or not _holds(operand, target)
    ) and all(_same_shape(operand, value) or not _holds(operand, target) for operand in value.operands)


def _holds(value: Value, target: Value) -> bool:
    return value is target or target in _reach(value)


def _same_shape(a: Value, b: Value) -> bool:
    one = (poly(1),) * (len(b.shape) - len(a.shape))
    return one + a.shape == b.shape


def _reach(value: Value) -> set[Value]:
    """All values that computing `value` on the spot would touch."""
    found: set[Value] = set()
    stack = list(value.operands)
    while stack:
        at = stack.pop()
        if at in found:
            continue
        found.add(at)
        if at.storage is None and at.op not in MATERIALIZED:
            stack += at.operands
    return found


def reads(value: Value | None, stored: Value) -> bool:
    return value is not None and (value is stored or (value.storage is None and stored in _reach(value)))


def reads_straight(value: Value | None, stored: Value) -> bool:
    """True if `value` reads `stored` element by element at its own index, or not at all."""
    if value is None or not reads(value, stored) or value is stored:
        return True
    return only_straight(value, stored)
