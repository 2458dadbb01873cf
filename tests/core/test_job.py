"""A JobSpec is plain data in the store and comes back the same; jobs that earlier versions stored are read."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright.core.effort import preset
from kernelwright.core.errors import ConfigError
from kernelwright.core.job import JobSpec, ModelChoice, Source
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task

TASK = Task.from_source("class Model: pass\n")
KERNEL = Kernel.from_source("class ModelNew: pass\n", dsl="triton")

JOBS = {
    "generate": JobSpec(TASK, "triton", "hybrid", preset("standard"), 60.0, target="h100", out="there"),
    "with models": JobSpec(TASK, models=ModelChoice("mailbox:letters", coder="replay:talk", max_cost=2.0, knowledge=False)),
    "tune": JobSpec(TASK, "triton", kernel=KERNEL, tune_seconds=30.0),
    "migrate": JobSpec(None, "cpp", source=Source(KERNEL, "f32[8]", "[8]"), timing=False),
    "migrate with its task": JobSpec(TASK, "cpp", source=Source(KERNEL, golden="outputs.pt"), store="place"),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_is_plain_data_and_comes_back_the_same(job: JobSpec) -> None:
    assert JobSpec.from_json(job.as_json()) == job


def test_who_thinks_is_told_apart() -> None:
    assert JOBS["with models"].models.asked
    assert not JOBS["tune"].models.asked
    assert str(JOBS["with models"].models.recording) == "talk"


OLD_GENERATE = {
    "command": "generate", "task": "softmax", "path": "softmax.py", "source": "class Model: pass\n", "class_name": "Model", "dsl": "cpp",
    "target": "auto", "track": "pure", "effort": "quick", "budget": None, "timing": True, "compile_contender": True, "out": "/o",
    "model": "builtin", "designer_model": "", "coder_model": "", "base_url": "", "max_cost": None, "max_tokens": None, "record": None,
    "knowledge": True, "store": "", "tune_seconds": 0.0, "kernel": "",
}  # fmt: skip
OLD_MIGRATE = {
    "command": "migrate", "task": "kernel", "path": "kernel.py", "source": "class ModelNew: pass\n", "dsl": "triton", "to": "cpp",
    "target": "auto", "task_path": "", "task_source": "", "class_name": "Model", "inputs": "", "init": "", "golden": "", "track": "pure",
    "timing": True, "compile_contender": True, "out": "/o", "model": "builtin", "base_url": "", "max_cost": None, "max_tokens": None,
    "store": "",
}  # fmt: skip


@pytest.mark.parametrize("stored", [OLD_GENERATE, OLD_MIGRATE], ids=["generate", "migrate"])
def test_a_stored_job_keeps_its_fields(stored: dict[str, Any]) -> None:
    assert JobSpec.from_json(stored).as_json() == stored


@pytest.mark.parametrize(
    "job", [{"command": "verify"}, {"command": "bench"}, {"command": "generate"}, {**OLD_GENERATE, "colour": "red"}]
)
def test_what_cannot_be_repeated_is_refused_in_one_sentence(job: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="this run cannot be resumed"):
        JobSpec.from_json(job)
