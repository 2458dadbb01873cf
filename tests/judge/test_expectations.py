"""What a second candidate of a task need not pay again, and that nothing secret is among it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.core.task import Task
from kernelwright.judge import expectations
from kernelwright.judge.expectations import Expectations
from kernelwright.judge.reference.referee import Referee
from kernelwright.judge.reference.rows import Rows

torch.set_num_threads(1)

SOURCE = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
SOURCE += "def get_inputs():\n    return [torch.rand(64, 64)]\n"
TASK = Task.from_source(SOURCE)


def told(made: Referee) -> dict[str, Any]:
    made.weights(None)
    made.plan(0.3)
    return json.loads(json.dumps(made.learnt()))  # type: ignore[no-any-return]


def test_another_referee_runs_only_what_its_trials_need() -> None:
    known = told(Referee(TASK))
    second = Referee(TASK, known=known)
    ran: list[int] = []
    forward = second.reference._restored
    second.reference._restored = lambda inputs: (ran.append(1), forward(inputs))[1]  # type: ignore[method-assign]
    second.weights(None)
    assert not ran
    trials = second.plan(0.3)
    assert len(ran) <= sum(trial.distribution != "own" for trial in trials)
    assert {trial.distribution for trial in trials} >= {"own", "normal"}
    assert {**second.facts, "eager_seconds": 0} == {**known["facts"], "seed": second.seed, "eager_seconds": 0}
    assert second.facts["eager_seconds"] > 0
    for number in range(len(trials)):
        inputs, _ = second.draw(number)
        assert second.check(number, torch.relu(inputs[0]), inputs) is None
    assert second.check(0, torch.relu(second.draw(0)[0][0]) + 1e-3, None) is not None


def test_nothing_that_is_kept_depends_on_a_secret() -> None:
    def stripped(found: dict[str, Any]) -> dict[str, Any]:
        found["facts"].pop("eager_seconds")
        plan = found["plan"]
        plan.pop("cost")
        plan["base"].pop("error")  # torch's own error on the inputs of that day, in roundings
        plan["recipes"] = {name: plan["recipes"][name] for name in ("normal", "zeros") if name in plan["recipes"]}
        return found

    one, other = Referee(TASK), Referee(TASK)
    kept = told(one)
    assert stripped(kept) == stripped(told(other))
    text = json.dumps(kept)
    assert not any(str(secret) in text for secret in (one.seed, one.secret, *(trial.seed for trial in one.trials)))


def test_the_trials_of_two_candidates_have_no_seed_in_common() -> None:
    known = told(Referee(TASK))
    first, second = Referee(TASK, known=known), Referee(TASK, known=known)
    assert not {trial.seed for trial in first.plan(0.3)} & {trial.seed for trial in second.plan(0.3)}


def test_the_law_of_a_large_tasks_inputs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.judge.timing.fresh_data.BLOCK_SECONDS", 0.0)
    made = Referee(TASK)
    made.rows = Rows(64, (0,), 8, 64)
    made._own.learn(made.loaded.draw(1)[0], 1.0)
    second = Referee(TASK, known=told(made))
    object.__setattr__(second.loaded, "draw", lambda seed: pytest.fail("the task's own function was called"))
    second.weights(None)
    second.plan(0.0)
    (block,), turned = second.draw(0)
    assert block.shape == (8, 64)
    assert turned is not None
    assert turned.batch == 64
    assert 0 <= float(block.min()) < float(block.max()) <= 1


def test_what_is_kept_outlives_the_process_and_is_of_one_task_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Expectations(2, tmp_path)
    kept.learn(TASK, flags=["cannot tell"])
    kept.learn(TASK, referee={"facts": 1})
    assert Expectations(2, tmp_path).of(TASK) == {"flags": ["cannot tell"], "referee": {"facts": 1}}
    assert Expectations(1, tmp_path).of(TASK) == {}
    assert Expectations(2, tmp_path).of(Task.from_source(SOURCE + "# other\n")) == {}
    monkeypatch.setattr(expectations, "versions", lambda: ["another torch"])
    assert Expectations(2, tmp_path).of(TASK) == {}


def test_the_oldest_is_dropped_beyond_the_limit_and_a_broken_file_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "MOST_BYTES", 300)
    kept = Expectations(2, tmp_path)
    for number in range(5):
        kept.learn(Task.from_source(SOURCE + f"# {number}\n"), flags=["x" * 80])
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 300
    last = Task.from_source(SOURCE + "# 4\n")
    assert Expectations(2, tmp_path).of(last)
    for file in tmp_path.iterdir():
        file.write_text("{")
    assert Expectations(2, tmp_path).of(last) == {}
