"""What a browser may ask for, bounded and typed; and the JobSpec that it becomes, the same that the command line makes.

No form names a path of this machine: tasks and kernels come as text, or by the name of a suite's task. A model is the built-in mind, the
one of this server's configuration, or a provider's by name; an address or a folder would let a stranger send our key to it, or write there.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kernelwright import suites
from kernelwright.agents.task_from_code import constructor, draw, split_arguments, task_from_text
from kernelwright.compiler.language import installed, language
from kernelwright.core import config
from kernelwright.core import effort as efforts
from kernelwright.core.errors import ConfigError, TaskError
from kernelwright.core.job import BUILTIN, JobSpec, ModelChoice, Source
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.task.task import defines, parse
from kernelwright.judge import offdevice
from kernelwright.web.privacy import KNOWN_SCHEMES, shown_model

MOST_TEXT = 1_000_000
LONGEST = 24 * 3600.0
PLAIN = r"^[A-Za-z0-9_.-]{1,60}$"

Code = Annotated[str, Field(max_length=MOST_TEXT)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")]
Word = Annotated[str, Field(pattern=PLAIN)]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskForm(Form):
    """A task: the text of a task file; or a module with `inputs` that says what it is called with; or the name of a suite's task."""

    name: Name = "task"
    source: Code = ""
    class_name: Name = "Model"
    inputs: Annotated[str, Field(max_length=1000)] = ""
    init: Annotated[str, Field(max_length=1000)] = ""
    suite: Annotated[str, Field(pattern=r"^([a-z]+/[A-Za-z0-9_]{1,80})?$")] = ""

    def task(self) -> Task:
        """The task; TaskError with its line where the text is none."""
        if self.suite:
            found = suites.find(self.suite)
            if found is None:
                raise TaskError(self.suite, "there is no such suite")
            return Task.from_source(found.source, path=self.suite)
        path = f"{self.name}.py"
        if self.inputs and not defines(parse(self.source, path), "get_inputs"):
            text = task_from_text(self.source, self.class_name, self.inputs, self.init, path=path)
            return Task.from_source(text, path=path)
        return Task.from_source(self.source, path=path, class_name=self.class_name)


class JobForm(Form):
    """What is to be made of a task or a kernel."""

    command: Literal["generate", "tune", "migrate"] = "generate"
    task: TaskForm | None = None
    kernel: Code = ""
    kernel_dsl: Word | None = None
    dsl: Word = "cpp"
    target: Word = "auto"
    track: Literal["pure", "hybrid"] = "pure"
    effort: efforts.EffortName = "quick"
    budget: Annotated[str, Field(pattern=r"^([0-9.]{1,8}[smh]?)?$")] = ""
    model: Annotated[str, Field(max_length=120)] = BUILTIN
    max_cost: Annotated[float | None, Field(gt=0, le=10_000)] = None
    max_tokens: Annotated[int | None, Field(gt=0, le=1_000_000_000)] = None
    timing: bool = True
    compile: bool = True

    def job(self, *, configured: str, store: str) -> JobSpec:
        """The job; an error of ours, in one sentence, where it makes no sense."""
        task = self.task.task() if self.task is not None and (self.task.source or self.task.suite) else None
        language(self.dsl)
        models = self._models(configured)
        seconds = self._seconds()
        common = JobSpec(
            task, self.dsl, self.track, timing=self.timing, compile_contender=self.compile, models=models, store=store
        )
        if self.command == "migrate":
            return self._migration(common)
        if task is None:
            raise ConfigError("there is no task: paste a module, drop a file, or choose one of a suite")
        if self.command == "tune":
            if not offdevice.timed(self.dsl):
                raise ConfigError(f"{self.dsl} kernels are tuned on their device, which this machine does not have")
            kernel = Kernel.from_source(self.kernel, dsl=self.dsl) if self.kernel.strip() else None
            return replace(common, kernel=kernel, tune_seconds=seconds or 60.0)
        offdevice.require_device(self.dsl, self.target)
        return replace(common, target=self.target, effort=efforts.preset(self.effort), budget=seconds)

    def _migration(self, common: JobSpec) -> JobSpec:
        if not self.kernel.strip():
            raise ConfigError("there is no kernel to migrate: paste one, or drop its file")
        offdevice.require_device(self.dsl, self.target)
        name = self.task.name if self.task is not None else "kernel"
        kernel = Kernel.from_source(self.kernel, path=f"{name}.py", dsl=self.kernel_dsl)
        if kernel.dsl not in installed() and kernel.sketch is None:
            raise ConfigError(f"no kernel language was recognised in this file; choose one of {', '.join(installed())}")
        inputs, init = (self.task.inputs, self.task.init) if self.task is not None and common.task is None else ("", "")
        for item in split_arguments(inputs):
            draw(item)
        source = Source(kernel, inputs, constructor(init) if init.strip() else "")
        return replace(common, target=self.target, source=source)

    def _seconds(self) -> float | None:
        found = efforts.seconds(self.budget) if self.budget else None
        if found is not None and found > LONGEST:
            raise ConfigError("a budget is at most 24h")
        return found

    def _models(self, configured: str) -> ModelChoice:
        spec = configured if self.model == shown_model(configured) else self.model
        if spec != configured and spec != BUILTIN:
            scheme, _, name = spec.partition(":")
            if scheme not in KNOWN_SCHEMES or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,80}", name):
                raise ConfigError(
                    f"the model {self.model!r} cannot be chosen here; write openai:NAME or anthropic:NAME, or set another as the "
                    "model of this server's configuration"
                )
        settings = config.load().settings
        migrating = self.command == "migrate"
        return ModelChoice(
            spec,
            "" if migrating or spec != configured else settings.designer_model,
            "" if migrating or spec != configured else settings.coder_model,
            settings.base_url,
            self.max_cost if self.max_cost is not None else settings.max_cost,
            self.max_tokens if self.max_tokens is not None else settings.max_tokens,
        )


class JudgeForm(Form):
    """A kernel to be judged against a task."""

    task: TaskForm
    kernel: Code
    dsl: Word | None = None
    target: Word = "auto"
    track: Literal["pure", "hybrid"] = "pure"
    timing: bool = True


class DesignForm(Form):
    """A task to be designed for a language."""

    task: TaskForm
    dsl: Word = "cpp"
    target: Word = "auto"


class SketchForm(Form):
    """A sketch to be checked; with a task, to be run against it."""

    sketch: Code
    task: TaskForm | None = None
    dsl: Word = "cpp"
    target: Word = "auto"
    track: Literal["pure", "hybrid"] = "pure"
