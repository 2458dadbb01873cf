"""Kernels that are the same but for names: a network repeats its blocks, and one function serves all of them.

In: kernels of one sketch. Out: for each a key, equal for kernels that compute alike, and the tensors it takes in order of first
mention. Two kernels are alike when one becomes the other by renaming locals and tensors of equal shape and dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kernelwright.sketch import nodes

StructuralKey = tuple[Any, ...]


class StructuralKeys:
    """Compares kernels of a sketch, and of others with the same `numbers`. `special` tensors are told apart from others of the same
    shape. Equal parts get equal numbers, so expressions that share parts cost no more than what is written."""

    def __init__(
        self, sketch: nodes.Sketch, special: frozenset[str] = frozenset(), numbers: dict[Any, int] | None = None
    ) -> None:
        self.tensors: Mapping[str, nodes.Tensor] = {t.name: t for t in sketch.tensors}
        self.globals = {s.name for s in sketch.sizes} | {t.name for t in sketch.tunables}
        self.special = special
        self.numbers: dict[Any, int] = {} if numbers is None else numbers

    def of(self, kernel: nodes.Kernel, seen: Mapping[str, nodes.Tensor] | None = None) -> tuple[StructuralKey, tuple[str, ...]]:
        """The key of a kernel, and its tensors (views by the name of what they show) in the order that the key counts them. `seen`
        are tensors that this kernel sees otherwise than declared (anchor.py)."""
        reader = _Reader(self)
        body = reader.number(kernel.body)
        described = tuple(self._described(name, reader.roots, seen or {}) for name in reader.names)
        return (body, described), tuple(reader.roots)

    def root(self, name: str) -> str:
        """The tensor whose memory this name means."""
        tensor = self.tensors[name]
        return tensor.source if tensor.role == "view" else name

    def _described(self, name: str, roots: dict[str, int], seen: Mapping[str, nodes.Tensor]) -> tuple[Any, ...]:
        tensor, root = seen.get(name) or self.tensors[name], self.root(name)
        return roots[root], tensor.shape, tensor.dtype, root in self.special


class _Reader:
    """Walks one kernel, counting names in the order in which they are met."""

    def __init__(self, table: StructuralKeys) -> None:
        self.table = table
        self.names: dict[str, int] = {}
        self.roots: dict[str, int] = {}
        self.locals: dict[str, int] = {}
        self.known: dict[int, int] = {}

    def number(self, node: Any) -> int:
        """The number of this node's structure."""
        if id(node) in self.known:
            return self.known[id(node)]
        if isinstance(node, tuple):
            parts: tuple[Any, ...] = ("", *(self.number(item) for item in node if not isinstance(item, nodes.Comment)))
        elif hasattr(node, "__dataclass_fields__"):
            parts = (type(node), *(self._field(node, entry.name) for entry in fields(node) if entry.compare))
        else:
            parts = (type(node), repr(node))
        found = self.table.numbers.setdefault(parts, len(self.table.numbers))
        if not isinstance(node, str | int | float):  # small objects come and go, and their ids with them
            self.known[id(node)] = found
        return found

    def _field(self, node: Any, name: str) -> Any:
        value = getattr(node, name)
        if isinstance(node, nodes.Load | nodes.Store) and name == "tensor":
            root = self.table.root(value)
            self.roots.setdefault(root, len(self.roots))
            return self.names.setdefault(value, len(self.names))
        if (isinstance(node, nodes.Var | nodes.Assign | nodes.Sym) and name == "name") or (
            isinstance(node, nodes.For) and name == "var"
        ):
            return value if value in self.table.globals else self.locals.setdefault(value, len(self.locals))
        return self.number(value)
