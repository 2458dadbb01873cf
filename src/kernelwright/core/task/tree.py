"""Values as flat lists of named leaves: what a module takes or returns, in an order that two processes agree on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import torch


def leaves(tree: Any, name: str) -> list[tuple[str, Any]]:
    """(name, leaf) in order: `output`, `output[1]`, `output['mask']` …; a leaf is no list, tuple, mapping or dataclass."""
    if isinstance(tree, Mapping):
        return [pair for key, item in tree.items() for pair in leaves(item, f"{name}[{key!r}]")]
    if isinstance(tree, list | tuple):
        return [pair for index, item in enumerate(tree) for pair in leaves(item, f"{name}[{index}]")]
    if is_dataclass(tree) and not isinstance(tree, type):
        return leaves(asdict(tree), name)
    return [(name, tree)]


def tensors(tree: Any) -> list[Any]:
    """All tensors of a tree, in order."""
    return [leaf for _, leaf in leaves(tree, "") if isinstance(leaf, torch.Tensor)]


def transform(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The same tree with `change` applied to every tensor; mappings become dictionaries, named tuples plain ones."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, Mapping):
        return {key: transform(item, change) for key, item in tree.items()}
    if isinstance(tree, tuple):
        return tuple(transform(item, change) for item in tree)
    if isinstance(tree, list):
        return [transform(item, change) for item in tree]
    return tree


def describe(tree: Any) -> str:
    """Inputs or outputs in words: `float32[16, 64], int 3`."""
    words = []
    for _, leaf in leaves(tree, ""):
        if isinstance(leaf, torch.Tensor):
            words.append(f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}")
        else:
            words.append(f"{type(leaf).__name__} {leaf!r}"[:40])
    return ", ".join(words)
