"""What a frontend hands on: the whole graph of one forward, whoever recorded it (torch.export, or a lifted kernel's trace)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.symbolic import Region
from kernelwright.sketch import nodes


@dataclass
class Captured:
    """The graph: declared tensors (inputs, params, constants), the results as values, the tree of forward's result, and
    the sizes that vary."""

    tensors: list[nodes.Tensor]
    constants: list[tuple[str, tuple[float | int | bool, ...]]]
    outputs: list[v.Value | Any]
    structure: Any
    unsupported: list[str] = field(default_factory=list)
    region: Region = field(default_factory=Region)
