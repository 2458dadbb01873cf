"""What a kernel computes, told: the graph of a lifted forward in, formulas and PyTorch code out.

1. `notation`    each result as a formula of its elements; sums and maxima get names
2. `torch_code`  the same graph as a function of PyTorch, which is run on the example inputs before it is shown
"""

from __future__ import annotations

from typing import Any

from kernelwright.compiler.lift.formulas.forward import Follow, Forward
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.launches import Launch, Seen
from kernelwright.core.errors import CannotLift


def explained(seen: Seen, follow: Follow) -> dict[str, Any]:
    """Formulas, code, assumptions and launches of a forward, as plain data."""
    from kernelwright.compiler.graph.values import Value
    from kernelwright.compiler.lift.explain.notation import Notation
    from kernelwright.compiler.lift.explain.torch_code import torch_code

    captured = Forward(seen, follow, products=False).captured()
    values = [o for o in captured.outputs if isinstance(o, Value)]
    notation = Notation()
    names = [name for name, b in seen.trace.buffers.items() if b.role == "output"]
    for k, value in enumerate(values):
        title = names[k] if len(names) == len(values) else "out" if len(values) == 1 else f"out{k}"
        notation.result(title, value)
    assumed = [*seen.trace.notes]
    shapes = ", ".join(
        f"{b.name} {b.dtype.value}{list(b.shape)}" for b in seen.trace.buffers.values() if b.role in ("input", "param")
    )
    assumed.insert(0, f"sizes are those of the example inputs: {shapes}")
    code = ""
    try:
        code = torch_code(captured, seen.name if seen.name.isidentifier() else "kernel")
        _tried(code, captured, seen)
    except (Refused, CannotLift) as refusal:
        code = ""
        assumed.append(f"no PyTorch code: {refusal.reason}")
    launches = [
        f"{step.name} on a grid of {' x '.join(map(str, step.grid))}" for step in seen.trace.steps if isinstance(step, Launch)
    ]
    return {"formulas": notation.lines, "pytorch": code, "assumptions": assumed, "launches": launches}


def _tried(code: str, captured: Any, seen: Seen) -> None:
    """The code must compute what the kernel computed, or, where the kernel was not run, run at all."""
    import torch
    from torch.utils import _pytree as pytree

    from kernelwright.sketch.interpret.compare import difference

    room: dict[str, Any] = {}
    exec(compile(code, "explained", "exec"), room)
    function = room[next(name for name in room if callable(room[name]) and name not in ("torch", "__builtins__"))]
    leaves = pytree.tree_leaves(seen.inputs)
    given = [
        leaves[int(t.source)] if t.role == "input" else seen.state[t.source]
        for t in captured.tensors
        if t.role in ("input", "param")
    ]
    try:
        with torch.no_grad():
            made = function(*given)
    except Exception as error:
        raise Refused(0, f"what was written does not run ({type(error).__name__}: {error})") from error
    if seen.executed:
        for want, got in zip(seen.results, made if isinstance(made, tuple) else (made,), strict=True):
            _, reason = difference(want, got.to(want.dtype).reshape(want.shape))
            if reason:
                raise Refused(0, f"what was written does not give what the kernel gives ({reason})")
