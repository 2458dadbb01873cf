"""Several designs of one module: the best guess first, others differ in how one kind of contraction is made, and all are right."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernelwright.compiler.designer import Design, design_module
from kernelwright.sketch.check.rules import require
from kernelwright.sketch.interpret.interpreter import call
from kernelwright.sketch.nodes import Kernel

from .harness import Wrapped

PRODUCTS = nn.Sequential(nn.Linear(160, 96), nn.GELU(), nn.Linear(96, 24)).eval()
CONVOLUTIONS = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU(), nn.Conv2d(8, 8, 1)).eval()


def shape(design: Design) -> tuple[object, ...]:
    return design.sketch.steps, design.sketch.tensors, design.sketch.tunables


@pytest.mark.parametrize(
    ("model", "x"),
    [(PRODUCTS, torch.randn(150, 160)), (CONVOLUTIONS, torch.randn(2, 8, 10, 10))],
    ids=["products", "convolutions"],
)
def test_all_are_right_and_none_is_there_twice(model: nn.Module, x: torch.Tensor) -> None:
    designs = design_module(model, [x], effort="standard")
    assert len(designs) > 1
    assert len({shape(d) for d in designs}) == len(designs)
    with torch.no_grad():
        expected = model(x)
    for design in designs:
        require(design.sketch)
        torch.testing.assert_close(call(design.sketch, [x], model.state_dict()), expected, rtol=1e-4, atol=1e-4)


def test_the_first_does_not_depend_on_the_effort_and_the_others_cost_more() -> None:
    x = [torch.randn(150, 160)]
    quick, thorough = (design_module(PRODUCTS, x, effort=effort) for effort in ("quick", "thorough"))
    assert len(quick) <= 3
    assert 1 < len(thorough) <= 12
    assert quick[0] == thorough[0]
    assert min(d.cost for d in thorough) == thorough[0].cost
    assert any("choice 2 of" in note for d in thorough[1:] for note in d.notes)


def test_layers_with_one_problem_are_chosen_together() -> None:
    """Equal layers are one question, not many: a second choice is taken by all of them."""

    def designs(count: int) -> list[Design]:
        layers = nn.Sequential(*(nn.Linear(96, 96, bias=False) for _ in range(count))).eval()
        return design_module(layers, [torch.randn(96, 96)], effort="thorough")

    one, three = designs(1), designs(3)
    assert len(one) == len(three) > 1
    assert [len([n for n in d.notes if n.startswith("product")]) for d in three[1:]] == [3] * (len(three) - 1)


def test_without_contractions_there_is_one() -> None:
    assert len(design_module(Wrapped(lambda x: x.softmax(-1)), [torch.randn(8, 8)], effort="thorough")) == 1


def test_decisions_are_told() -> None:
    model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    notes = design_module(model, [torch.randn(2, 4, 10, 10)])[0].notes
    assert any("made once" in note for note in notes)
    assert any(note.startswith("out: conv") and "batch_norm" in note and "relu in its epilogue" in note for note in notes)
    assert any("in one kernel" in note for note in design_module(Wrapped(lambda x: x.exp().sin()), [torch.randn(9)])[0].notes)


def test_memory_is_spent_in_all_layers_together() -> None:
    """Two layers of different shapes, each with few rows to its weights: one design keeps packed copies of both."""
    layers = nn.Sequential(nn.Linear(256, 320), nn.ReLU(), nn.Linear(320, 192)).eval()
    first, *others = design_module(layers, [torch.randn(24, 256)], effort="standard")
    assert not any(step.once for step in first.sketch.steps if isinstance(step, Kernel))
    both = [d for d in others if sum(step.once for step in d.sketch.steps if isinstance(step, Kernel)) == 2]
    assert [d.notes[-1] for d in both] == ["spends memory for speed"]


def test_rounding_is_spent_beside_memory() -> None:
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.Flatten(), nn.Linear(16 * 18 * 26, 64)).eval()
    designs = design_module(net, [torch.randn(2, 16, 18, 26)], effort="thorough")
    spent = [d.notes[-1] for d in designs if d.notes and d.notes[-1].startswith("spends")]
    assert spent == ["spends memory for speed", "spends rounding for speed", "spends memory and rounding for speed"]


def test_quick_has_others_of_another_kind_in_reserve() -> None:
    """Winograd's rounding may be too much for what follows: then a coarser tile of the same would be wrong, too."""
    quick = design_module(nn.Conv2d(16, 24, 3).eval(), [torch.randn(2, 16, 30, 30)], effort="quick")
    stems = [
        {step.name.rstrip("_0123456789") for step in d.sketch.steps if isinstance(step, Kernel) and not step.once}
        for d in quick
    ]
    assert stems[:2] == [{"winograd"}, {"conv"}]
    assert not any(note.startswith("spends") for d in quick for note in d.notes)
