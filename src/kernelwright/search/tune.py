"""Tuning: a judged kernel in, the fastest variant that was found within the budget out, or the answer that there is none.

1. Points of the designs' spaces are proposed (propose.py), written by the worker, and raced in races of a few, the leader among them:
   what is measured beside the leader in one race is comparable with everything before. Who wins a race races the leader once more, alone,
   before it takes the lead: of many that are measured a few times each, the luckiest looks like a gain. The first of a design to do so
   is tried by the judge, and if it is wrong (a model's sketch, an algorithm that rounds too much) the whole design is dropped.
2. Same code is not raced twice; points that break a rule are never built.
3. The search ends with the budget, when every point was tried, or when the best's neighbours and more brought nothing for a while.
4. The best few race once more beside the seed (finish.py). "No gain found" is an answer.

Spaces, the cost model's past and races go through the run's memory (`Workbench.finding`): a run that was killed repeats none of them.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, replace

from kernelwright.judge.timing.race import AGAIN
from kernelwright.run.attempts import Attempt
from kernelwright.run.folder import JobFolder
from kernelwright.run.journal import Journal
from kernelwright.run.observer import Observer, Standing
from kernelwright.run.workbench import Workbench
from kernelwright.search import finish_race, history
from kernelwright.search.codegen_options import code_of
from kernelwright.search.cost_model import CostModel
from kernelwright.search.features import Axes
from kernelwright.search.finish_race import WORTH
from kernelwright.search.point import Point
from kernelwright.search.propose import Proposer
from kernelwright.search.races import Races, State, Tuned, Variant
from kernelwright.search.worker import Written
from kernelwright.target import Target

BATCH = 5
PATIENCE = 3
"""Races in a row without a gain, once all neighbours of the best were tried, after which a search has found what it will find."""


def tune(
    bench: Workbench,
    journal: Journal,
    folder: JobFolder,
    observer: Observer,
    seed: Attempt,
    *,
    seconds: float,
    sketches: tuple[str, ...] = (),
    own: bool = True,
) -> Tuned:
    """Search around the seed, which must be correct: in the sketches given, and in the designer's `own` designs. Without those, the
    sketch is that of a kernel, which is written with its options."""
    job, started, target = bench.job, bench.seconds, Target.host().name
    start = Variant(seed.kernel, seed.sketch)
    state = State(start, {code_of(seed.kernel.source): start})
    options = seed.kernel.options if sketches and not own else {}

    def stand(*doing: str) -> None:
        observer.stands(_standing(state, proposer, doing, bench.seconds - started, seconds))

    with ExitStack() as stack:
        observer.say("tuning: designs and what can be varied in them")
        races = Races(bench, stack, sketches, own or not sketches, options)
        known = bench.finding("past", {"target": target}, lambda: {"rows": history.rows(journal.store, job.dsl, target)})[
            "rows"
        ]
        model = CostModel([(row, value) for row, value in known])
        proposer = Proposer(races.designs, model)
        ended = "the budget is spent"
        while bench.seconds - started < seconds:
            stand("choosing and writing variants")
            entrants = _entrants(races, proposer, state)
            if entrants is None:
                ended = "every variant was tried"
                break
            if entrants:
                stand(*(point.words(races.designs[point.design].defaults) for point, _ in entrants.values()))
                _race_beside(journal, races, proposer, entrants, state, target)
                observer.say(f"tuning: {_line(state)}, {bench.seconds - started:.0f} s")
            if state.stale >= PATIENCE and proposer.settled:
                ended = f"no single change of the best is a gain, nor what {PATIENCE} races tried beyond"
                break
        stand("the last race, and a verdict for the winner")
        checked = f"the cost model's order beside the clock's: rank correlation {_shown(model.agreement)} over {model.checked}"
        checked += f" variants; {_shown(model.past_agreement)} held out of {len(known)} from earlier searches"
        journal.step("model", checked, agreement=model.agreement, past_agreement=model.past_agreement, past=len(known))
        return finish_race.named(bench, journal, folder, races, seed, state, f"{ended}; {checked}")


def _entrants(races: Races, proposer: Proposer, state: State) -> dict[str, tuple[Point, Written]] | None:
    """The next points as kernels by the hash of their code: those that are valid and new. None when there are no more points."""
    points = proposer.ask(BATCH)
    if not points:
        return None
    entrants: dict[str, tuple[Point, Written]] = {}
    for point in points:
        made = races.write(point)
        known = state.variants.get(made.code) if made else None
        if known is not None and known.point is None:
            state.right.add(point.design)  # it is how the seed, which was judged, is written
        if made is None or known is not None or made.code in entrants or made.code in state.wrong:
            proposer.tell(point, known.relative if known else None)
        else:
            entrants[made.code] = (point, made)
    return entrants


def _race_beside(
    journal: Journal, races: Races, proposer: Proposer, entrants: dict[str, tuple[Point, Written]], state: State, target: str
) -> None:
    """Race the entrants beside the leader, and tell the proposer."""
    leader = state.leader
    places = races.race([leader, *(Variant(made.kernel, made.sketch, point) for point, made in entrants.values())])
    pace = places[0].seconds
    state.raced += len(entrants)
    state.stale += 1
    facts = []
    for (code, (point, made)), place in zip(entrants.items(), places[1:], strict=True):
        relative = leader.relative * place.seconds / pace if place.seconds and pace else None
        design = races.designs[point.design]
        told = {"what": point.words(design.defaults), "values": dict(point.values), "relative": relative, **asdict(place)}
        facts.append({**told, "features": proposer.row(point), "kernel": made.kernel.hash})
        proposer.tell(point, relative)
        if relative is not None:
            state.variants[code] = Variant(made.kernel, made.sketch, point, relative)
    dropped = _challenge(races, proposer, [code for code in entrants if code in state.variants], state)
    state.best.append(1 / state.leader.relative)
    reason = f"{len(entrants)} variants beside the best so far, which is {state.best[-1]:.2f}x the first kernel"
    journal.step(
        "heat",
        reason,
        {"leader": leader.kernel.source},
        state.leader.kernel.source,
        places=facts,
        target=target,
        best=state.best[-1],
    )
    if dropped:
        journal.step("dropped", dropped)


def _challenge(races: Races, proposer: Proposer, codes: list[str], state: State) -> str:
    """The fastest of a race takes the lead if it is ahead of the leader in a race of the two as well, and its design is right. Returns
    what is to be told of a design that is not."""
    leader = state.leader
    code = min(codes, key=lambda code: state.variants[code].relative, default="")
    if not code or state.variants[code].relative >= leader.relative * (1 - WORTH):
        return ""
    first, second = races.race([leader, state.variants[code]], AGAIN)
    if not first.seconds or not second.seconds:
        return ""
    ratio = second.seconds / first.seconds
    challenger = state.variants[code] = replace(state.variants[code], relative=leader.relative * ratio)
    assert challenger.point is not None, "only the seed has none"
    proposer.correct(challenger.point, challenger.relative)
    if ratio >= 1 - WORTH:
        return ""
    design = challenger.point.design
    fault = "" if design in state.right else races.fault(challenger)
    if fault:
        proposer.drop(design)
        state.wrong |= {code for code, one in state.variants.items() if one.point is not None and one.point.design == design}
        state.variants = {code: one for code, one in state.variants.items() if code not in state.wrong}
        words = challenger.point.words(races.designs[design].defaults, races.designs[design].note)
        return f"{words} would lead, but is wrong, so the design is dropped: {fault}"
    state.right.add(design)
    state.path.append((_change(leader.point, challenger.point, races.designs[design]), 1 / ratio))
    state.leader, state.stale = challenger, 0
    return ""


def _change(before: Point | None, after: Point, design: Axes) -> str:
    """What is different in a new leader, in words."""
    if before is None or before.design != after.design:
        return after.words(design.defaults, design.note)
    old = dict(before.values)
    return ", ".join(f"{name} {old[name]} → {value}" for name, value in after.values if value != old[name])


def _standing(state: State, proposer: Proposer, doing: tuple[str, ...], seconds: float, budget: float) -> Standing:
    islands = []
    for number, island in enumerate(proposer.islands.islands, start=1):
        best = f"{1 / island.best.value:.2f}x" if island.best is not None else "empty"
        islands.append(f"island {number}: {best}, {len(island.members)} kernels, {island.moved_in} moved in")
    return Standing(tuple(state.best), tuple(islands), doing, seconds, budget, state.raced, proposer.model.agreement)


def _line(state: State) -> str:
    return f"{state.raced} raced, best {1 / state.leader.relative:.2f}x the first kernel"


def _shown(correlation: float | None) -> str:
    return f"{correlation:.2f}" if correlation is not None else "unknown"
