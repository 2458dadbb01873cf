"""A sketch as a torch module: what a kernel computes, for a judge that has no other reference.

In: sketches' texts (one for each set of input shapes) and the state_dict they read. Out: `SketchModule`, whose forward interprets the
sketch that fits its inputs. Called with wider floats than declared (the judge's fp64 run), it computes in those throughout; a cast
to a dtype narrower than every declared input still rounds, because it is part of what is asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.interpret.operations import TORCH_DTYPE
from kernelwright.sketch.nodes import DType
from kernelwright.sketch.parse import parse

Entry = tuple[str, Sequence[int], str, bool]
"""Name in the state_dict, shape, torch's name of the dtype, is it a buffer."""


class SketchModule(nn.Module):  # type: ignore[misc]
    """Interprets the sketch whose input shapes fit; parameters are drawn like a freshly made layer's."""

    def __init__(self, texts: Sequence[str], state: Sequence[Entry] = ()) -> None:
        super().__init__()
        self.sketches = [parse(text) for text in texts]
        self._wide: dict[int, nodes.Sketch] = {}
        for name, shape, dtype, buffer in state:
            _declare(self, name, _drawn(list(shape), getattr(torch, dtype), name), buffer)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        number = next((n for n, sketch in enumerate(self.sketches) if fits(sketch, leaves)), None)
        if number is None:
            raise ValueError("no sketch is for inputs of these shapes")
        sketch = self.sketches[number]
        if any(leaf.dtype == torch.float64 for leaf in self._floats(sketch, leaves)):
            sketch = self._wide.setdefault(number, widened(sketch))
        return interpreter.call(sketch, leaves, self.state_dict())

    def _floats(self, sketch: nodes.Sketch, leaves: Sequence[Any]) -> list[Any]:
        """Inputs that are given wider than they are declared; without any, parameters."""
        state = self.state_dict()
        given = [
            (leaves[int(t.source)] if t.role == "input" else state[t.source], t.dtype)
            for t in sketch.tensors
            if t.role in ("input", "param")
        ]
        return [tensor for tensor, dtype in given if isinstance(tensor, torch.Tensor) and dtype.is_float and dtype != DType.f64]


def fits(sketch: nodes.Sketch, leaves: Sequence[Any]) -> bool:
    """Whether inputs have the shapes that a sketch declares."""
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    dynamic = {s.name for s in sketch.sizes if s.dynamic}
    for tensor in sketch.tensors:
        if tensor.role != "input":
            continue
        given = leaves[int(tensor.source)] if int(tensor.source) < len(leaves) else None
        shape = tuple(given.shape) if isinstance(given, torch.Tensor) else ()
        wanted = [None if _free(i, dynamic) else int(evaluate(i, sizes)) for i in tensor.shape]
        if len(shape) != len(wanted) or any(w is not None and w != s for w, s in zip(wanted, shape, strict=True)):
            return False
    return True


def _free(index: nodes.Index, dynamic: set[str]) -> bool:
    if isinstance(index, nodes.IndexOp):
        return _free(index.left, dynamic) or _free(index.right, dynamic)
    return isinstance(index, nodes.Sym) and index.name in dynamic


def widened(sketch: nodes.Sketch) -> nodes.Sketch:
    """The same computation in f64. Casts below the widest float that comes in stay roundings."""
    outside = [t.dtype.mantissa for t in sketch.tensors if t.role in ("input", "param") and t.dtype.is_float]
    base = max(outside, default=DType.f32.mantissa)

    def wide(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(wide(item) for item in node)
        if not dataclasses.is_dataclass(node) or isinstance(node, type):
            return node
        fields = {item.name: getattr(node, item.name) for item in dataclasses.fields(node)}
        fresh = {key: wide(value) for key, value in fields.items()}
        if isinstance(node, nodes.Cast) and node.dtype.is_float:
            rounded = nodes.Cast(fresh["x"], node.dtype) if node.dtype.mantissa < base else fresh["x"]
            return nodes.Cast(rounded, DType.f64)
        if isinstance(node, nodes.Tensor | nodes.Full) and node.dtype.is_float:
            fresh["dtype"] = DType.f64
        if isinstance(node, nodes.Bitcast):
            return nodes.Bitcast(wide(node.x), node.dtype)
        return type(node)(**fresh)

    made: nodes.Sketch = wide(sketch)
    return made


def input_tensors(sketch: nodes.Sketch) -> list[tuple[tuple[int, ...], str] | None]:
    """Shape and torch dtype of forward's arguments in order; None at a position that no kernel reads."""
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    found = {int(t.source): t for t in sketch.tensors if t.role == "input"}
    kinds = {n: str(TORCH_DTYPE[t.dtype]).removeprefix("torch.") for n, t in found.items()}
    return [
        (tuple(int(evaluate(i, sizes)) for i in found[n].shape), kinds[n]) if n in found else None
        for n in range(max(found, default=-1) + 1)
    ]


def _drawn(shape: list[int], dtype: torch.dtype, name: str) -> torch.Tensor:
    """Vectors are scales, shifts and variances: positive, around one. Matrices are weights: scaled by what they are summed over."""
    if not dtype.is_floating_point:
        return torch.zeros(shape, dtype=dtype)
    if len(shape) < 2:
        return (torch.rand(shape) + 0.5).to(dtype)
    terms = max(1, torch.Size(shape[1:]).numel())
    return (torch.randn(shape) / terms**0.5).to(dtype)


def _declare(module: nn.Module, name: str, tensor: torch.Tensor, buffer: bool) -> None:
    *path, last = name.split(".")
    for part in path:
        if part not in module._modules:
            module.add_module(part, nn.Module())
        inner = module._modules[part]
        assert inner is not None
        module = inner
    if buffer:
        module.register_buffer(last, tensor)
    else:
        module.register_parameter(last, nn.Parameter(tensor, requires_grad=False))
