"""Tiles side by side along short axes (`nodes.Stack`), which are choices by position in the graph: `where(which <= 0, a, where(…, b, c))`,
each with the number of axes behind the stacked one as its data.

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
    behind = _behind(value)
    if behind is None:
        return set()
    found = {len(value.shape) - 1 - behind}
    for branch in value.args[1:]:
        more = len(value.shape) - len(branch.shape)
        found |= {axis + more for axis in _axes(branch)}
    return found


def _behind(value: Value) -> int | None:
    """How many axes lie behind the one that a choice is stacked along; None for any other value, and for long axes."""
    if value.op != "where" or value.data is None:
        return None
    behind: int = value.data
    axis = value.args[0].shape[len(value.args[0].shape) - 1 - behind]
    return behind if (axis.constant or LONGEST + 1) <= LONGEST else None


def members(value: Value) -> list[Value]:
    """The choices that a stack consists of, itself included."""
    if value.op == "unsqueeze":
        return members(value.args[0])
    if _behind(value) is None:
        return []
    return [value, *members(value.args[1]), *members(value.args[2])]
