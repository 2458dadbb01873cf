"""The Designer's door: `design_module` for a live module, `design_task` for a task; both give designs, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelwright.core.effort import preset
from kernelwright.core.task.dynamic import Dynamic
from kernelwright.sketch import nodes
from kernelwright.target import Capabilities, Target

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Design:
    """A sketch, what the designer did and why (`notes`), and the seconds that it should take on the target (`cost`).
    `shapes` are sketches of the same module for the task's other input shapes: sizes are baked in, a kernel chooses by shape."""

    sketch: nodes.Sketch
    notes: tuple[str, ...] = ()
    cost: float = 0.0
    shapes: tuple[nodes.Sketch, ...] = ()


def design_module(
    model: torch.nn.Module, inputs: Sequence[Any], *, keywords: dict[str, Any] | None = None, capabilities: Capabilities | None = None,
    track: str = "pure", effort: str = "quick", name: str | None = None, limit: int | None = None, drawn: frozenset[str] = frozenset(),
    dynamic: Dynamic | None = None,
) -> list[Design]:  # fmt: skip
    """Designs for a module at the shapes of the example inputs, best first, as many as the effort allows (or `limit`). Raises
    UnsupportedOperator for what cannot be designed; on track hybrid, such operators are left to the library where that is allowed.
    `drawn` names tensors outside the state_dict that every construction draws anew. `capabilities` are those of the language and the
    device that a design is for (compiler/hardware.py); without them it is for the cores of this machine."""
    from kernelwright.compiler.frontend.capture import capture
    from kernelwright.compiler.schedule.assemble import assemble

    title = name or type(model).__name__
    machine = capabilities or Capabilities.of(Target.host())
    captured = capture(
        model.eval(), inputs, keywords, track=track, drawn=drawn, kernels_are_calls=machine.vectors, dynamic=dynamic
    )
    tried = preset(effort)
    made = assemble(
        captured, title, f"{title}, designed from its graph.", capabilities=machine, limit=limit or tried.sketches,
        seconds=tried.sketch_seconds,
    )  # fmt: skip
    return [Design(sketch, (machine.facts(), *builder.notes), builder.cost) for sketch, builder in made]


def design_task(
    task: Any,
    *,
    capabilities: Capabilities | None = None,
    track: str = "pure",
    effort: str = "quick",
    dynamic: Dynamic | None = None,
    example: Sequence[Any] | None = None,
) -> list[Design]:
    """Designs for a task: its module at its own inputs. A task with several shapes gets a sketch for each of them in `shapes`; one with
    sizes that vary (its own, or `dynamic`) a design for all of them, chosen by the `example` (inputs at the examples of `dynamic`)."""
    from kernelwright.core.task.dynamic_probe import dynamic_of
    from kernelwright.core.task.load import load_task

    loaded = load_task(task)
    model = loaded.construct(0)
    first, *others = loaded.draw(0)
    dynamic = dynamic or dynamic_of(loaded, task.dynamic)
    first = list(example) if example is not None else first
    drawn = _drawn(model, loaded)
    designs = design_module(model, first, capabilities=capabilities, track=track, effort=effort, drawn=drawn, dynamic=dynamic)
    if dynamic:
        return designs
    more: list[nodes.Sketch] = []
    for inputs in others:
        if _signature(inputs) not in {_signature(first), *map(_signature, others[: len(more)])}:
            other = design_module(model, inputs, capabilities=capabilities, track=track, effort=effort, limit=1, drawn=drawn)
            more.append(other[0].sketch)
    return [Design(d.sketch, d.notes, d.cost, tuple(more)) for d in designs] if more else designs


def _drawn(model: torch.nn.Module, loaded: Any) -> frozenset[str]:
    """Tensors outside the state_dict that come out different under another seed, by their dotted names."""
    own = _outside(model)
    if not own:
        return frozenset()
    other = _outside(loaded.construct(1))
    return frozenset(
        name
        for name, t in own.items()
        if name not in other or t.shape != other[name].shape or not bool((t == other[name]).all())
    )


def _outside(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Plain attributes and non-persistent buffers that are tensors."""
    import torch

    inside = model.state_dict()
    found = dict(model.named_buffers())
    for path, module in model.named_modules():
        found |= {f"{path}.{k}" if path else k: t for k, t in vars(module).items() if isinstance(t, torch.Tensor)}
    return {name: t for name, t in found.items() if name not in inside}


def _signature(inputs: Sequence[Any]) -> tuple[Any, ...]:
    import torch.utils._pytree as pytree

    return tuple((tuple(x.shape), x.dtype) if hasattr(x, "shape") else x for x in pytree.tree_leaves(list(inputs)))
