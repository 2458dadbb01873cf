"""The nouns of a benchmark: what was asked (`Options`), on which machine (`Machine`), and what became of each task (`Record`).

They are what report.json consists of; docs/report-schema.md explains every field.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kernelwright.core.effort import preset
from kernelwright.core.job import JobSpec, ModelChoice
from kernelwright.core.plugins import DEFAULT_LANGUAGE
from kernelwright.core.task import Task
from kernelwright.core.verdict import Timing, Track

Outcome = Literal[
    "correct",
    "wrong_values",
    "wrong_shape",
    "wrong_dtype",
    "cheating",
    "build_failed",
    "crashed",
    "timed_out",
    "out_of_memory",
    "unusable_task",
    "not_designed",
    "no_kernel",
    "too_large",
    "too_slow",
    "failed",
]
"""A verdict's status; or why there is no verdict: no design was found, no kernel was given, the task is too large for memory or its
reference slower than allowed, or the benchmark itself failed."""

NOT_RUN = ("unusable_task", "too_large", "too_slow")
"""Outcomes that are the task's own doing. They stay in every denominator all the same."""


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Options(Frozen):
    """What was asked for: everything that a record depends on. A run may be resumed only with the same options."""

    dsl: str = DEFAULT_LANGUAGE
    target: str = "auto"
    track: Literal["pure", "hybrid", "auto"] = "pure"
    effort: str = "quick"
    model: str = "builtin"
    contenders: tuple[str, ...] = ("eager", "compile")
    timing: bool = True
    scale: float = 1.0
    max_reference_seconds: float = 5.0
    kernels: str | None = None
    dynamic: str = ""
    """What varies in every task, as `--dynamic` says it; empty: what each task says of itself."""

    def job(self, task: Task, track: Track) -> JobSpec:
        """What is done for one task."""
        return JobSpec(
            task,
            self.dsl,
            track,
            preset(self.effort),
            timing=self.timing,
            compile_contender=self.compiles,
            target=self.target,
            contenders=self.further,
            models=ModelChoice(self.model),
        )

    @property
    def compiles(self) -> bool:
        """Whether torch.compile is a contender."""
        return "compile" in self.contenders

    @property
    def further(self) -> tuple[str, ...]:
        """Contenders beside eager and torch.compile."""
        return tuple(name for name in self.contenders if name not in ("eager", "compile"))


class Machine(Frozen):
    """Where and with what it was measured."""

    cpu: str
    cores: int
    threads: int
    memory_gb: float
    system: str
    python: str
    torch: str
    compiler: str
    kernelwright: str
    commit: str = ""


class Step(Frozen):
    """One step of a kernel's making, from the job's journal."""

    step: str
    seconds: float
    facts: dict[str, Any] = Field(default_factory=dict)


class Record(Frozen):
    """What became of one task. `kernel` and `sketch` are paths below the report's folder."""

    key: str
    suite: str
    level: str = ""
    name: str
    family: str
    path: str = ""
    dsl: str
    track: Literal["pure", "hybrid"]
    outcome: Outcome
    reason: str
    execution: str | None = None
    reference_ms: float | None = None
    scaled: tuple[str, ...] = ()
    timing: Timing | None = None
    library_calls: tuple[str, ...] = ()
    task_flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    kernel: str | None = None
    sketch: str | None = None
    verdict: str | None = None
    lineage: tuple[Step, ...] = ()
    tried: int = 0
    seconds: float = 0.0
    phases: dict[str, float] = Field(default_factory=dict)
    cost_usd: float = 0.0
    finished: str = ""

    @property
    def correct(self) -> bool:
        return self.outcome == "correct"

    @property
    def speedup(self) -> float | None:
        """Over eager, where it was measured."""
        return self.timing.speedup if self.timing else None

    @property
    def speedup_vs_compile(self) -> float | None:
        return self.timing.speedup_vs_compile if self.timing else None
