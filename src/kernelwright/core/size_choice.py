"""Which variant of a kernel serves which sizes: a small decision tree.

In: a tree over dynamic sizes, whose leaves are numbers of variants, and the measurements that it rests on. Every variant is right for all
sizes; the table is about speed alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Split:
    """Sizes under `limit` are served by one side, all others by the other."""

    size: str
    limit: int
    below: Tree
    rest: Tree


Tree = int | Split


@dataclass(frozen=True)
class SizeTable:
    """A tree, and what it rests on, line by line."""

    tree: Tree
    evidence: tuple[str, ...] = field(default=())

    def choose(self, sizes: Mapping[str, int]) -> int:
        """The variant for these sizes."""
        node = self.tree
        while isinstance(node, Split):
            node = node.below if sizes[node.size] < node.limit else node.rest
        return node

    def names(self) -> tuple[str, ...]:
        """The sizes that it asks for."""
        return tuple(dict.fromkeys(_names(self.tree)))

    def variants(self) -> tuple[int, ...]:
        """The variants that it chooses among."""
        return tuple(sorted(set(_leaves(self.tree))))

    def renumbered(self) -> SizeTable:
        """The same, with its variants counted from 0."""
        numbers = {old: new for new, old in enumerate(self.variants())}
        return SizeTable(_mapped(self.tree, numbers), self.evidence)


def _names(tree: Tree) -> list[str]:
    return [] if isinstance(tree, int) else [tree.size, *_names(tree.below), *_names(tree.rest)]


def _leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [*_leaves(tree.below), *_leaves(tree.rest)]


def _mapped(tree: Tree, numbers: Mapping[int, int]) -> Tree:
    if isinstance(tree, int):
        return numbers[tree]
    return Split(tree.size, tree.limit, _mapped(tree.below, numbers), _mapped(tree.rest, numbers))


def as_json(tree: Tree) -> object:
    """As it travels: a number, or [size, limit, below, rest]."""
    return tree if isinstance(tree, int) else [tree.size, tree.limit, as_json(tree.below), as_json(tree.rest)]


def from_json(told: object) -> Tree:
    """What `as_json` told."""
    if isinstance(told, int):
        return told
    assert isinstance(told, list)
    size, limit, below, rest = told
    return Split(str(size), int(limit), from_json(below), from_json(rest))
