"""The Conductor's short form for the built-in minds: drafts in, the best judged kernel out.

1. Ask the Drafter for alternatives, best guess first.
2. Have them judged in that order. A draft that is not correct is put down in the journal with the reason, and the next one is tried.
3. When as many correct ones were timed as the effort wants (or the budget is used), the fastest is the result.

Every step is journalled before the next one begins, and the best kernel so far is on disk at every moment.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.agents.drafts import Draft, Drafter, Request
from kernelwright.agents.effort import Effort
from kernelwright.agents.folder import JobFolder
from kernelwright.judge import Judge
from kernelwright.judge.verdict import Track, Verdict
from kernelwright.task import Task

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    task: Task
    dsl: str
    track: Track
    effort: Effort
    budget: float | None = None
    timing: bool = True
    compile_contender: bool = True


@dataclass(frozen=True)
class Generated:
    """The result: the best draft and what the judge said of it; `tried` counts the drafts that were judged."""

    draft: Draft
    verdict: Verdict
    tried: int
    seconds: float


def generate(job: Job, judge: Judge, drafter: Drafter, folder: JobFolder, say: Say = lambda line: None) -> Generated:
    """Run the job. The verdict of the result may be a rejection: then nothing better was found."""
    started = time.monotonic()
    folder.journal("start", task=job.task.name, task_hash=job.task.hash, dsl=job.dsl, track=job.track, effort=job.effort.name)
    say("designing")
    drafts = drafter.drafts(job.task, Request(job.dsl, job.track, job.effort.name, job.effort.drafts))
    folder.journal("designed", drafts=[_digest(draft.kernel) for draft in drafts], seconds=round(time.monotonic() - started, 3))
    best: Generated | None = None
    timed = 0
    for number, draft in enumerate(_distinct(drafts), start=1):
        if best is not None and (timed >= job.effort.measured or _used_up(job, started)):
            break
        say(f"judging draft {number} of {len(drafts)}")
        verdict = judge.verify(
            job.task,
            draft.kernel,
            dsl=job.dsl,
            track=job.track,
            timing=job.timing,
            compile_contender=job.compile_contender,
            budget_s=job.effort.judge_seconds,
        )
        folder.journal(
            "judged", kernel=_digest(draft.kernel), status=verdict.status, reason=verdict.reason, ms=_milliseconds(verdict)
        )
        timed += verdict.ok
        candidate = Generated(draft, verdict, number, time.monotonic() - started)
        if best is None or _better(candidate, best):
            best = candidate
            folder.keep(draft.kernel, draft.sketch, verdict)
        say(f"draft {number}: {verdict.status}")
    assert best is not None, "a designer that has no draft raises"
    folder.journal("done", kernel=_digest(best.draft.kernel), status=best.verdict.status)
    return best


def _distinct(drafts: list[Draft]) -> list[Draft]:
    """The same code is not judged twice."""
    return list({draft.kernel: draft for draft in drafts}.values())


def _better(a: Generated, b: Generated) -> bool:
    if a.verdict.ok != b.verdict.ok:
        return a.verdict.ok
    if a.verdict.timing and b.verdict.timing:
        # Paired ratios over one contender compare fairly over time on a noisy machine; milliseconds do not.
        return a.verdict.timing.speedup > b.verdict.timing.speedup
    return False


def _used_up(job: Job, started: float) -> bool:
    return job.budget is not None and time.monotonic() - started > job.budget


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _milliseconds(verdict: Verdict) -> float | None:
    return verdict.timing.kernel_ms if verdict.timing else None
