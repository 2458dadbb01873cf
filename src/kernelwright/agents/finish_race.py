"""The last race of a run: its fastest correct kernels and the seed side by side, before a winner is named.

In: attempts whose verdicts were measured at different moments of a busy machine. Out: the one that wins beyond doubt; the seed where
none does. So a lucky measurement replaces nothing, and the result is never worse than what the built-in mind had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kernelwright.judge.timing.race import FINAL, Race
from kernelwright.run.attempts import Attempt, speed
from kernelwright.run.journal import Journal
from kernelwright.run.workbench import Workbench

FINALISTS = 3
WORTH = 0.02
"""A kernel must be this much faster than the one it replaces: less cannot be told from noise in a dozen rounds."""


def final_race(bench: Workbench, journal: Journal, tried: Sequence[Attempt], seed: Attempt | None) -> Attempt | None:
    """The winner; None where nothing is correct. Kernels that were not timed cannot race: then the order of verdicts stands."""
    fast = sorted({a.kernel: a for a in tried if a.verdict.ok}.values(), key=lambda a: (-(speed(a.verdict) or 0.0), a.number))
    if not fast:
        return None
    known = [a for a in fast if a.verdict.timing is not None]
    holder = seed if seed is not None and seed.verdict.ok else fast[0]
    others = [a for a in known if a.kernel != holder.kernel][:FINALISTS]
    if holder.verdict.timing is None or not others:
        return fast[0]
    racing = [holder, *others]

    def race() -> dict[str, Any]:
        with Race(bench.judge, bench.task) as running:
            return {"places": [asdict(place) for place in running.race([a.kernel.source for a in racing], FINAL)]}

    places = bench.finding("final", {"kernels": [a.kernel.hash for a in racing]}, race)["places"]
    pace = places[0]["seconds"]
    ranked = sorted(
        ((pace / place["seconds"], a) for a, place in zip(others, places[1:], strict=True) if pace and place["seconds"]),
        key=lambda item: -item[0],
    )
    best, gain = (ranked[0][1], ranked[0][0]) if ranked and ranked[0][0] > 1 + WORTH else (holder, 1.0)
    told = {f"design {a.design} by {a.author}": round(ratio, 3) for ratio, a in ranked}
    reason = (
        f"{gain:.2f}x the {'seed' if holder is seed else 'first'}"
        if best is not holder
        else "no other kernel is faster than it"
    )
    journal.step(
        "final", f"the last race, side by side: {reason}", {"kernel": best.kernel.source}, best.kernel.source, relative=told
    )
    return best
