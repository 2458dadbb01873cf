"""Tiles that are put together of others along short axes: `where(iota(3) <= 0, a, where(iota(3) <= 1, b, c))`.

In: values. Out: whether they are such, and along which axes. A language that knows them can unroll those axes, so that each choice is
one of its branches.
"""

from __future__ import annotations

from kernelwright.compiler.lower.tile_values import Value

LONGEST = 8
"""Axes longer than this are loops."""


def short_axes(value: Value) -> tuple[int, ...]:
    """The axes along which a value is put together: those whose position alone decides its choices. Empty if there are none."""
    return tuple(sorted(_axes(value))) if value.op == "where" else ()


def _axes(value: Value) -> set[int]:
    if value.op == "unsqueeze":
        return {axis + (axis >= value.data) for axis in _axes(value.args[0])}
    behind = _decided_by(value.args[0]) if value.op == "where" else None
    if behind is None:
        return set()
    found = {len(value.shape) - 1 - behind}
    for branch in value.args[1:]:
        more = len(value.shape) - len(branch.shape)
        found |= {axis + more for axis in _axes(branch)}
    return found


def _decided_by(condition: Value) -> int | None:
    """How many axes lie behind the one axis whose position decides a condition; None for any other condition."""
    if condition.op != "binary" or condition.data not in ("lt", "le", "gt", "ge"):
        return None
    long = [k for k, extent in enumerate(condition.shape) if extent.constant != 1]
    if len(long) != 1 or (condition.shape[long[0]].constant or LONGEST + 1) > LONGEST:
        return None
    sides = list(condition.args)
    if not any(side.op == "const" for side in sides):
        return None
    for side in sides:
        while side.op == "unsqueeze":
            side = side.args[0]
        if side.op not in ("const", "iota"):
            return None
    return len(condition.shape) - 1 - long[0]


def members(value: Value) -> list[Value]:
    """The choices that a stack consists of, itself included."""
    if value.op == "unsqueeze":
        return members(value.args[0])
    if value.op != "where" or _decided_by(value.args[0]) is None:
        return []
    return [value, *members(value.args[1]), *members(value.args[2])]
