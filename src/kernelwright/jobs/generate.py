"""A job from its start to its result: the built-in mind alone, or the whole team with the built-in kernel as its first seed.

1. `best_draft`: the built-in mind's drafts, judged in the order of their promise until enough correct ones were timed.
2. With models, `team.py` goes on from there; without, that is the result.
3. The best kernel so far is on disk at every moment, every step is in the journal before the next one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from kernelwright.agents.team_models import TeamModels
from kernelwright.core.errors import KernelwrightError
from kernelwright.core.job import JobSpec
from kernelwright.core.verdict import Verdict
from kernelwright.judge import Judge
from kernelwright.run import attempts
from kernelwright.run.attempts import Attempt
from kernelwright.run.drafts import Draft, Drafter
from kernelwright.run.folder import JobFolder
from kernelwright.run.journal import Journal
from kernelwright.run.memo import Memory
from kernelwright.run.observer import Observer
from kernelwright.run.workbench import Workbench

Say = Callable[[str], None]
PROPOSALS = 3
"""Sketches of models that a search varies beside the designer's own."""
Ending = tuple[Attempt, str, tuple[tuple[str, float], ...]]
"""The best, why the run ended, and the path by which tuning came to it."""


@dataclass(frozen=True)
class Generated:
    """The result: the best draft and what the judge said of it; `tried` counts the kernels that were judged; `ended` says why the
    team stopped, `author` who wrote the kernel ("builtin", "rules" for a model's sketch lowered by rule, "coder"); `path` are the
    changes by which tuning became faster, each with the factor that it brought."""

    draft: Draft
    verdict: Verdict
    tried: int
    seconds: float
    ended: str = ""
    author: str = "builtin"
    path: tuple[tuple[str, float], ...] = ()


class NothingFound(KernelwrightError):
    """No kernel came out of a run, with the reason."""

    exit_code = 1


def generate(
    job: JobSpec,
    judge: Judge,
    drafter: Drafter,
    folder: JobFolder,
    say: Say = lambda line: None,
    *,
    models: TeamModels | None = None,
    observer: Observer | None = None,
) -> Generated:
    """Run the job. The verdict of the result may be a rejection: then nothing better was found."""
    started = time.monotonic()
    observer = observer or Observer(say)
    models = models or TeamModels()
    journal = Journal(folder, models.store, models.run)
    bench = Workbench(job, judge, drafter, models.memory or Memory())
    journal.step("start", bench.task.name, {"task": bench.task.source}, dsl=job.dsl, track=job.track, effort=job.effort.name)
    try:
        if models.designer is None or models.coder is None:
            best, ended, path = _alone(bench, journal, folder, observer)
        else:
            best, ended, path = with_team(bench, journal, folder, observer, models)
    except KernelwrightError:
        with suppress(KernelwrightError):  # where the disk is full, the end cannot be written either: the first error is told
            journal.finish("failed", None)
        raise  # anything else (Ctrl-C, a kill) leaves the run unfinished, to be resumed
    journal.finish("done" if best.verdict.ok else "failed", best.kernel.source if best.verdict.ok else None)
    tried = len(bench.verdicts)
    draft = Draft(best.design_text, best.kernel)
    return Generated(draft, best.verdict, tried, time.monotonic() - started, ended, best.author, path)


def _alone(bench: Workbench, journal: Journal, folder: JobFolder, observer: Observer) -> Ending:
    """The built-in mind: its best draft, or the kernel that was given, and what tuning makes of it."""
    best = _first(bench, journal, folder, observer)
    return _tuned(bench, journal, folder, observer, best)


def _first(bench: Workbench, journal: Journal, folder: JobFolder, observer: Observer) -> Attempt:
    if bench.job.source is not None:
        raise NothingFound(bench.job.source.refusal)
    if bench.job.kernel is not None:
        return _given(bench, journal, folder, observer)
    return best_draft(bench, journal, folder, observer)[0]


def _tuned(
    bench: Workbench, journal: Journal, folder: JobFolder, observer: Observer, best: Attempt, proposed: tuple[str, ...] = ()
) -> Ending:
    """What tuning makes of a kernel, where the job asks for it and speeds are measured: from the sketch of a kernel that was given, or
    from the designer's own designs, and from what models proposed."""
    job = bench.job
    given = (best.sketch,) if job.kernel is not None and best.sketch else ()
    if job.shapes and best.verdict.ok:
        from kernelwright.search.size_variants import tune_sizes

        by_size = tune_sizes(bench, journal, folder, observer, best)
        return by_size.attempt, by_size.ended, by_size.path
    if not (job.search_seconds and job.timing and best.verdict.timing is not None):
        return best, "", ()
    from kernelwright.search.tune import tune

    sketches = tuple(dict.fromkeys(given + proposed))
    tuned = tune(bench, journal, folder, observer, best, seconds=job.search_seconds, sketches=sketches, own=not given)
    found = f"tuned to {tuned.gain:.2f}x the first kernel" if tuned.gain > 1 else "no gain found by tuning"
    return tuned.attempt, f"{found}: {tuned.raced} variants raced, {tuned.ended}", tuned.path


