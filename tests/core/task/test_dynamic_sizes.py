"""What varies: how it is said, and what a module lets vary."""

import pytest
import torch
from torch import nn

from kernelwright.core.errors import ConfigError, KernelwrightError
from kernelwright.core.task import Task
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol, parse_dynamic, wish_of
from kernelwright.core.task.dynamic_probe import dynamic_of, found_in
from kernelwright.core.task.load import load_task

TASK = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.places = torch.nn.Parameter(torch.randn(128, 32))
    def forward(self, x, mask):
        return (x + self.places[: x.shape[1]]) * mask[:, :, None]
def get_inputs():
    return [torch.randn(4, 16, 32), torch.rand(4, 16)]
"""


def found(module: nn.Module, inputs: list[object], said: str) -> Dynamic:
    return found_in(module, inputs, parse_dynamic(said))


def test_a_range_is_said_by_the_names_of_forward() -> None:
    dims = parse_dynamic("x[0]=1..4096, states[0][1], y[-1]=n in 8..64 step 8, z[0] = n").dims
    assert [(d.leaf, d.axis, d.name, d.low, d.high, d.divisor) for d in dims] == [
        ("x", 0, "", 1, 4096, 1),
        ("states[0]", 1, "", None, None, 1),
        ("y", -1, "n", 8, 64, 8),
        ("z", 0, "n", None, None, 1),
    ]


@pytest.mark.parametrize(
    "said", ["", "x", "x[0", "x[a]", "x[0]=", "x[0]=5..2", "x[0]=3", "x[0], x[0]", "x[0]=1..8 step 0", "btach"]
)
def test_what_cannot_be_read_is_one_sentence(said: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_dynamic(said)
    assert "\n" not in str(told.value)


def test_a_task_says_what_varies_of_itself() -> None:
    said = TASK + 'def get_dynamic():\n    return {"x": {0: (1, 64), 1: None}}\n'
    dynamic = dynamic_of(load_task(Task.from_source(said)))
    assert dynamic is not None
    assert dynamic.ranges == "x[0] in 1..64, x[1] in 1..128"
    assert dynamic.dims == ((0, 0, "x_0"), (0, 1, "x_1"), (1, 0, "x_0"), (1, 1, "x_1"))  # the mask goes along
    assert Dynamic.from_json(dynamic.as_json()) == dynamic
    assert dynamic.shapes([(4, 16, 32), (4, 16)], {"x_0": 7, "x_1": 1}) == [(7, 1, 32), (7, 1)]
    assert dynamic.read([(7, 1, 32), (7, 1)]) == {"x_0": 7, "x_1": 1}


def test_without_a_word_nothing_varies() -> None:
    assert dynamic_of(load_task(Task.from_source(TASK))) is None


def test_every_size_in_which_listed_inputs_differ() -> None:
    listed = "def get_inputs_dyn_list():\n    return [[torch.randn(4, n, 32), torch.rand(4, n)] for n in (16, 3, 90)]\n"
    dynamic = dynamic_of(load_task(Task.from_source(TASK + listed)), "listed")
    assert dynamic is not None
    assert [s.name for s in dynamic.symbols] == ["x_1"]
    assert list(dynamic.labels) == ["x[1]", "mask[1]"]


def test_what_varies_is_part_of_a_tasks_identity() -> None:
    task = Task.from_source(TASK)
    assert task.varying("batch").hash != task.hash
    assert task.varying(None) == task
    assert Task.from_source(**task.varying("batch").as_json()) == task.varying("batch")


def test_equal_sizes_are_one_symbol_where_the_module_demands_it() -> None:
    class Product(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x @ y

    dynamic = found(Product(), [torch.randn(8, 8), torch.randn(8, 8)], "all")
    assert dynamic.dims == ((0, 0, "x_0"), (0, 1, "x_1"), (1, 0, "x_1"), (1, 1, "y_1"))


def test_a_divisor_is_kept() -> None:
    dynamic = found(nn.PixelUnshuffle(4), [torch.randn(2, 3, 16, 8)], "input[2]=1..4096, input[3]")
    assert [(s.low, s.high, s.divisor) for s in dynamic.symbols] == [(4, 4096, 4), (4, None, 4)]
    assert "input[2] goes in steps of 4: the module demands it" in dynamic.notes
    assert not dynamic.symbol("input_2").admits(6)


def test_a_size_of_the_weights_does_not_vary() -> None:
    with pytest.raises(ConfigError, match=r"input\[1\] cannot vary: forward takes no other size there than 32"):
        found(nn.Linear(32, 8), [torch.randn(4, 32)], "input[1]")
    assert found(nn.Linear(32, 8), [torch.randn(4, 32)], "all").dims == ((0, 0, "input_0"),)


def test_a_range_that_the_module_refuses_is_told_with_the_one_it_takes() -> None:
    task = load_task(Task.from_source(TASK))
    with pytest.raises(KernelwrightError, match=r"forward refuses x\[1\] = 300; it takes 1\.\.128"):
        dynamic_of(task, "x[1]=1..300")


def test_the_batch_is_dimension_0_of_all_that_goes_together() -> None:
    task = load_task(Task.from_source(TASK))
    dynamic = dynamic_of(task, "batch")
    assert dynamic is not None
    assert dynamic.symbols == (SizeSymbol("batch", 1, None, 1, 4),)
    assert dynamic.dims == ((0, 0, "batch"), (1, 0, "batch"))


def test_a_least_size_is_found() -> None:
    assert found(nn.Conv2d(3, 4, 5), [torch.randn(2, 3, 16, 16)], "input[2]").symbols[0].low == 5


def test_a_dictionary_that_makes_no_sense_is_one_sentence() -> None:
    for said in ({}, {"x": 3}, {"x": {"a": None}}, {"x": {0: (1, 2, 3, 4)}}, 7):
        with pytest.raises(ConfigError):
            wish_of(said, "task.py")


def test_the_batch_varies_beside_what_the_task_lists() -> None:
    """A task that lists other lengths is judged at them: a kernel for any batch has to serve these, too."""
    listed = "def get_inputs_dyn_list():\n    return [get_inputs(), [torch.randn(2, 7, 32), torch.rand(2, 7)]]\n"
    dynamic = dynamic_of(load_task(Task.from_source(TASK + listed)), "batch")
    assert dynamic is not None
    assert {(leaf, axis) for leaf, axis, _ in dynamic.dims} == {(0, 0), (1, 0), (0, 1), (1, 1)}
    assert {name for leaf, axis, name in dynamic.dims if axis == 0} == {"batch"}
