"""From a task to a judged kernel, with no model: what is written, what is told, what happens to tasks that cannot be designed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.team_models import TeamModels
from kernelwright.core.effort import preset, seconds
from kernelwright.core.errors import ConfigError, KernelwrightError, StoreError
from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.core.verdict import Status, Timing, Verdict
from kernelwright.jobs.generate import Generated, generate
from kernelwright.judge import Judge
from kernelwright.run.attempts import better
from kernelwright.run.drafts import Drafter
from kernelwright.run.folder import JobFolder, open_folder
from kernelwright.run.memo import Memory

NORM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 24)
        self.norm = nn.LayerNorm(24)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))

def get_inputs():
    return [torch.randn(13, 40)]

def get_init_inputs():
    return [40]
"""

SHAPES = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)

def get_inputs_dyn_list():
    return [[torch.randn(7, 33)], [torch.randn(1, 5)], [torch.randn(3, 128)]]
"""

UNKNOWN = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x)

def get_inputs():
    return [torch.randn(6, 6)]
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.fixture(scope="module")
def drafter() -> Iterator[Drafter]:
    with Drafter() as drafter:
        yield drafter


def make(source: str, judge: Judge, drafter: Drafter, folder: JobFolder) -> Generated:
    task = Task.from_source(source, path="task.py")
    return generate(JobSpec(task, "cpp", "pure", preset("quick"), timing=False), judge, drafter, folder)


@pytest.mark.parametrize("source", [NORM, SHAPES], ids=["linear, norm and relu", "several shapes"])
def test_a_kernel_is_made_judged_and_written(source: str, judge: Judge, drafter: Drafter, tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "out", "task", "cpp")
    result = make(source, judge, drafter, folder)
    assert result.verdict.status is Status.correct, result.verdict.reason
    assert folder.kernel.read_text() == result.draft.kernel.source
    assert "import kernelwright" not in result.draft.kernel.source
    assert Verdict.model_validate_json(folder.verdict.read_text()) == result.verdict
    steps = [json.loads(line)["step"] for line in (folder.path / "journal.jsonl").read_text().splitlines()]
    assert steps == ["start", "designed", "judged", "done"]


def test_an_operator_without_a_schedule_is_told_by_name(drafter: Drafter) -> None:
    with pytest.raises(KernelwrightError, match=r"svd.* is not supported by the built-in designer yet") as caught:
        drafter.drafts(JobSpec(Task.from_source(UNKNOWN, path="task.py")))
    assert caught.value.exit_code == 1


def test_a_task_that_dies_while_it_is_designed_costs_only_its_worker(drafter: Drafter) -> None:
    source = NORM.replace("return [torch.randn(13, 40)]", "import os; os._exit(3)")
    with pytest.raises(KernelwrightError, match="exited with code 3"):
        drafter.drafts(JobSpec(Task.from_source(source, path="task.py")))
    assert drafter.drafts(JobSpec(Task.from_source(NORM, path="task.py")))


def result(status: Status, speedup: float | None = None) -> Verdict:
    timing = None
    if speedup is not None:
        timing = Timing(
            kernel_ms=1, eager_ms=speedup, speedup=speedup, speedup_low=speedup, speedup_high=speedup, noise=0.01, rounds=7
        )
    return Verdict(status=status, reason="because", timing=timing)


def test_correct_comes_before_fast() -> None:
    assert better(result(Status.correct), result(Status.wrong_values))
    assert better(result(Status.correct, 2.0), result(Status.correct, 1.5))
    assert not better(result(Status.crashed), result(Status.correct, 0.5))


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KernelwrightError, match="cannot make this folder"):
        open_folder(tmp_path / "file" / "out", "task", "cpp")


@pytest.mark.parametrize(("text", "value"), [("60s", 60), ("5m", 300), ("1h", 3600), ("2.5", 2.5)])
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "-3s", "0", "nan", "infm"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a duration"):
        seconds(text)


def test_an_unknown_effort_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="quick, standard, thorough"):
        preset("heroic")


def test_where_the_end_cannot_be_written_either_the_first_error_is_told(tmp_path: Path) -> None:
    """A disk fills up in the middle of a run: the store says so, and then the folder's journal cannot be closed."""
    folder = open_folder(tmp_path, "norm", "cpp")

    class Full:
        def recall(self, kind: str, key: str) -> bytes | None:
            (tmp_path / "journal.jsonl").unlink()
            (tmp_path / "journal.jsonl").symlink_to("/dev/full")
            raise StoreError("store.sqlite: the disk is full")

        def keep(self, kind: str, key: str, data: bytes, **facts: Any) -> None:
            raise AssertionError("nothing is made after the store has failed")

    job = JobSpec(Task.from_source(NORM), "cpp", "pure", preset("quick"), timing=False)
    nobody: Any = None
    with pytest.raises(StoreError, match=r"^store\.sqlite: the disk is full$"):
        generate(job, nobody, nobody, folder, models=TeamModels(memory=Memory("r", Full())))
