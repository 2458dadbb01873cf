"""Kernels freed from where in a tensor they work: step 5 of an unrolled loop then is the same kernel as step 6, elsewhere.

In: a kernel and the tensors it touches. Out: the kernel with the constant part of its first positions taken out, the tensors as it
now sees them (the part that it works on), and for each the elements to which its pointer has to be moved. Nothing else changes:
what was outside a tensor stays outside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kernelwright.sketch import nodes
from kernelwright.sketch.index import polynomial, to_index
from kernelwright.sketch.walk import roots, statements, subtiles

Anchored = tuple[nodes.Kernel, dict[str, nodes.Tensor], dict[str, int]]


def anchored(kernel: nodes.Kernel, tensors: Mapping[str, nodes.Tensor]) -> Anchored:
    """The kernel over tensors that begin where it begins to work on them. Tensors seen under several names stay as they are."""
    regions = _regions(kernel)
    memory = [tensors[name].source if tensors[name].role == "view" else name for name in regions]
    loops = {s.var: s for s, _ in statements(kernel.body) if isinstance(s, nodes.For)}
    seen: dict[str, nodes.Tensor] = {}
    offsets: dict[str, int] = {}
    moves: dict[str, tuple[int, int]] = {}
    for name, root in zip(regions, memory, strict=True):
        if memory.count(root) == 1 and all(isinstance(e, nodes.Int) for e in tensors[name].shape):
            found = _moved(tensors[name], regions[name], loops)
            if found is not None:
                seen[name], offsets[name], moves[name] = found
    if not moves:
        return kernel, {}, {}
    return replace(kernel, body=_Mover(moves).of(kernel.body)), seen, offsets


def _regions(kernel: nodes.Kernel) -> dict[str, list[tuple[nodes.Axis, ...]]]:
    """The regions of each tensor that a kernel loads or stores."""
    found: dict[str, list[tuple[nodes.Axis, ...]]] = {}
    for statement, _ in statements(kernel.body):
        for tile in subtiles(*roots(statement)):
            if isinstance(tile, nodes.Load):
                found.setdefault(tile.tensor, []).append(tile.region)
        if isinstance(statement, nodes.Store):
            found.setdefault(statement.tensor, []).append(statement.region)
    return found


def _moved(
    tensor: nodes.Tensor, regions: list[tuple[nodes.Axis, ...]], loops: dict[str, nodes.For]
) -> tuple[nodes.Tensor, int, tuple[int, int]] | None:
    """The tensor as seen from its new beginning, the elements up to there, and (axes dropped, positions off the next one)."""
    shape = [e.value for e in tensor.shape if isinstance(e, nodes.Int)]
    dropped = offset = 0
    while dropped < len(shape):
        bounds = [_bounds(region[dropped], loops) for region in regions]
        if any(b is None for b in bounds):
            break
        first = min(b[0] for b in bounds if b is not None)
        last = max(b[1] for b in bounds if b is not None)
        stride = math.prod(shape[dropped + 1 :])
        if first == last < shape[dropped] and all(isinstance(region[dropped], nodes.At) for region in regions):
            offset += first * stride
            dropped += 1
            continue
        offset += first * stride
        rest = [min(last + 1, shape[dropped]) - first, *shape[dropped + 1 :]]
        if first >= shape[dropped] or offset == 0:
            break
        return replace(tensor, shape=tuple(map(nodes.Int, rest))), offset, (dropped, first)
    if offset == 0:
        return None
    rest = shape[dropped:]
    return replace(tensor, shape=tuple(map(nodes.Int, rest))), offset, (dropped, 0)


def _bounds(axis: nodes.Axis, loops: dict[str, nodes.For]) -> tuple[int, int] | None:
    """The least and the greatest position of an axis over all iterations, where that is plain to see."""
    if isinstance(axis, nodes.Pick):
        return None
    start, reach = (axis.index, 0) if isinstance(axis, nodes.At) else (axis.start, None)
    if isinstance(axis, nodes.Span):
        if not isinstance(axis.extent, nodes.Int) or not isinstance(axis.step, nodes.Int) or axis.step.value < 1:
            return None
        reach = (axis.extent.value - 1) * axis.step.value
    low = high = 0
    for monomial, coefficient in polynomial(start).terms:
        if not monomial:
            low, high = low + coefficient, high + coefficient
            continue
        loop = loops.get(monomial[0]) if len(monomial) == 1 and isinstance(monomial[0], str) else None
        if loop is None or coefficient < 0:
            return None
        if not (isinstance(loop.start, nodes.Int) and isinstance(loop.stop, nodes.Int) and isinstance(loop.step, nodes.Int)):
            return None
        trips = max(0, -(-(loop.stop.value - loop.start.value) // loop.step.value) - 1)
        low += coefficient * loop.start.value
        high += coefficient * (loop.start.value + trips * loop.step.value)
    return (low, high + (reach or 0)) if low >= 0 else None


class _Mover:
    """Rewrites the regions of moved tensors; shared parts stay shared."""

    def __init__(self, moves: dict[str, tuple[int, int]]) -> None:
        self.moves = moves
        self.known: dict[int, Any] = {}

    def of(self, node: Any) -> Any:
        """The node with its regions moved."""
        if id(node) in self.known:
            return self.known[id(node)][1]
        made = node
        if isinstance(node, tuple):
            items = tuple(self.of(item) for item in node)
            made = items if any(a is not b for a, b in zip(items, node, strict=True)) else node
        elif hasattr(node, "__dataclass_fields__"):
            values = {entry.name: self.of(getattr(node, entry.name)) for entry in fields(node)}
            if isinstance(node, nodes.Load | nodes.Store) and node.tensor in self.moves:
                values["region"] = self._region(values["region"], *self.moves[node.tensor])
            if any(values[entry.name] is not getattr(node, entry.name) for entry in fields(node)):
                made = replace(node, **values)
        self.known[id(node)] = (node, made)  # the node is kept, so that its id is not given to another
        return made

    def _region(self, region: tuple[nodes.Axis, ...], dropped: int, less: int) -> tuple[nodes.Axis, ...]:
        rest = list(region[dropped:])
        if rest and less:
            first = rest[0]
            if isinstance(first, nodes.At):
                rest[0] = nodes.At(_less(first.index, less))
            elif isinstance(first, nodes.Span):
                rest[0] = replace(first, start=_less(first.start, less))
        return tuple(rest)


def _less(index: nodes.Index, amount: int) -> nodes.Index:
    return to_index(polynomial(index) - amount)
