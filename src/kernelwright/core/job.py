"""The JobSpec noun: everything that was asked for, frozen, from the door to the worker. `generate`, `tune`, `migrate` and `bench` differ
only in what they fill in: a task; a kernel to begin with; a kernel to write in another language.

`as_json` is how a job travels to a worker and lies in the store, so that `resume` does the same again: the texts of task and kernels are
part of it, and a resumed run works on what it began with, also when the files have changed meanwhile. `from_json` reads every job that
an earlier version stored. No key is ever in it: keys come from the environment at every start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kernelwright.core.effort import PRESETS, Effort, preset
from kernelwright.core.errors import ConfigError
from kernelwright.core.kernel import Kernel
from kernelwright.core.plugins import DEFAULT_LANGUAGE
from kernelwright.core.task import Task
from kernelwright.core.verdict import Track

BUILTIN = "builtin"


@dataclass(frozen=True)
class ModelChoice:
    """Who thinks, what that may cost, and whether the answers are recorded. `knowledge`: use and keep what runs have learnt."""

    model: str = BUILTIN
    designer: str = ""
    coder: str = ""
    base_url: str = ""
    max_cost: float | None = None
    max_tokens: int | None = None
    record: str | None = None
    knowledge: bool = True

    @property
    def asked(self) -> bool:
        """Whether any role is a model's."""
        return any(spec not in ("", BUILTIN) for spec in (self.model, self.designer, self.coder))

    @property
    def recording(self) -> Path | None:
        """The recording that is replayed, if one is."""
        for spec in (self.designer, self.coder, self.model):
            if spec.startswith("replay:"):
                return Path(spec.removeprefix("replay:"))
        return None


@dataclass(frozen=True)
class Source:
    """The kernel to migrate. `inputs`, `init` and `golden` say how it is called where no task does; `refusal` why the rules cannot read
    it, once that is known: then a model writes it anew."""

    kernel: Kernel
    inputs: str = ""
    init: str = ""
    golden: str = ""
    refusal: str = ""


@dataclass(frozen=True)
class JobSpec:
    """One job. Only a migration may have no task: then its kernel's sketch becomes one."""

    task: Task | None
    dsl: str = DEFAULT_LANGUAGE
    track: Track = "pure"
    effort: Effort = PRESETS["quick"]
    budget: float | None = None
    timing: bool = True
    compile_contender: bool = True
    target: str = "auto"
    contenders: tuple[str, ...] = ()
    kernel: Kernel | None = None
    """The kernel to begin with; without one, the built-in mind's."""
    source: Source | None = None
    tune_seconds: float = 0.0
    """For the search, beside what the effort allows it."""
    shapes: str = ""
    """The sizes for which variants are sought, and how often they occur (core/task/shape_counts.py)."""
    models: ModelChoice = field(default_factory=ModelChoice)
    out: str | None = None
    store: str = ""

    @property
    def name(self) -> str:
        """What the job is about, in a word."""
        if self.task is not None:
            return self.task.name
        return self.source.kernel.name if self.source is not None else ""

    @property
    def search_seconds(self) -> float:
        """What the search for a faster variant may take."""
        return self.tune_seconds or self.effort.tune_seconds

    def as_json(self) -> dict[str, Any]:
        """Plain data. The names of the fields are those of every run that was ever stored."""
        told: dict[str, Any] = {
            "command": "migrate" if self.source is not None else "generate",
            "task": self.name,
            "target": self.target,
            "track": self.track,
            "timing": self.timing,
            "compile_contender": self.compile_contender,
            "out": self.out,
            "model": self.models.model,
            "base_url": self.models.base_url,
            "max_cost": self.models.max_cost,
            "max_tokens": self.models.max_tokens,
            "store": self.store,
        }
        task = self.task
        if self.source is not None:
            kernel = self.source.kernel
            return told | {
                "path": kernel.path,
                "source": kernel.source,
                "dsl": kernel.dsl,
                "to": self.dsl,
                "task_path": task.path if task else "",
                "task_source": task.source if task else "",
                "class_name": task.class_name if task else "Model",
                **({"dynamic": task.dynamic} if task and task.dynamic else {}),
                "inputs": self.source.inputs,
                "init": self.source.init,
                "golden": self.source.golden,
            }
        assert task is not None
        return told | {
            **task.as_json(),
            "dsl": self.dsl,
            "effort": self.effort.name,
            "budget": self.budget,
            "designer_model": self.models.designer,
            "coder_model": self.models.coder,
            "record": self.models.record,
            "knowledge": self.models.knowledge,
            "tune_seconds": self.tune_seconds,
            **({"shapes": self.shapes} if self.shapes else {}),
            "kernel": self.kernel.source if self.kernel is not None else "",
        }

    @classmethod
    def from_json(cls, job: dict[str, Any]) -> Self:
        """The job of a run; one that another version wrote, with fields unknown here, is refused in one sentence."""
        try:
            return cls._read(job)
        except (KeyError, TypeError) as error:
            raise ConfigError(f"this run cannot be resumed: {error}") from error

    @classmethod
    def _read(cls, job: dict[str, Any]) -> Self:
        left = {key: value for key, value in job.items() if key not in ("command", "task")}
        command = job.get("command")
        if command not in ("generate", "migrate"):
            raise TypeError(f"it is a run of {command}, which is not repeated from the store")
        models = ModelChoice(
            left.pop("model", BUILTIN), left.pop("designer_model", ""), left.pop("coder_model", ""), left.pop("base_url", ""),
            left.pop("max_cost", None), left.pop("max_tokens", None), left.pop("record", None), left.pop("knowledge", True),
        )  # fmt: skip
        path, text, dsl = left.pop("path"), left.pop("source"), left.pop("dsl", DEFAULT_LANGUAGE)
        named = {"class_name": left.pop("class_name", "Model"), "dynamic": left.pop("dynamic", "")}
        if command == "migrate":
            kernel = Kernel.from_source(text, path=path, dsl=dsl)
            source = Source(kernel, left.pop("inputs", ""), left.pop("init", ""), left.pop("golden", ""))
            said = left.pop("task_source", ""), left.pop("task_path", "")
            task = Task.from_source(said[0], path=said[1], **named) if said[0] else None
            return cls(task, left.pop("to"), source=source, models=models, **left)
        effort = preset(left.pop("effort", "quick"))
        begin = left.pop("kernel", "")
        task = Task.from_source(text, path=path, **named)
        return cls(
            task, dsl, effort=effort, kernel=Kernel.from_source(begin, dsl=dsl) if begin else None, models=models, **left
        )
