"""Tasks that cannot tell a null candidate from a kernel are flagged; ordinary tasks are not."""

from __future__ import annotations

import pytest

from kernelwright.core.task import Task
from kernelwright.judge.reference.referee import Referee

TEMPLATE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {body}
def get_inputs():
    return [{inputs}]
"""


def flags(body: str, inputs: str = "torch.randn(16, 64)") -> list[str]:
    made = Referee(Task.from_source(TEMPLATE.format(body=body, inputs=inputs)))
    made.weights(None)
    made.plan(0.5)
    return made.flags()


@pytest.mark.parametrize(
    ("body", "inputs", "word"),
    [
        ("x * 0", "torch.randn(16, 64)", "returns zeros"),
        ("x * 0 + 1", "torch.randn(16, 64)", "returns one constant"),
        ("x.clone()", "torch.randn(16, 64)", "returns an input unchanged"),
        ("torch.sign(x)", "torch.randn(16, 64)", "computes in bfloat16"),
        ("torch.relu(x)", "torch.randint(0, 3, (16, 64)).float()", "returns an input unchanged"),
    ],
)
def test_a_task_that_cannot_tell(body: str, inputs: str, word: str) -> None:
    assert any(word in flag for flag in flags(body, inputs))


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("torch.softmax(x, -1)", "torch.randn(16, 2048)"),
        ("torch.relu(x)", "torch.rand(16, 64)"),
        ("x.sum()", "torch.randn(10000)"),
        ("x.mean(1)", "torch.randn(16, 4096)"),
        ("x @ x.t()", "torch.rand(64, 512)"),
        ("x.argmax(1)", "torch.randn(16, 64)"),
        ("torch.softmax(x, -1)", "torch.randn(16, 64).half()"),
    ],
)
def test_a_task_that_can(body: str, inputs: str) -> None:
    assert flags(body, inputs) == []


def test_nan_in_the_reference_is_said() -> None:
    assert any("NaN" in flag for flag in flags("torch.sqrt(x)"))
