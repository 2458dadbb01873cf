"""A task at reduced sizes still runs, and is smaller where it can be."""

from __future__ import annotations

import ast
import random
from textwrap import dedent

import pytest

from kernelwright import suites
from kernelwright.core.errors import TaskError
from kernelwright.core.task import Task, scale
from kernelwright.core.task.load import load_task
from kernelwright.core.task.scale import fit, rewrite, sites


def task(text: str) -> Task:
    return Task.from_source("import torch\nfrom torch import nn\n" + dedent(text))


def shapes(found: Task) -> list[tuple[int, ...]]:
    loaded = load_task(found)
    inputs = loaded.draw(0)[0]
    loaded.forward(loaded.construct(0), inputs)
    return [tuple(tensor.shape) for tensor in inputs]


LINEAR = """
    batch_size = 16
    width = 1024 * 8
    kernel = 3

    class Model(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.layer = nn.Linear(width, out)
        def forward(self, x):
            return self.layer(x)

    def get_inputs():
        return [torch.rand(batch_size, width)]

    def get_init_inputs():
        return [width, 491]
"""


def test_named_sizes_shrink_in_both_places_and_small_numbers_stay() -> None:
    scaled = fit(task(LINEAR), 0.25)
    assert shapes(scaled.task) == [(4, 2048)]
    assert "kernel = 3" in scaled.task.source
    assert "batch_size 16 -> 4" in scaled.changes
    assert "get_init_inputs 491 -> 123" in scaled.changes, "an odd size stays odd"


def test_a_size_fixed_inside_the_model_keeps_the_others_scaled() -> None:
    fixed = """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(512, 64)
            def forward(self, x):
                return self.layer(x)

        def get_inputs():
            return [torch.rand(128, 256, 512)]

        def get_init_inputs():
            return []
    """
    assert shapes(fit(task(fixed), 0.25).task) == [(32, 64, 512)]


def test_small_sizes_shrink_only_where_inputs_are_made_with_them() -> None:
    text = (
        "D = 16\nkernel = 7\ndef get_inputs():\n    return [torch.rand(D, 3)]\ndef get_init_inputs():\n    return [D, kernel]\n"
    )
    assert [(site.where, site.shrunk(0.25)) for site in sites(text)] == [("D", 4)]


def test_the_rest_of_the_text_is_untouched() -> None:
    text = "# naïve – ünïcode\nN = 64; M = 128  # kept\nseed = 3\n"
    assert rewrite(text, sites(text), 0.5) == "# naïve – ünïcode\nN = 32; M = 64  # kept\nseed = 3\n"


def test_seeds_and_layers_are_not_sizes() -> None:
    text = "def get_inputs():\n    torch.manual_seed(1234)\n    return [torch.rand(100, 7)]\nclass Model:\n    width = 512\n"
    assert [site.value for site in sites(text)] == [100]


def test_a_factor_of_one_changes_nothing() -> None:
    whole = task(LINEAR)
    assert fit(whole, 1.0).task is whole


@pytest.mark.parametrize("name", ["gemm_odd", "conv_2d", "layer_norm", "max_pool_2d", "attention"])
def test_rows_of_the_suite_shrink(name: str) -> None:
    row = next(row for row in suites.load("core") if row.name == name)
    whole = Task.from_source(row.source, path=f"{row.name}.py")
    small = fit(whole, 0.25)
    assert small.changes
    assert sum(map(_elements, shapes(small.task))) < sum(map(_elements, shapes(whole))) / 4


def test_a_site_that_is_chosen_twice_is_written_once() -> None:
    text = "sizes = (128, 256, 64)\n"
    found = sites(text)
    assert rewrite(text, [*found, found[0], found[1]], 0.125) == "sizes = (16, 32, 8)\n"


@pytest.mark.parametrize("suite", ["core", "fused"])
@pytest.mark.parametrize("factor", [0.5, 0.125, 0.01])
def test_whichever_sizes_a_reference_bears_what_is_written_is_python(
    suite: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference's own answer is replaced by the toss of a coin, so that all ways through the choice are gone."""
    for row in suites.load(suite):
        coin = random.Random(row.name)
        whole = Task.from_source(row.source, path=f"{row.name}.py")

        def toss(tried: Task, whole: Task = whole, coin: random.Random = coin) -> None:
            ast.parse(tried.source)
            if tried is not whole and coin.random() < 0.6:
                raise TaskError(tried.path, "refused by the coin")

        monkeypatch.setattr(scale, "_run", toss)
        small = fit(whole, factor)
        assert len(sites(whole.source)) >= len(small.changes) == len(_differences(whole.source, small.task.source)), row.name


def _differences(before: str, after: str) -> list[tuple[int, int]]:
    """Pairs of integers of two programs that are the same but for them; constant expressions count by their value."""
    first, second = (ast.parse(text) for text in (before, after))
    found = [(a, b) for a, b in zip(_sizes(first), _sizes(second), strict=True) if a != b]
    assert all(isinstance(a, int) and isinstance(b, int) and b < a for a, b in found)
    return found


def _sizes(tree: ast.AST) -> list[object]:
    """Everything of a program in its order, each constant expression folded to its value."""
    value = scale._constant(tree)
    if value is not None:
        return [value]
    own = tree.value if isinstance(tree, ast.Constant) else getattr(tree, "id", type(tree).__name__)
    return [own, *(one for child in ast.iter_child_nodes(tree) for one in _sizes(child))]


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
