"""The end of a search: the best few beside the seed, longer; who wins beyond the noise gets a verdict.

In: all that was measured. Out: `Tuned`: a winner that the judge accepts, or the seed with "no gain found". A winner that the judge
rejects is put down in the journal and dropped for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.agents.attempts import Attempt
from kernelwright.judge.heat import FINAL
from kernelwright.search.course import Course, State, Tuned, Variant

if TYPE_CHECKING:
    from kernelwright.agents.folder import JobFolder
    from kernelwright.agents.journal import Journal
    from kernelwright.agents.workbench import Workbench

FINALISTS = 3
WORTH = 0.02
"""A gain under this share is noise."""


def named(
    bench: Workbench, journal: Journal, folder: JobFolder, course: Course, seed: Attempt, state: State, ended: str
) -> Tuned:
    """Name a winner."""
    ahead = sorted((one for one in state.variants.values() if one.relative < 1 - WORTH), key=lambda one: one.relative)
    finalists = ahead[:FINALISTS]
    places = course.race([Variant(seed.kernel, seed.sketch), *finalists], FINAL) if finalists else []
    pace = places[0].seconds or 0.0 if places else 0.0
    ranked = sorted(
        ((pace / place.seconds, one) for one, place in zip(finalists, places[1:], strict=False) if place.seconds and pace),
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
            speedup=verdict.timing.speedup if verdict.timing else None,
        )
        if verdict.ok:
            folder.keep(one.kernel, one.sketch, verdict)
            path = tuple(state.path)
            told = "; ".join(f"{what}: {factor:.2f}x" for what, factor in path)
            journal.step("tuned", f"{gain:.2f}x the first kernel: {told}", {"kernel": one.kernel}, path=path, gain=gain)
            attempt = Attempt(seed.number + 1, seed.design, seed.author, one.sketch, one.kernel, verdict, True)
            return Tuned(attempt, gain, ended, state.raced, path)
    journal.step("tuned", f"no gain found in {state.raced} variants: {ended}", gain=1.0)
    return Tuned(seed, 1.0, ended, state.raced)
