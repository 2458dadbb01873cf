"""A job from its start to its result: the built-in mind alone, or the whole team with the built-in kernel as its first seed.

1. `best_draft`: the built-in mind's drafts, judged in the order of their promise until enough correct ones were timed.
2. With models, `team.py` goes on from there; without, that is the result.
3. The best kernel so far is on disk at every moment, every step is in the journal before the next one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.agents import attempts
from kernelwright.agents.attempts import Attempt
from kernelwright.agents.drafts import Draft, Drafter
from kernelwright.agents.folder import JobFolder
from kernelwright.agents.journal import Journal
from kernelwright.agents.memory import Memory
from kernelwright.agents.minds import Minds
from kernelwright.agents.watch import Watch
from kernelwright.agents.workbench import Job, Workbench
from kernelwright.errors import KernelwrightError
from kernelwright.judge import Judge, offdevice
from kernelwright.judge.verdict import Verdict

__all__ = ["Generated", "Job", "NothingFound", "generate"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class Generated:
    """The result: the best draft and what the judge said of it; `tried` counts the kernels that were judged; `ended` says why the
    team stopped, `author` who wrote the kernel ("builtin", "rules" for a model's sketch lowered by rule, "coder")."""

    draft: Draft
    verdict: Verdict
    tried: int
    seconds: float
    ended: str = ""
    author: str = "builtin"


class NothingFound(KernelwrightError):
    """No kernel came out of a run, with the reason."""

    exit_code = 1


def generate(
    job: Job,
    judge: Judge,
    drafter: Drafter,
    folder: JobFolder,
    say: Say = lambda line: None,
    *,
    minds: Minds | None = None,
    watch: Watch | None = None,
) -> Generated:
    """Run the job. The verdict of the result may be a rejection: then nothing better was found."""
    started = time.monotonic()
    watch = watch or Watch(say)
    minds = minds or Minds()
    journal = Journal(folder, minds.store, minds.run)
    bench = Workbench(job, judge, drafter, minds.memory or Memory())
    journal.step("start", job.task.name, {"task": job.task.source}, dsl=job.dsl, track=job.track, effort=job.effort.name)
    best: Attempt | None = None
    try:
        if minds.designer is None or minds.coder is None:
            best, ended = _alone(bench, journal, folder, watch)
            tried = len(bench.verdicts)
        else:
            best, ended = _with_team(bench, journal, folder, watch, minds)
            tried = len(bench.verdicts)
    finally:
        found = best is not None and best.verdict.ok
        journal.finish("done" if found else "failed", best.kernel if best is not None and found else None)
    draft = Draft(best.sketch, best.kernel)
    return Generated(draft, best.verdict, tried, time.monotonic() - started, ended, best.author)


def _alone(bench: Workbench, journal: Journal, folder: JobFolder, watch: Watch) -> tuple[Attempt, str]:
    """The built-in mind: its best draft, or the kernel that was given, and what tuning makes of it."""
    job = bench.job
    best = _given(bench, journal, folder, watch) if job.kernel else best_draft(bench, journal, folder, watch)[0]
    if not (job.tune_seconds and job.timing and best.verdict.timing is not None):
        return best, ""
    from kernelwright.search.tune import tune

    sketches = (best.sketch,) if job.kernel and best.sketch else ()
    tuned = tune(bench, journal, folder, watch, best, seconds=job.tune_seconds, sketches=sketches)
    found = f"tuned to {tuned.gain:.2f}x the first kernel" if tuned.gain > 1 else "no gain found by tuning"
    return tuned.attempt, f"{found}: {tuned.raced} variants raced, {tuned.ended}"


def _given(bench: Workbench, journal: Journal, folder: JobFolder, watch: Watch) -> Attempt:
    """The kernel that the run was started with, judged."""
    from kernelwright.dsl.kernel import Kernel

    kernel = Kernel.from_source(bench.job.kernel, dsl=bench.job.dsl)
    watch.say("judging the given kernel")
    verdict = bench.judged(kernel.source)
    journal.step(
        "judged",
        f"the given kernel: {verdict.reason}",
        {"kernel": kernel.source},
        verdict.model_dump_json(),
        status=str(verdict.status),
    )
    folder.keep(kernel.source, kernel.sketch or "", verdict)
    return Attempt(1, 0, "", kernel.sketch or "", kernel.source, verdict, None)


def best_draft(bench: Workbench, journal: Journal, folder: JobFolder, watch: Watch) -> tuple[Attempt, list[Attempt]]:
    """The built-in mind's best kernel, and all that were judged. A rejected draft is put down with its reason, and the next tried."""
    job = bench.job
    watch.say("designing")
    if job.timing and offdevice.setting(job.dsl, job.target) is None:
        bench.judge.prepare(job.task, compile_contender=job.compile_contender, contenders=job.contenders)
    drafts = bench.drafts()
    journal.step("designed", f"{len(drafts)} drafts of the built-in mind", result=drafts[0].sketch, notes=list(drafts[0].notes))
    best: Attempt | None = None
    judged: list[Attempt] = []
    for number, draft in enumerate(_distinct(drafts), start=1):
        enough = sum(attempt.verdict.ok for attempt in judged) >= job.effort.measured
        if best is not None and (enough or (job.budget is not None and bench.seconds > job.budget)):
            break
        watch.say(f"judging draft {number} of {len(drafts)}")
        verdict = bench.judged(draft.kernel)
        journal.step(
            "judged",
            f"draft {number}: {verdict.reason}",
            {"sketch": draft.sketch, "kernel": draft.kernel},
            verdict.model_dump_json(),
            status=str(verdict.status),
            speedup=verdict.timing.speedup if verdict.timing else None,
            author="builtin",
        )
        attempt = Attempt(number, 0, "builtin", draft.sketch, draft.kernel, verdict, True)
        judged.append(attempt)
        if best is None or attempts.better(verdict, best.verdict):
            best = attempt
            folder.keep(draft.kernel, draft.sketch, verdict)
        watch.say(f"draft {number}: {verdict.status}")
    assert best is not None, "a designer that has no draft raises"
    return best, judged


def _with_team(bench: Workbench, journal: Journal, folder: JobFolder, watch: Watch, minds: Minds) -> tuple[Attempt, str]:
    from kernelwright.agents.librarian import Librarian
    from kernelwright.agents.team import Team

    assert minds.designer is not None
    assert minds.coder is not None
    librarian = Librarian(bench, journal, minds.store, minds.knowledge)

    def seed() -> Attempt:
        return best_draft(bench, journal, folder, watch)[0]

    def keep(attempt: Attempt) -> None:
        folder.keep(attempt.kernel, attempt.sketch, attempt.verdict)

    team = Team(bench, minds.designer, minds.coder, journal, librarian, seed, keep, watch)
    decision = team.run()
    best = _here(bench, team) if team.best is not None else None
    if best is None:
        if not team.tried:
            raise NothingFound(f"{bench.job.task.path}: no kernel was found: {decision.reason}")
        best = team.tried[-1]
    keep(best)
    if best.verdict.ok and best.design > 0:
        librarian.learn_win(team.brief, best)
    return best, decision.reason


def _here(bench: Workbench, team: object) -> Attempt | None:
    """The best attempt by a verdict of this machine. Verdicts from a recording led the replay; the result is judged anew."""
    from kernelwright.agents.team import Team

    assert isinstance(team, Team)
    ranked = sorted(
        (a for a in team.tried if a.verdict.ok), key=lambda a: (a is not team.best, -(attempts.speed(a.verdict) or 0))
    )
    for attempt in ranked:
        if attempt.kernel not in bench.replayed:
            return attempt
        verdict = bench.judged_here(attempt.kernel)
        if verdict.ok:
            return Attempt(
                attempt.number, attempt.design, attempt.author, attempt.sketch, attempt.kernel, verdict, attempt.sketch_right
            )
    return None


def _distinct(drafts: list[Draft]) -> list[Draft]:
    """The same code is not judged twice."""
    return list({draft.kernel: draft for draft in drafts}.values())
