"""The rival a kernel races against: the reference behind the stopwatch's words."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

from kernelwright.core.errors import TaskError
from kernelwright.judge.timing.baseline_worker import Baseline
from kernelwright.workers import bundle
from kernelwright.workers.channel import close_all

SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, 3)
        self.drop = torch.nn.Dropout(0.9)
    def forward(self, x):
        return self.drop(self.linear(x))
def get_inputs():
    return [torch.randn(4, 5)]
def get_init_inputs():
    return [5]
"""


def opened(source: str = SOURCE, mode: str = "eager") -> Baseline:
    rival = Baseline()
    message = {"op": "open", "path": "task.py", "source": source, "class_name": "Model", "mode": mode}
    before = torch.get_num_threads()
    rival.answer({**message, "init_seed": 3, "threads": 1}, [])
    torch.set_num_threads(before)
    return rival


def ask(rival: Baseline, message: dict[str, Any], tree: Any) -> dict[str, Any]:
    packed = bundle.pack(tree)
    try:
        reply, fds = rival.answer({**message, "header": packed.header}, [packed.fd])
        close_all(fds)
        return reply
    finally:
        os.close(packed.fd)


def test_the_reference_is_timed_in_eval_mode_and_without_gradients() -> None:
    rival = opened()
    x = torch.randn(4, 5)
    assert ask(rival, {"op": "time_prepare", "align": 1}, [[x], [x + 1]])["calls"] == 2
    assert rival.answer({"op": "time_go"}, [])[0]["ns"] > 0
    reply, fds = rival.answer({"op": "time_outputs", "call": 1}, [])
    got = bundle.unpack(reply["header"], fds[0])
    assert torch.equal(got, rival.model.linear(x + 1))
    assert not rival.stopwatch._outputs[0].requires_grad
    close_all(fds)


def test_compile_calls_with_the_given_inputs() -> None:
    assert ask(opened(), {"op": "compile"}, [torch.randn(4, 5)])["ok"]


def test_a_plug_in_is_a_contender_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "doubled"

        def load(self) -> Any:
            return lambda model: lambda x: 2 * model(x)

    monkeypatch.setattr("kernelwright.judge.timing.baseline_worker.metadata.entry_points", lambda group: [Point()])
    monkeypatch.setattr("kernelwright.judge.timing.baseline_worker._prepare_compiler", lambda folder: None)
    x = torch.randn(4, 5)
    assert torch.equal(opened(mode="doubled").call([x]), 2 * opened().call([x]))
    with pytest.raises(ValueError, match="known are eager, compile, max-autotune, doubled"):
        opened(mode="tripled")


def test_a_bad_task_and_an_unknown_request_are_refused() -> None:
    with pytest.raises(TaskError):
        opened("x = 1")
    with pytest.raises(ValueError, match="unknown request"):
        opened().answer({"op": "dance"}, [])
