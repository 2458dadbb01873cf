"""The end of a search: the best few beside the seed, in several races; who wins beyond the noise gets a verdict.

In: all that was measured. Out: `Tuned`: a winner that the judge accepts, or the seed with "no gain found". A winner that the judge
rejects is put down in the journal and dropped for the next. Every race is run by fresh processes: where a process has its memory can
make it faster or slower than its twin for as long as it lives.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from kernelwright.judge.timing.race import LAP
from kernelwright.run.attempts import Attempt
from kernelwright.search.races import Races, State, Tuned, Variant

if TYPE_CHECKING:
    from kernelwright.run.folder import JobFolder
    from kernelwright.run.journal import Journal
    from kernelwright.run.workbench import Workbench

FINALISTS, LAPS = 3, 3
WORTH = 0.02
"""A gain under this share is noise."""


def named(
    bench: Workbench, journal: Journal, folder: JobFolder, races: Races, seed: Attempt, state: State, ended: str
) -> Tuned:
    """Name a winner."""
    ahead = sorted((one for one in state.variants.values() if one.relative < 1 - WORTH), key=lambda one: one.relative)
    finalists = ahead[:FINALISTS]
    for gain, one in _ranked(races, Variant(seed.kernel, seed.sketch), finalists):
        if gain < 1 + WORTH:
            break
        verdict = bench.judged(one.kernel)
        reason = f"{gain:.2f}x the first kernel in the last race: {verdict.reason}"
        journal.step(
            "judged",
            reason,
            {"sketch": one.sketch, "kernel": one.kernel.source},
            verdict.model_dump_json(),
            status=str(verdict.status),
            speedup=verdict.timing.speedup if verdict.timing else None,
        )
        if verdict.ok:
            folder.keep(one.kernel, one.sketch, verdict)
            path = _path(races, state, one, gain)
            told = "; ".join(f"{what}: {factor:.2f}x" for what, factor in path)
            journal.step("tuned", f"{gain:.2f}x the first kernel: {told}", {"kernel": one.kernel.source}, path=path, gain=gain)
            attempt = Attempt(seed.number + 1, seed.design, seed.author, one.sketch, one.kernel, verdict, True)
            return Tuned(attempt, gain, ended, state.raced, path)
    journal.step("tuned", f"no gain found in {state.raced} variants: {ended}", gain=1.0)
    return Tuned(seed, 1.0, ended, state.raced)


def _ranked(races: Races, seed: Variant, finalists: list[Variant]) -> list[tuple[float, Variant]]:
    """The finalists with how much faster than the seed they were in the middle one of their races, fastest first."""
    gains: list[list[float]] = [[] for _ in finalists]
    for lap in range(LAPS if finalists else 0):
        first, *others = races.race([seed, *finalists], LAP, lap)
        for found, place in zip(gains, others, strict=True):
            if first.seconds and place.seconds:
                found.append(first.seconds / place.seconds)
    ranked = [(median(found), one) for found, one in zip(gains, finalists, strict=True) if found]
    return sorted(ranked, key=lambda item: -item[0])


def _path(races: Races, state: State, winner: Variant, gain: float) -> tuple[tuple[str, float], ...]:
    """How the winner was reached: by what took the lead on the way; who never led was reached at once."""
    if winner.point is None or winner.kernel == state.leader.kernel:
        return tuple(state.path)
    design = races.designs[winner.point.design]
    return ((winner.point.words(design.defaults, design.note), gain),)
