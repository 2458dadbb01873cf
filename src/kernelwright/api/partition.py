"""Which operators of a functional ATen graph are designed, in which pieces.

In: a graph module of AOTAutograd and a set of nodes that are wanted. Out: pieces, lists of nodes that can run as one: no path leaves a
piece and comes back (a node's level is the number of borders before it; pieces are connected parts of one level). Views cost nothing
where they are: each belongs to its one user (views with several users are repeated first), so that a piece reads a tensor as it lies
in memory and never writes one out only to look at it differently.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.fx import GraphModule, Node

VIEWS = frozenset(
    [
        "view",
        "_unsafe_view",
        "reshape",
        "permute",
        "transpose",
        "t",
        "expand",
        "unsqueeze",
        "squeeze",
        "select",
        "slice",
        "alias",
        "detach",
        "unbind",
        "split",
        "split_with_sizes",
        "chunk",
        "narrow",
        "diagonal",
        "unfold",
        "view_as",
        "movedim",
        "swapaxes",
    ]
)
PRODUCTS = frozenset(
    [
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "mv",
        "dot",
        "addmv",
        "convolution",
        "_scaled_dot_product_flash_attention_for_cpu",
        "linear",
        "matmul",
        "_convolution",
    ]
)
"""Operators that torch leaves to libraries; each is designed for itself first, and joins a piece where it is no slower."""


def short_name(node: Node) -> str:
    """`addmm` for aten.addmm.default; empty for what is no ATen operator."""
    name = str(node.target)
    return name.split(".")[1] if node.op == "call_function" and name.startswith("aten.") else ""


def values_of(node: Node) -> list[torch.Tensor]:
    """The (fake) tensors that a node gives."""
    import torch

    found = node.meta.get("val")
    return [v for v in (found if isinstance(found, list | tuple) else [found]) if isinstance(v, torch.Tensor)]


def is_view(node: Node) -> bool:
    """Whether a node only looks at another tensor, or takes one of several such looks."""
    if node.target is operator.getitem:
        return is_view(node.args[0])
    return short_name(node) in VIEWS


def designable(node: Node) -> bool:
    """Whether the Designer has a rule for the operator, and a place for its tensors."""
    import torch

    from kernelwright.compiler.frontend.capture import dtype_of
    from kernelwright.compiler.frontend.operators import find
    from kernelwright.core.errors import UnsupportedOperator

    if node.target is operator.getitem:
        return designable(node.args[0])
    if not short_name(node) or not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable:
        return False
    if draws(node):
        return False
    if find(str(node.target)) is None and node.target not in _decompositions():
        return False
    tensors = [*_read_values(node), *(v for n in node.all_input_nodes for v in _read_values(n))]
    try:
        for tensor in tensors:
            dtype_of(tensor.dtype)
    except UnsupportedOperator:
        return False
    return all(t.device.type == "cpu" and t.layout is torch.strided and t.numel() for t in tensors)


def _read_values(node: Node) -> list[torch.Tensor]:
    """The tensors of a node that somebody reads: batch norm of a network in use gives two empty ones beside its result."""
    import torch

    if not isinstance(node.meta.get("val"), list | tuple):
        return values_of(node)
    places = {u.args[1] for u in node.users if u.target is operator.getitem}
    return [v for k, v in enumerate(node.meta["val"]) if isinstance(v, torch.Tensor) and k in places]


def draws(node: Node) -> bool:
    """Whether a node draws random numbers. Attention is marked as random because it may drop out; without that it is not."""
    import torch

    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    names = [a.name for a in target._schema.arguments]
    if "dropout_p" not in names:
        return True
    place = names.index("dropout_p")
    default = target._schema.arguments[place].default_value
    given = node.args[place] if len(node.args) > place else node.kwargs.get("dropout_p", default)
    return bool(given != 0)


def doubtful(node: Node) -> bool:
    """Whether the Designer has no rule for an operator and torch does not take it apart by default: what its further decomposition
    leads to is found out for itself first."""
    import torch

    from kernelwright.compiler.frontend.operators import find

    known = isinstance(node.target, torch._ops.OpOverload) and find(str(node.target)) is None
    return known and node.target not in _core_decompositions()


@functools.cache
def _core_decompositions() -> dict[Any, Any]:
    import torch

    return dict(torch._decomp.core_aten_decompositions())


def _decompositions() -> Any:
    """Everything that torch can take apart."""
    import torch

    return torch._decomp.decomposition_table


def single_views(graph_module: GraphModule) -> None:
    """Repeats every view for each of its users, so that a view has one; in place."""
    graph = graph_module.graph
    for node in reversed(list(graph.nodes)):
        if node.op != "call_function" or not is_view(node):
            continue
        for user in list(node.users)[1:]:
            with graph.inserting_before(node):
                twin = graph.node_copy(node, lambda n: n)
                twin.meta = dict(node.meta)
            user.replace_input_with(node, twin)
        if not node.users:
            graph.erase_node(node)
    graph.lint()


def sides(graph_module: GraphModule, wanted: Callable[[Node], bool]) -> set[Node]:
    """The nodes that are ours: those wanted, what only takes a part of their results, and the views that only they read."""
    nodes = [n for n in graph_module.graph.nodes if n.op == "call_function"]
    ours: set[Node] = set()
    for node in nodes:
        if is_view(node):
            continue
        if node.target is operator.getitem:
            if node.args[0] in ours:
                ours.add(node)
        elif wanted(node):
            ours.add(node)
    for node in reversed(nodes):
        if is_view(node) and node.users and all(u in ours for u in node.users) and designable(node):
            ours.add(node)
    for node in nodes:  # attention leaves its result transposed, and is then looked at the right way round: written so at once
        if is_view(node) and node not in ours and designable(node):
            source = node.all_input_nodes[0]
            if source in ours and any(not v.is_contiguous() for v in values_of(source)):
                ours.add(node)
    return ours


def levels(graph_module: GraphModule, ours: set[Node]) -> dict[Node, int]:
    """For each node the number of borders from eager to ours on the way to it; what is made of inputs alone waits for its users."""
    level: dict[Node, int] = {}
    early: set[Node] = set()
    drawn = 0  # random numbers are drawn in the order of the graph
    for node in graph_module.graph.nodes:
        level[node] = max(
            (level[n] + (node in ours and n not in ours and n.op == "call_function") for n in node.all_input_nodes), default=0
        )
        if draws(node):
            drawn = level[node] = max(level[node], drawn)
        elif node.op == "call_function" and all(n.op != "call_function" or n in early for n in node.all_input_nodes):
            early.add(node)
    for node in reversed(list(graph_module.graph.nodes)):
        if node in early and node.users:
            # as late as its first user allows
            level[node] = max(level[node], min(level[u] - (u in ours and node not in ours) for u in node.users))
    for node in graph_module.graph.nodes:
        if node.target is operator.getitem and not is_view(node):
            level[node] = level[node.args[0]]  # one of several results: a piece cannot read the tuple that they come in
    return level


def pieces(graph_module: GraphModule, ours: set[Node]) -> tuple[list[list[Node]], list[Node]]:
    """The pieces, and all nodes that are called in an order in which each piece is together."""
    level = levels(graph_module, ours)
    nodes = [n for n in graph_module.graph.nodes if n.op == "call_function"]
    order = sorted(nodes, key=lambda n: (level[n], n not in ours))  # stable: eager operators of a level follow its pieces
    group: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while group[node] is not node:
            group[node] = group[group[node]]
            node = group[node]
        return node

    readers: dict[tuple[int, Node], Node] = {}
    for node in order:
        if node not in ours:
            continue
        group[node] = node
        for source in node.all_input_nodes:
            if source in ours and level[source] == level[node]:
                group[root(node)] = root(source)
            elif source.op == "call_function":  # two that read the same are one piece: it is read once
                other = readers.setdefault((level[node], source), node)
                group[root(node)] = root(other)
    found: dict[Node, list[Node]] = {}
    for node in order:
        if node in ours:
            found.setdefault(root(node), []).append(node)
    together = [part for part in found.values() if any(not is_view(n) for n in part)]
    position = {id(n): k for k, part in enumerate(together) for n in part}
    first = {k: index for index, n in reversed(list(enumerate(order))) if (k := position.get(id(n))) is not None}
    indexed = list(enumerate(order))
    indexed.sort(
        key=lambda item: (level[item[1]], item[1] not in ours, first.get(position.get(id(item[1]), -1), item[0]), item[0])
    )
    return together, [n for _, n in indexed]
