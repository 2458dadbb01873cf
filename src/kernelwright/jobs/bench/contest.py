"""One entry in, one record out: look at the task, make or take a kernel, have it judged and timed. Never raises for a task's sake.

`Contest` holds what all tasks of a run share (judge, drafter, options, folders). Everything that can go wrong with a single task
becomes the outcome of its record; only a full disk or an interrupt ends the run.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kernelwright.core.effort import preset
from kernelwright.core.errors import KernelFileError, KernelwrightError, TaskError
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.verdict import Track, Verdict
from kernelwright.jobs.bench.collect import Entry
from kernelwright.jobs.bench.kernels import Kernels
from kernelwright.jobs.bench.model_budget import Models, paid
from kernelwright.jobs.bench.probe import probe
from kernelwright.jobs.bench.record import Options, Outcome, Record, Step
from kernelwright.jobs.generate import generate
from kernelwright.judge import Judge
from kernelwright.run.drafts import Drafter
from kernelwright.run.folder import JobFolder, open_folder

REASON_LENGTH = 600


@dataclass(frozen=True)
class Contest:
    """What the tasks of a run have in common. `out` is the report's folder; each task has one of its own below `out/tasks`."""

    judge: Judge
    drafter: Drafter
    options: Options
    out: Path
    models: Models
    kernels: Kernels | None = None

    def enter(self, entry: Entry) -> Record:
        """What becomes of one task."""
        started = time.monotonic()
        folder = open_folder(self.out / "tasks" / _place(entry.key), entry.name, self.options.dsl)
        fields: dict[str, Any] = {}
        try:
            fields = self._enter(entry, folder)
        except TaskError as error:
            fields = _outcome("unusable_task", error.reason)
        except KernelFileError as error:
            fields = _outcome("no_kernel", str(error))
        except KernelwrightError as error:
            fields = _outcome("failed", str(error))
        lineage = _lineage(folder)
        designed = [("design", step.seconds) for step in lineage[:2] if step.step == "designed"]
        common = {
            "key": entry.key,
            "suite": entry.suite,
            "level": entry.level,
            "name": entry.name,
            "family": entry.family,
            "path": entry.path,
            "dsl": self.options.dsl,
            "track": "hybrid" if self.options.track == "hybrid" else "pure",
            "seconds": round(time.monotonic() - started, 2),
            "lineage": lineage,
            "cost_usd": paid(lineage),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        phases = {"look": fields.pop("look", 0.0), **dict(designed), **fields.pop("phases", {})}
        return Record(**{**common, **fields}, phases=phases)

    def _enter(self, entry: Entry, folder: JobFolder) -> dict[str, Any]:
        if entry.source is None:
            return _outcome("unusable_task", entry.problem)
        task = Task.from_source(entry.source, path=entry.path, class_name=entry.class_name, dynamic=self.options.dynamic)
        kernel = self.kernels.find(entry) if self.kernels else None
        if self.kernels and kernel is None:
            return _outcome("no_kernel", f"{self.kernels.folder} has no kernel of this name")
        started = time.monotonic()
        with self.judge.exclusive.sharing():
            found = probe(self.judge.server, task, scale=self.options.scale, max_seconds=self.options.max_reference_seconds)
        look = round(time.monotonic() - started, 3)
        seen = {"reference_ms": found.reference_ms, "scaled": found.scaled, "look": look}
        if found.outcome is not None or found.task is None:
            return {**seen, **_outcome(found.outcome or "failed", found.reason)}
        (folder.path / "task.py").write_text(found.task.source)
        if self.options.timing:
            options = self.options
            self.judge.prepare(
                found.task, options.dsl, options.target, compile_contender=options.compiles, contenders=options.further
            )
        if kernel is not None:
            return {**seen, **self._judge(found.task, kernel, folder)}
        return {**seen, **self._generate(found.task, folder, entry.key)}

    def _judge(self, task: Task, kernel: Path, folder: JobFolder) -> dict[str, Any]:
        """A kernel that somebody else made."""
        verdict: Verdict | None = None
        file = Kernel.from_source(kernel.read_text(errors="replace"), path=str(kernel), dsl=self.options.dsl)
        for track in self._tracks():
            verdict = self.judge.verify(
                task,
                file,
                target=self.options.target,
                track=track,
                timing=self.options.timing,
                compile_contender=self.options.compiles,
                contenders=self.options.further,
                budget_s=preset(self.options.effort).judge_seconds,
            )
            if verdict.ok:
                break
        assert verdict is not None
        folder.keep(file, "", verdict)
        folder.journal("judged", kernel=str(kernel), status=verdict.status, reason=verdict.reason)
        return self._judged(verdict, folder, 1)

    def _generate(self, task: Task, folder: JobFolder, key: str) -> dict[str, Any]:
        """A kernel of ours; with track auto, the library is allowed only where nothing pure was found."""
        fields: dict[str, Any] = {}
        for track in self._tracks():
            job = self.options.job(task, track)
            try:
                result = generate(job, self.judge, self.drafter, folder, models=self.models.of(key, self.options.dsl))
            except TaskError as error:
                fields = {**_outcome("unusable_task", error.reason), "track": track}
            except KernelwrightError as error:
                fields = {**_outcome("not_designed", str(error)), "track": track}
            else:
                fields = self._judged(result.verdict, folder, result.tried)
                if result.verdict.ok:
                    break
        return fields

    def _tracks(self) -> tuple[Track, ...]:
        every: tuple[Track, ...] = ("pure", "hybrid")
        return every if self.options.track == "auto" else (self.options.track,)

    def _judged(self, verdict: Verdict, folder: JobFolder, tried: int) -> dict[str, Any]:
        def below(path: Path) -> str | None:
            return str(path.relative_to(self.out)) if path.exists() and path.stat().st_size else None

        return {
            "outcome": str(verdict.status),
            "reason": verdict.reason[:REASON_LENGTH],
            "track": verdict.track,
            "execution": verdict.execution,
            "timing": verdict.timing,
            "library_calls": verdict.library_calls,
            "task_flags": verdict.task_flags,
            "warnings": verdict.warnings,
            "phases": verdict.phases,
            "kernel": below(folder.kernel),
            "sketch": below(folder.sketch),
            "verdict": below(folder.verdict),
            "tried": tried,
        }


def lost(entry: Entry, options: Options) -> Record:
    """The record of a task that took the whole benchmark down before, and is not tried again."""
    track: Literal["pure", "hybrid"] = "hybrid" if options.track == "hybrid" else "pure"
    return Record(
        key=entry.key,
        suite=entry.suite,
        level=entry.level,
        name=entry.name,
        family=entry.family,
        path=entry.path,
        dsl=options.dsl,
        track=track,
        outcome="failed",
        reason="the benchmark was killed twice while it worked on this task",
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _outcome(outcome: Outcome, reason: str) -> dict[str, Any]:
    return {"outcome": outcome, "reason": reason[:REASON_LENGTH] or "no reason was given"}


def _place(key: str) -> str:
    """A key as a path below the folder of tasks: no part of it may lead out of there."""
    parts = [re.sub(r"[^A-Za-z0-9_.~-]+", "-", part).strip(".") or "-" for part in key.split("/")]
    return "/".join(parts)


def _lineage(folder: JobFolder) -> tuple[Step, ...]:
    """The steps of this run from the job's journal, with seconds since its start."""
    path = folder.path / "journal.jsonl"
    rows: list[dict[str, Any]] = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row.get("run") == folder.run:
            rows.append(row)
    if not rows:
        return ()
    first = float(rows[0].get("time", 0.0))
    steps = []
    for row in rows:
        facts = {name: value for name, value in row.items() if name not in ("run", "time", "step")}
        steps.append(Step(step=str(row.get("step")), seconds=round(float(row.get("time", first)) - first, 3), facts=facts))
    return tuple(steps)
