"""Tuning: a judged kernel in, the fastest variant that was found within the budget out, or the answer that there is none.

1. Points of the designs' spaces are proposed (propose.py), written by the station, and raced in heats of a few, the leader among them:
   what is measured beside the leader in one heat is comparable with everything before.
2. Same code is not raced twice; points that break a rule are never built.
3. The search ends with the budget, when every point was tried, or when nothing better came for a while.
4. The best few race once more beside the seed, longer. Who wins beyond the noise gets a verdict; a winner that the judge rejects is
   dropped for the next. "No gain found" is an answer.

Heats go through the run's memory (`Workbench.finding`), so a run that was killed repeats none of them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from kernelwright.agents.attempts import Attempt
from kernelwright.agents.folder import JobFolder
from kernelwright.agents.journal import Journal
from kernelwright.agents.watch import Watch
from kernelwright.agents.workbench import Workbench, digest
from kernelwright.judge.heat import FINAL, STAGES, Heat, Place
from kernelwright.search.propose import Point, Proposer
from kernelwright.search.station import Station

BATCH = 4
FINALISTS = 3
WORTH = 0.02
"""A gain under this share is noise."""
PATIENCE = 4
"""Heats in a row without a gain after which a search has found what it will find."""


@dataclass(frozen=True)
class Variant:
    """A kernel of the search. `relative` is its time over the seed's: less is faster."""

    kernel: str
    sketch: str
    what: str
    relative: float = 1.0


@dataclass(frozen=True)
class Tuned:
    """What a search came to. `path` lists the changes that were gains on the way, with the seed's time over theirs."""

    attempt: Attempt
    gain: float
    ended: str
    raced: int
    path: tuple[tuple[str, float], ...] = ()


@dataclass
class _State:
    leader: Variant
    variants: dict[str, Variant]
    raced: int = 0
    stale: int = 0
    path: list[tuple[str, float]] = field(default_factory=list)


def tune(
    bench: Workbench,
    journal: Journal,
    folder: JobFolder,
    watch: Watch,
    seed: Attempt,
    *,
    seconds: float,
    sketches: tuple[str, ...] = (),
) -> Tuned:
    """Search around the seed, which must be correct; `sketches` are searched instead of the designer's own designs."""
    job, started = bench.job, bench.seconds
    start = Variant(seed.kernel, seed.sketch, "the kernel it began with")
    state = _State(start, {digest(seed.kernel): start})
    with (
        Station(bench.drafter, job.task, dsl=job.dsl, track=job.track, effort="standard", sketches=sketches) as station,
        Heat(bench.judge, job.task) as heat,
    ):
        proposer = Proposer(station.designs)
        ended = "the budget is spent"
        while bench.seconds - started < seconds:
            points = proposer.ask(BATCH)
            if not points:
                ended = "every variant was tried"
                break
            _heat(bench, journal, heat, station, proposer, points, state)
            faster = 1 / state.leader.relative
            watch.say(f"tuning: {state.raced} raced, best {faster:.2f}x the first kernel, {bench.seconds - started:.0f} s")
            if state.stale >= PATIENCE:
                ended = f"{PATIENCE} heats in a row brought no gain"
                break
        return _final(bench, journal, folder, heat, seed, state, ended)


def _heat(
    bench: Workbench, journal: Journal, heat: Heat, station: Station, proposer: Proposer, points: list[Point], state: _State
) -> None:
    """Race the points that are new and valid beside the leader, and tell the proposer."""
    entrants: dict[str, tuple[Point, Variant]] = {}
    for point in points:
        made = station.write(point.design, dict(point.values))
        known = state.variants.get(digest(made[0])) if made else None
        if made is None or known is not None or digest(made[0]) in entrants:
            proposer.tell(point, known.relative if known else None)
        else:
            entrants[digest(made[0])] = (point, Variant(*made, _words(point)))
    if not entrants:
        return
    leader = state.leader
    places = _raced(bench, heat, [leader, *(variant for _, variant in entrants.values())])
    pace = places[0].seconds
    state.raced += len(entrants)
    state.stale += 1
    for (name, (point, variant)), place in zip(entrants.items(), places[1:], strict=True):
        relative = leader.relative * place.seconds / pace if place.seconds and pace else None
        proposer.tell(point, relative)
        if relative is None:
            continue
        state.variants[name] = Variant(variant.kernel, variant.sketch, variant.what, relative)
        if relative < state.leader.relative * (1 - WORTH):
            state.leader, state.stale = state.variants[name], 0
            state.path.append((variant.what, 1 / relative))
    facts = [{"what": variant.what, **asdict(place)} for (_, variant), place in zip(entrants.values(), places[1:], strict=True)]
    reason = f"{len(entrants)} variants beside the best so far, which is {1 / state.leader.relative:.2f}x the first kernel"
    journal.step("heat", reason, {"leader": leader.kernel}, state.leader.sketch, places=facts)


def _raced(
    bench: Workbench, heat: Heat, variants: list[Variant], stages: tuple[tuple[int, float], ...] = STAGES
) -> list[Place]:
    key = {"kernels": [digest(variant.kernel) for variant in variants], "stages": [list(stage) for stage in stages]}

    def race() -> dict[str, list[dict[str, object]]]:
        return {"places": [asdict(place) for place in heat.race([variant.kernel for variant in variants], stages)]}

    return [Place(**place) for place in bench.finding("heat", key, race)["places"]]


def _final(
    bench: Workbench, journal: Journal, folder: JobFolder, heat: Heat, seed: Attempt, state: _State, ended: str
) -> Tuned:
    """The best few beside the seed; the first that wins and is right is the result."""
    ahead = sorted((one for one in state.variants.values() if one.relative < 1 - WORTH), key=lambda one: one.relative)
    finalists = ahead[:FINALISTS]
    if finalists:
        places = _raced(bench, heat, [Variant(seed.kernel, seed.sketch, ""), *finalists], FINAL)
        pace = places[0].seconds or 0.0
        ranked = sorted(
            ((pace / place.seconds, one) for one, place in zip(finalists, places[1:], strict=True) if place.seconds and pace),
            key=lambda item: -item[0],
        )
        for gain, one in ranked:
            if gain < 1 + WORTH:
                break
            verdict = bench.judged(one.kernel)
            reason = f"{gain:.2f}x the first kernel in the last race: {verdict.reason}"
            journal.step(
                "judged",
                reason,
                {"sketch": one.sketch, "kernel": one.kernel},
                verdict.model_dump_json(),
                status=str(verdict.status),
            )
            if verdict.ok:
                folder.keep(one.kernel, one.sketch, verdict)
                attempt = Attempt(seed.number + 1, seed.design, seed.author, one.sketch, one.kernel, verdict, True)
                return Tuned(attempt, gain, ended, state.raced, tuple(state.path))
    journal.step("tuned", f"no gain found in {state.raced} variants: {ended}")
    return Tuned(seed, 1.0, ended, state.raced)


def _words(point: Point) -> str:
    """A point in words."""
    values = ", ".join(f"{name} {value}" for name, value in point.values)
    return f"design {point.design}" + (f" with {values}" if values else "")
