"""The Designer's door: `design_module` for a live module, `design_task` for a task; both give designs, best first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelwright.sketch import nodes

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Design:
    """A sketch, what the designer did and why (`notes`), and the seconds that it should take on the target (`cost`)."""

    sketch: nodes.Sketch
    notes: tuple[str, ...] = ()
    cost: float = 0.0


def design_module(
    model: torch.nn.Module, inputs: Sequence[Any], *, keywords: dict[str, Any] | None = None, target: Any = None, track: str = "pure",
    effort: str = "quick", name: str | None = None,
) -> list[Design]:  # fmt: skip
    """Designs for a module at the shapes of the example inputs. Raises UnsupportedOperator for what cannot be designed."""
    from kernelwright.design.assemble import assemble
    from kernelwright.design.capture import capture

    title = name or type(model).__name__
    captured = capture(model.eval(), inputs, keywords)
    cores = getattr(target, "cores", None) or os.cpu_count() or 2
    sketch, workshop = assemble(captured, title, f"{title}, designed from its graph.", cores=cores)
    return [Design(sketch, tuple(workshop.notes), workshop.cost)]


def design_task(task: Any, *, target: Any = None, track: str = "pure", effort: str = "quick") -> list[Design]:
    """Designs for a task: its module at its own inputs."""
    raise NotImplementedError
