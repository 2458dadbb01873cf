"""Whether a designed piece computes what eager computes: the judge's bounds, without its processes.

In: the piece (or a whole model) as a function of tensors, the inputs that came, eager's results and ours. Out: an empty text, or in one
sentence what is wrong. The truth is that function run in fp64 on these inputs; the bound of each element is that of
judge/reference/numerics.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter

from kernelwright.judge.reference import numerics
from kernelwright.judge.reference.numerics import Yardstick
from kernelwright.judge.reference.reference import Widen, Work, noisy, widened

Function = Callable[..., Any]
"""A graph module is one, too: it is interpreted."""


def _run(function: Function) -> Callable[..., Any]:
    run: Callable[..., Any] = Interpreter(function).run if isinstance(function, GraphModule) else function
    return run


def tensors(result: Any) -> list[Any]:
    """A graph's results as a flat list."""
    return list(result) if isinstance(result, list | tuple) else [result]


def complaint(graph: Function, inputs: Sequence[Any], native: Sequence[Any], received: Sequence[Any]) -> str:
    """The first thing that is wrong with what was received, or nothing."""
    wide: list[Any] | None = None
    reach = 1
    for number, (got, want) in enumerate(zip(received, native, strict=True)):
        if not isinstance(want, torch.Tensor):
            if got is not want and got != want:
                return f"result {number} is {got!r} where eager gives {want!r}"
            continue
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"result {number} is {got.dtype} {list(got.shape)} where eager gives {want.dtype} {list(want.shape)}"
        if not want.numel() or torch.equal(got, want):
            continue
        if wide is None:
            wide, reach = _wide(graph, inputs, native), _reach(graph, inputs)
        if not (want.is_floating_point() or want.is_complex()):
            difference = numerics.compare_exact(got, want, wide[number])
        else:

            def under_noise(place: int = number, length: int = reach) -> list[Any]:
                size = numerics.drift(torch.float32, length) / 2
                runs = [_wide(graph, inputs, native, size, seed) for seed in (1, 2)]
                return [run[place] for run in runs]

            difference = Yardstick(want, wide[number], reach, under_noise).judge(got, 1)
        if difference.count:
            return f"result {number} is off by {difference.worst_error:.3g} where {difference.bound:.3g} is allowed"
    return ""


def _wide(graph: Function, inputs: Sequence[Any], native: Sequence[Any], noise: float = 0.0, seed: int = 0) -> list[Any]:
    """The graph's results in fp64; eager's own where an operator refuses that."""
    dice = torch.Generator().manual_seed(seed)
    floats = [float(torch.finfo(t.dtype).eps) for t in inputs if isinstance(t, torch.Tensor) and t.is_floating_point()]
    given = [noisy(widened(t), noise, dice, False) if isinstance(t, torch.Tensor) else t for t in inputs]
    try:
        with torch.no_grad(), Widen(min(floats, default=float(torch.finfo(torch.float32).eps))):
            result = tensors(_run(graph)(*given))
    except (RuntimeError, NotImplementedError, ValueError):
        if noise:  # an operator that knows no fp64: what the noise does is then seen in the dtype that came
            native = tensors(_run(graph)(*(_narrowed(w, t) for w, t in zip(given, inputs, strict=True))))
        return [t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in native]
    return result


def _narrowed(wide: Any, own: Any) -> Any:
    return wide.to(own.dtype) if isinstance(own, torch.Tensor) else own


def _reach(graph: Function, inputs: Sequence[Any]) -> int:
    """The longest sum in the graph; where it cannot be watched (operators with effects), at least the longest side of an input."""
    counter = Work()
    try:
        with torch.no_grad(), counter:
            _run(graph)(*inputs)
    except (RuntimeError, NotImplementedError):
        return max(counter.reach, *(max(t.shape, default=1) for t in inputs if isinstance(t, torch.Tensor)), 1)
    return counter.reach
