"""A graph of ATen operators that is functional already, such as a piece of a program: it needs no torch.export (seconds), at most a few
decompositions. `recorded` gives what the builder of values reads of an exported program, or None for a graph that must be exported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

ROUNDS = 3
"""Decompositions of decompositions that are followed."""


@dataclass(frozen=True)
class Recorded:
    """As much of an ExportedProgram as is read: a signature of plain inputs and outputs, with no parameter and no constant."""

    graph_module: Any
    graph_signature: Any
    call_spec: Any
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def graph(self) -> Any:
        return self.graph_module.graph


def recorded(model: Any, kept: Callable[[str], bool], ruled: Callable[[str], Any]) -> Recorded | None:
    """`kept` says which operators stay whole although torch could decompose them, `ruled` finds the rule of an operator."""
    import torch.utils._pytree as pytree
    from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
    from torch.fx import GraphModule

    if not isinstance(model, GraphModule) or not _functional(model):
        return None
    module = GraphModule({}, _copied(model.graph))
    for _ in range(ROUNDS):
        due = _due(module, kept, ruled)
        if not due:
            break
        module = _decomposed(module, due)
    inputs = [
        InputSpec(InputKind.USER_INPUT, TensorArgument(n.name), None) for n in module.graph.nodes if n.op == "placeholder"
    ]
    signature = SimpleNamespace(input_specs=inputs, output_specs=[], buffers_to_mutate={}, user_inputs_to_mutate={})
    result = next(n for n in module.graph.nodes if n.op == "output").args[0]
    spec = pytree.tree_structure(pytree.tree_map(lambda _: 0, result))
    output = next(n for n in module.graph.nodes if n.op == "output")
    output.args = (tuple(pytree.tree_leaves(result)),)
    return Recorded(module, signature, SimpleNamespace(out_spec=spec))


def _functional(model: Any) -> bool:
    import torch
    from torch.fx.graph import CodeGen

    if type(model.graph._codegen) is not CodeGen:
        return False
    for node in model.graph.nodes:
        if node.op == "placeholder":
            if not isinstance(node.meta.get("val"), torch.Tensor):
                return False
        elif node.op == "call_function":
            overload = isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.is_mutable
            if "val" not in node.meta or not (overload or node.target is operator.getitem):
                return False
        elif node.op != "output":
            return False
    return True


def _copied(graph: Any) -> Any:
    from torch.fx import Graph

    new = Graph()
    new.output(new.graph_copy(graph, {}))
    return new


@cache
def _core() -> dict[Any, Any]:
    import torch

    return dict(torch._decomp.core_aten_decompositions())


def _due(module: Any, kept: Callable[[str], bool], ruled: Callable[[str], Any]) -> dict[Any, Any]:
    """The decompositions that the graph still needs."""
    import torch

    found: dict[Any, Any] = {}
    for target in {n.target for n in module.graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")}:
        if target in _core() and not kept(str(target)):
            found[target] = _core()[target]
        elif ruled(str(target)) is None and target in torch._decomp.decomposition_table:
            found[target] = torch._decomp.decomposition_table[target]
    return found


def _decomposed(module: Any, table: dict[Any, Any]) -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    fakes = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
    made = make_fx(module, decomposition_table=table, tracing_mode="fake")(*fakes)
    made.graph.eliminate_dead_code()
    return made
