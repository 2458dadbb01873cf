"""Dear tasks: fp64 on a sample of the batch, torch's result for the rest, the same answers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernelwright.core.task import Task
from kernelwright.judge.reference.referee import Referee
from kernelwright.judge.reference.sampled import DEAR_SECONDS, SAMPLED_BYTES, SampledExpectation, rows_to_sample

torch.set_num_threads(1)

SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 32)
    def forward(self, x):
        return BODY
def get_inputs():
    return [torch.randn(48, 64)]
"""


def referee(body: str) -> Referee:
    return Referee(Task.from_source(SOURCE.replace("BODY", body)), seed=5)


def test_cheap_tasks_and_dependent_samples_are_run_whole() -> None:
    independent, dependent = referee("torch.relu(self.layer(x))"), referee("self.layer(x) - self.layer(x).mean(0)")
    assert rows_to_sample(independent.reference, independent.loaded.draw(1)[0], DEAR_SECONDS / 2) == 0
    assert 1 <= rows_to_sample(independent.reference, independent.loaded.draw(1)[0], 2 * DEAR_SECONDS) <= 24
    assert rows_to_sample(dependent.reference, dependent.loaded.draw(1)[0], 2 * DEAR_SECONDS) == 0


def test_large_tasks_are_sampled_however_fast_they_are() -> None:
    made = referee("torch.relu(self.layer(x))")
    assert rows_to_sample(made.reference, made.loaded.draw(1)[0], 0.0, SAMPLED_BYTES - 1) == 0
    assert rows_to_sample(made.reference, made.loaded.draw(1)[0], 0.0, 8 * SAMPLED_BYTES) == 1


def test_trials_make_room_before_the_next_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two large ones at a time, beside the candidate's, got the referee killed for memory."""
    made = referee("torch.relu(self.layer(x))")
    monkeypatch.setattr("kernelwright.judge.reference.referee.REMEMBERED_BYTES", 1)
    alive: list[int] = []
    made.loaded.model_class.forward.__globals__["alive"] = alive
    made.weights(None)
    monkeypatch.setattr(made, "_made", lambda *args: (alive.append(len(made._memory)), Referee._made(made, *args))[1])
    made.plan(0.3)
    assert len(alive) > 3
    assert set(alive) == {0}


def test_without_room_for_fp64_torch_is_the_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.judge.reference.referee.available_bytes", lambda: 1)
    made = referee("self.layer(x) - self.layer(x).mean(0)")
    made.weights(None)
    made.plan(0.1)
    assert made.truth == "native"
    assert made.check(0, made.reference.model(*made.draw(0)), made.draw(0)) is None
    assert made.check(0, 1.001 * made.reference.model(*made.draw(0)), made.draw(0)) is not None
    assert any("would not fit into memory" in flag for flag in made.flags())


@pytest.mark.parametrize("seed", range(3))
def test_the_sample_and_the_rest_are_both_judged(seed: int) -> None:
    made = referee("torch.relu(self.layer(x))")
    inputs = made.loaded.draw(seed)[0]
    expectation = SampledExpectation(made.reference, inputs, 64, label="trial", count=6, seed=seed)
    weight, bias = made.reference.model.layer.weight, made.reference.model.layer.bias

    def kernel(x: Any) -> Any:
        return torch.relu(sum(x[:, k : k + 5] @ weight.t()[k : k + 5] for k in range(0, 64, 5)) + bias)

    assert expectation.check(kernel(inputs[0]), inputs) is None
    assert expectation.check_outputs(kernel(inputs[0].bfloat16().float())) is not None
    outside = next(row for row in range(48) if row not in expectation.rows.tolist())
    for row in (outside, int(expectation.rows[0])):
        wrong = kernel(inputs[0])
        wrong[row] = 0
        finding = expectation.check_outputs(wrong)
        assert finding is not None
        assert finding["mismatch"]["region"].startswith(("row", "first row", "last row", "scattered"))


def test_the_plan_says_so() -> None:
    made = referee("torch.relu(self.layer(x))")
    made.sampled_rows = 6
    made.weights(None)
    made.plan(0.3)
    assert made.truth == "fp64 for 6 samples of the batch, native for the rest"
    for number in range(len(made.trials)):
        inputs = made.draw(number)
        assert made.check(number, made.reference.model(*inputs), inputs) is None


def test_half_precision_is_tried_on_the_sample_only() -> None:
    made = referee("(globals().get('seen', []).append(x.shape[0])) or torch.relu(self.layer(x))")
    seen: list[int] = []
    made.loaded.model_class.forward.__globals__["seen"] = seen
    made.sampled_rows = 6
    made.plan(0.1)
    seen.clear()
    assert made.flags() == []
    assert set(seen) == {6}


def test_a_large_trial_is_drawn_once_for_its_run_and_not_again_for_the_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs of a gigabyte take seconds to draw; each trial drew them twice, and the flags once more."""
    made = referee("torch.relu(self.layer(x))")
    made.sampled_rows = 6
    monkeypatch.setattr("kernelwright.judge.reference.referee.REMEMBERED_BYTES", 1)
    made.plan(0.1)
    drawn: list[int] = []
    draw = made.loaded.draw
    object.__setattr__(made.loaded, "draw", lambda seed: (drawn.append(seed), draw(seed))[1])
    inputs = made.draw(2)
    assert made.check(2, made.reference.model(*inputs), inputs) is None
    assert len(drawn) == 1
    assert made.flags() == []
    assert len(drawn) == 1
