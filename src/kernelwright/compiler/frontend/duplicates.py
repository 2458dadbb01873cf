"""Nodes of a functional graph that compute the same from the same become one: `rope(q)` and `rope(k)` both make its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.fx import Graph


def merge_duplicates(graph: Graph) -> None:
    """In place. Random operators and those that change their arguments stay as they are."""
    import torch

    seen: dict[Any, Any] = {}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if isinstance(node.target, torch._ops.OpOverload):
            if torch.Tag.nondeterministic_seeded in node.target.tags or node.target._schema.is_mutable:
                continue
        elif getattr(node.target, "__name__", "") != "getitem":
            continue
        key = (node.target, _key(node.args), _key(node.kwargs))
        first = seen.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _key(value: Any) -> Any:
    """Equal for arguments that are the same node or the same literal of the same type (1, 1.0 and True are three)."""
    import torch

    if isinstance(value, torch.fx.Node):
        return value
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in sorted(value.items()))
    return type(value), repr(value)
