"""Where a graph's time goes: seconds of each node, found by running it node by node.

In: a graph module and inputs. Out: seconds by node, or by what the nodes do. What Amdahl's law needs before anything is designed.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

RUNS = 3


class _Timed(Interpreter):  # type: ignore[misc]
    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.seconds: dict[Node, list[float]] = {}

    def run_node(self, n: Node) -> Any:
        if not n.op.startswith("call_"):
            return super().run_node(n)
        started = time.perf_counter()
        result = super().run_node(n)
        self.seconds.setdefault(n, []).append(time.perf_counter() - started)
        return result


def node_seconds(module: GraphModule, inputs: Sequence[Any]) -> dict[Node, float]:
    """The median of a few runs, for each node that computes something."""
    timed = _Timed(module)
    with torch.no_grad():
        for _ in range(RUNS):
            timed.run(*inputs)
    return {node: median(times) for node, times in timed.seconds.items()}


def by_operator(seconds: dict[Node, float]) -> dict[str, float]:
    """The same for each kind of operator, the dearest first; pieces of ours are together under one name."""
    found: dict[str, float] = {}
    for node, taken in seconds.items():
        name = "kernelwright" if node.op == "call_module" else str(getattr(node.target, "_overloadpacket", node.target))
        if node.target is not operator.getitem:
            found[name.removeprefix("aten.")] = found.get(name.removeprefix("aten."), 0.0) + taken
    return dict(sorted(found.items(), key=lambda item: -item[1]))