def _given(bench: Workbench, journal: Journal, folder: JobFolder, observer: Observer) -> Attempt:
    """The kernel that the run was started with, judged."""
    kernel = bench.job.kernel
    assert kernel is not None
    observer.say("judging the given kernel")
    verdict = bench.judged(kernel)
    journal.step(
        "judged",
        f"the given kernel: {verdict.reason}",
        {"kernel": kernel.source},
        verdict.model_dump_json(),
        status=str(verdict.status),
    )
    folder.keep(kernel, kernel.sketch or "", verdict)
    return Attempt(1, 0, "", kernel.sketch or "", kernel, verdict, None)


def best_draft(bench: Workbench, journal: Journal, folder: JobFolder, observer: Observer) -> tuple[Attempt, list[Attempt]]:
    """The built-in mind's best kernel, and all that were judged. A rejected draft is put down with its reason, and the next tried."""
    job = bench.job
    observer.say("designing")
    if job.timing:
        bench.judge.prepare(bench.task, job.dsl, job.target, compile_contender=job.compile_contender, contenders=job.contenders)
    drafts = bench.drafts()
    journal.step("designed", f"{len(drafts)} drafts of the built-in mind", result=drafts[0].sketch, notes=list(drafts[0].notes))
    best: Attempt | None = None
    judged: list[Attempt] = []
    for number, draft in enumerate(_distinct(drafts), start=1):
        enough = sum(attempt.verdict.ok for attempt in judged) >= job.effort.measured
        if best is not None and (enough or (job.budget is not None and bench.seconds > job.budget)):
            break
        observer.say(f"judging draft {number} of {len(drafts)}")
        verdict = bench.judged(draft.kernel)
        journal.step(
            "judged",
            f"draft {number}: {verdict.reason}",
            {"sketch": draft.sketch, "kernel": draft.kernel.source},
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
        observer.say(f"draft {number}: {verdict.status}")
    assert best is not None, "a designer that has no draft raises"
    return best, judged


def with_team(bench: Workbench, journal: Journal, folder: JobFolder, observer: Observer, models: TeamModels) -> Ending:
    """The models go on from the seed; the last race names the best."""
    from kernelwright.agents.conductor.check import usable
    from kernelwright.agents.finish_race import final_race
    from kernelwright.agents.librarian import Librarian
    from kernelwright.agents.team import Team
    from kernelwright.core import config

    assert models.designer is not None
    assert models.coder is not None
    librarian = Librarian(bench, journal, models.store, models.knowledge)

    def seed() -> Attempt:
        return _first(bench, journal, folder, observer)

    def keep(attempt: Attempt) -> None:
        folder.keep(attempt.kernel, attempt.design_text, attempt.verdict)

    table = usable(config.load().settings.conductor)
    team = Team(bench, models.designer, models.coder, journal, librarian, seed, keep, observer, table)
    decision = team.run()
    observer.say("the last race")
    best = _here(bench, final_race(bench, journal, team.tried, team.seeded), team.tried)
    if best is None:
        if not team.tried:
            raise NothingFound(f"{bench.task.path}: no kernel was found: {decision.reason}")
        best = team.tried[-1]
    keep(best)
    ended = decision.reason
    path: tuple[tuple[str, float], ...] = ()
    if best.verdict.ok and best.author != "coder":
        # What the rules lowered can be varied by them; a kernel that was written by hand is what it is.
        rules = sorted(
            (a for a in team.tried if a.verdict.ok and a.author == "rules"), key=lambda a: -(attempts.speed(a.verdict) or 0)
        )
        best, said, path = _tuned(bench, journal, folder, observer, best, tuple(a.sketch for a in rules[:PROPOSALS]))
        ended = f"{ended}; {said}" if said else ended
    if best.verdict.ok and best.design > 0:
        librarian.learn_win(team.brief, best)
    return best, ended, path


def _here(bench: Workbench, best: Attempt | None, tried: list[Attempt]) -> Attempt | None:
    """The winner by a verdict of this machine. Verdicts from a recording led the replay; the result is judged anew."""
    others = sorted((a for a in tried if a.verdict.ok and a is not best), key=lambda a: -(attempts.speed(a.verdict) or 0.0))
    for attempt in [best, *others] if best is not None else []:
        if attempt.kernel.hash not in bench.replayed:
            return attempt
        verdict = bench.judged_here(attempt.kernel)
        if verdict.ok:
            return replace(attempt, verdict=verdict)
    return None


def _distinct(drafts: list[Draft]) -> list[Draft]:
    """The same code is not judged twice."""
    return list({draft.kernel: draft for draft in drafts}.values())
