"""A kernel constructed under the reference's seed holds the reference's weights, as evaluators of the field expect."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernelwright.compiler.language import language
from kernelwright.core.task import Task
from kernelwright.core.task.initialisation import initialisation_of
from kernelwright.core.task.load import LoadedTask, load_task
from kernelwright.run.drafts import state_of
from kernelwright.sketch.parse import parse

MODULES = {
    "linear": "nn.Linear(8, 4)",
    "conv and norm": "nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ConvTranspose2d(8, 4, 2))",
    "lstm": "nn.LSTM(8, 6, num_layers=2, bidirectional=True)",
    "attention": "nn.MultiheadAttention(8, 2)",
    "encoder": "nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)",
    "embedding": "nn.Embedding(10, 4, padding_idx=0)",
    "scaled": "Scaled()",
    "tied": "Tied()",
}
SOURCE = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        torch.rand(3)  # a draw that is thrown away counts all the same
        self.weight = nn.Parameter(torch.randn(4, 4) * 0.02)
        self.gate = nn.Parameter(torch.empty(4))
        nn.init.normal_(self.gate, std=0.5)
        nn.init.xavier_uniform_(self.weight[:2])
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)).bool())
        self.register_buffer("steps", torch.tensor([0.5, float("inf")]))

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.b.weight = self.a.weight

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = MODULE

    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(4, 8)]
"""


def loaded(module: str) -> LoadedTask:
    return load_task(Task.from_source(SOURCE.replace("MODULE", module), path="task.py"))


def made(found: Any, seed: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    space: dict[str, Any] = {"torch": torch}
    with torch.no_grad():
        exec("\n".join(found.statements), space)
    return {name: space[value] for name, value in found.values.items()}


@pytest.mark.parametrize("module", MODULES.values(), ids=list(MODULES))
def test_the_statements_give_the_constructors_state_under_any_seed(module: str) -> None:
    task = loaded(module)
    found = initialisation_of(task)
    assert found is not None
    for seed in (0, 42):
        wanted = task.construct(seed).state_dict()
        got = made(found, seed)
        assert list(got) == list(wanted)
        assert all(torch.equal(got[name], wanted[name]) for name in wanted)


def test_a_constructor_that_looks_at_its_draws_is_left_out() -> None:
    assert initialisation_of(loaded("nn.Linear(8, 4) if torch.rand(1) > 0.5 else nn.Linear(4, 8)")) is None


def test_what_cannot_be_written_is_left_out() -> None:
    task = loaded("nn.ParameterList([nn.Parameter(torch.tensor([float(i * i % 7) for i in range(1000)]))])")
    assert initialisation_of(task) is None, "a table from plain data has no place in a kernel file"
    assert [entry[0] for entry in state_of(task)] == ["inner.0"]


@pytest.mark.parametrize("dsl", ["cpp", "triton"])
def test_a_kernel_file_constructed_under_a_seed_holds_the_same_weights(dsl: str) -> None:
    task = loaded("nn.Linear(8, 4)")
    sketch = parse(
        'x = tensor([4, 8], f32, role="input", source="0")\ny = tensor([4, 8], f32, role="output")\n'
        '@kernel\ndef relu():\n    for i in parallel(0, 4):\n        store(y[i, :], maximum(load(x[i, :]), 0.0))\nreturns("y")\n'
    )
    text = language(dsl).lower(sketch, state=state_of(task))
    constructor = text[text.index("def _declare(") : text.index("    def ", text.index("super().__init__()"))]
    space: dict[str, Any] = {"torch": torch, "nn": torch.nn, "_NESTED": ()}
    exec(_only(constructor), space)
    torch.manual_seed(7)
    got = space["ModelNew"]().state_dict()
    wanted = task.construct(7).state_dict()
    assert list(got) == list(wanted)
    assert all(torch.equal(got[name], wanted[name]) for name in wanted)


def _only(text: str) -> str:
    """`_declare` and the class up to its first method: nothing is built here."""
    head = text[: text.index("\n\n\n")]
    return head + "\n\n" + text[text.index("class ModelNew") :]
