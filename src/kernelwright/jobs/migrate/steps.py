"""A migration from its start to its result, each step in the journal before the next begins.

1. The sketch: carried by the kernel, or lifted from it (`lifting.py`). What cannot be lifted is refused, or left to models (`written.py`).
2. The reference: the user's task, or a task made of the sketch.
3. The source kernel before the judge (or recorded outputs against the sketch): does the sketch say what the source does?
4. The sketch for the new device and language, lowered; candidates before the judge until one is correct. Where speeds are measured
   and a re-scheduled sketch competes with the original one, the faster of both is the result.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.job import JobSpec, Source
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.verdict import Track, Verdict
from kernelwright.jobs.migrate import device_rules, reference, worker
from kernelwright.jobs.migrate.source import Carried, carried
from kernelwright.jobs.migrate.worker import Candidate
from kernelwright.judge import Judge, Status, offdevice
from kernelwright.run import attempts
from kernelwright.run.drafts import Drafter
from kernelwright.run.folder import JobFolder
from kernelwright.run.journal import Journal
from kernelwright.run.memo import Memory
from kernelwright.run.observer import Observer
from kernelwright.run.workbench import Workbench
from kernelwright.sketch.nodes import LibraryCall
from kernelwright.sketch.parse import parse


class NotMigrated(KernelwrightError):
    """No kernel came out of a migration, with the reason."""

    exit_code = 1


@dataclass(frozen=True)
class Tools:
    """What a migration works with."""

    judge: Judge
    drafter: Drafter
    folder: JobFolder
    journal: Journal
    memory: Memory
    observer: Observer
    store: Any = None
    run: Any = None


@dataclass(frozen=True)
class Migrated:
    """The result. `source` is the verdict on the kernel that was migrated, None where recorded outputs stood for it."""

    kernel: Kernel
    sketch: str
    verdict: Verdict
    source: Verdict | None
    chosen: Candidate
    origin: str
    reference: str
    notes: tuple[str, ...]
    seconds: float


def migrate(job: JobSpec, tools: Tools) -> Migrated:
    """Run the job. The verdict of the result may be a rejection: then nothing better came out."""
    from kernelwright.jobs.migrate import report

    started = time.monotonic()
    journal, observer = tools.journal, tools.observer
    source = source_of(job)
    kernel = source.kernel
    journal.step(
        "start", f"{kernel.name}: {kernel.dsl} to {job.dsl}", {"kernel": kernel.source}, dsl=job.dsl, target=job.target
    )
    notes: list[str] = []
    found, origin, init = carried(kernel), "carried", "[]"
    if not found.texts:
        from kernelwright.jobs.migrate.lifting import Unliftable, lifted

        observer.say("lifting")
        try:
            lift = lifted(job, tools)
        except Unliftable as refusal:
            from kernelwright.jobs.migrate.written import written

            return written(job, tools, refusal, started)
        found, origin = Carried(lift.texts, ()), "lifted"
        notes += lift.notes
        inputs, init = lift.inputs, lift.init
        kernel = Kernel.from_source(kernel.source + lift.wrapper, path=kernel.path, dsl=kernel.dsl)
    else:
        inputs = (source.inputs,) if source.inputs else ()
    sketches = [parse(text) for text in found.texts]
    journal.step("sketch", f"the sketch was {origin}", {"kernel": source.kernel.source}, found.texts[0], notes=notes)
    names = _target(job.dsl, job.target)
    target_notes = device_rules.adapted(sketches, names)
    notes += target_notes
    track: Track = "hybrid" if any(isinstance(step, LibraryCall) for s in sketches for step in s.steps) else job.track
    task, against = job.task, "the task" if job.task is not None else "the sketch, as a task"
    timing = job.timing and job.task is not None
    if job.timing and job.task is None:
        notes.append("not timed: without a task there is no PyTorch module to be faster than")
    if task is None:
        task, before, found = _without_task(job, tools, track, kernel, found, inputs, init, notes, foreign=origin == "lifted")
    else:
        before = judged_source(job, tools, task, track, kernel, found.texts, notes)
    observer.say("re-scheduling and lowering")
    make = _offer(job, tools, task if job.task is not None else None, found, track, names)
    if not make.candidates:
        raise NotMigrated(f"{kernel.path}: {'; '.join(make.refusals)}")
    notes += make.refusals
    bench = Workbench(replace(job, task=task, track=track, timing=timing), tools.judge, tools.drafter, tools.memory)
    if timing:
        tools.judge.prepare(task, job.dsl, job.target, compile_contender=job.compile_contender)
    chosen, verdict = _best(bench, tools, make.candidates, notes)
    made = Migrated(
        chosen.kernel,
        chosen.sketch,
        verdict,
        before,
        chosen,
        origin,
        against,
        tuple(notes),
        round(time.monotonic() - started, 3),
    )
    write(tools.folder, "migration.md", report.markdown(job, made, found.texts[0]))
    return made


def source_of(job: JobSpec) -> Source:
    """What is migrated."""
    assert job.source is not None
    return job.source


def _without_task(
    job: JobSpec,
    tools: Tools,
    track: Track,
    kernel: Kernel,
    found: Carried,
    inputs: tuple[str, ...],
    init: str,
    notes: list[str],
    *,
    foreign: bool,
) -> tuple[Task, Verdict | None, Carried]:
    """The sketch as a task, and the source's verdict. A source that takes less than we thought of (other sizes, tensors that are not
    contiguous) is held to what it takes, and the report says so."""
    contiguous = False
    while True:
        task = _as_task(job, tools, found, inputs, init, contiguous)
        try:
            before = judged_source(job, tools, task, "source" if foreign else track, kernel, found.texts, notes)
            if foreign and before is not None and before.library_calls:
                notes.append(f"around its launches the source lets torch compute {', '.join(before.library_calls)}")
            return task, before, found
        except NotMigrated as error:
            if foreign and not contiguous and "not contiguous" in str(error):
                contiguous = True
                notes.append("the source takes contiguous tensors only, so both were judged with those")
            elif foreign and len(found.texts) > 1:
                notes.append(f"judged at one shape only: {error}")
                found = Carried(found.texts[:1], found.state)
            else:
                raise


def _as_task(job: JobSpec, tools: Tools, found: Carried, inputs: tuple[str, ...], init: str, contiguous: bool) -> Task:
    """The sketch as a task, kept beside the result."""
    name = source_of(job).kernel.name
    text = reference.task_text(name, found.sketches, found.state, inputs, init, contiguous=contiguous)
    write(tools.folder, "task.py", text)
    return Task.from_source(text, path=f"{name}_as_task.py")


def judged_source(
    job: JobSpec, tools: Tools, task: Task, track: Track, kernel: Kernel, texts: tuple[str, ...], notes: list[str]
) -> Verdict | None:
    """The source kernel's verdict. Without a task it must be correct, else the sketch is not what the kernel computes."""
    if source_of(job).golden:
        from kernelwright.jobs.migrate import golden

        cases = golden.compare(tools.drafter, source_of(job).golden, texts)
        tools.journal.step("golden", f"the sketch gives the recorded outputs in {cases} cases", {"sketch": texts[0]})
        notes.append(
            f"the source was not run: {cases} recorded cases of {source_of(job).golden} stand for it, and the sketch reproduces them"
        )
        return None
    tools.observer.say("judging the source kernel")
    alone = replace(job, task=task, dsl=kernel.dsl, track=track, timing=False, compile_contender=False, target="auto")
    verdict = Workbench(alone, tools.judge, tools.drafter, tools.memory).judged(kernel)
    facts = {"status": str(verdict.status), "author": "source"}
    tools.journal.step(
        "judged", f"the source kernel: {verdict.reason}", {"kernel": kernel.source}, verdict.model_dump_json(), **facts
    )
    if verdict.ok:
        return verdict
    if job.task is not None:
        notes.append(f"the source kernel itself is rejected ({verdict.status}): {verdict.reason}")
    elif verdict.status in (Status.timed_out, Status.out_of_memory):
        raise NotMigrated(f"{kernel.path}: the source kernel could not be compared with its sketch: {verdict.reason}")
    else:
        raise NotMigrated(f"{kernel.path}: the kernel does not do what its sketch says ({verdict.status}): {verdict.reason}")
    return verdict


def _offer(job: JobSpec, tools: Tools, task: Task | None, found: Carried, track: Track, target: str) -> worker.Offer:
    def make() -> dict[str, Any]:
        return worker.plan(tools.drafter, task, dsl=job.dsl, target=target, texts=found.texts, state=found.state, track=track)

    key = {"sketches": list(found.texts), "dsl": job.dsl, "target": target, "task": task.hash if task else ""}
    made = worker.offer(tools.memory.once("offer", key, make)[0], job.dsl)
    for candidate in made.candidates:
        tools.journal.step(
            "scheduled",
            f"{candidate.kind}: {'; '.join(candidate.changes) or 'nothing changed'}",
            {"source": found.texts[0]},
            candidate.sketch,
        )
    return made


def _best(bench: Workbench, tools: Tools, candidates: tuple[Candidate, ...], notes: list[str]) -> tuple[Candidate, Verdict]:
    """The first correct candidate; the fastest, where all of them are measured. A rejected one is told."""
    best: tuple[Candidate, Verdict] | None = None
    for number, candidate in enumerate(candidates, start=1):
        if best is not None and best[1].ok and best[1].timing is None:
            break
        tools.observer.say(f"judging candidate {number} of {len(candidates)} ({candidate.kind})")
        verdict = bench.judged(candidate.kernel)
        tools.journal.step(
            "judged",
            f"{candidate.kind}: {verdict.reason}",
            {"sketch": candidate.sketch, "kernel": candidate.kernel.source},
            verdict.model_dump_json(),
            status=str(verdict.status),
            speedup=verdict.timing.speedup if verdict.timing else None,
            author="builtin",
        )
        if not verdict.ok:
            notes.append(f"{candidate.kind}: {verdict.status}: {verdict.reason}")
        if best is None or attempts.better(verdict, best[1]):
            if best is not None and best[1].ok:
                notes.append(f"the {candidate.kind} sketch is faster than the {best[0].kind} one")
            best = (candidate, verdict)
            tools.folder.keep(candidate.kernel, candidate.sketch, verdict)
    assert best is not None
    if best[0].kind == "kept" and any(c.kind == "rescheduled" for c in candidates):
        refused = next(c for c in candidates if c.kind == "rescheduled")
        told = tuple(f"tried and left: {change}" for change in refused.changes)
        best = (replace(best[0], kept=(*best[0].kept, *told)), best[1])
    return best


def _target(dsl: str, target: str) -> str:
    """The name of the (first) target that a sketch is scheduled for."""
    setting = offdevice.setting(dsl, target)
    if setting is None:
        return "cpu"
    return setting.targets[0].name


def write(folder: JobFolder, name: str, text: str) -> None:
    """A file beside the result."""
    try:
        (folder.path / name).write_text(text)
    except OSError as error:
        raise KernelwrightError(f"{folder.path / name}: cannot write: {error.strerror or error}") from error
