"""What earlier searches measured on this target: a store in, rows for the cost model out.

Every race's step in a journal has the features of its variants beside their relative times (tune.py); nothing else is kept for this.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright.store import Store

MOST_RUNS = 150
"""The newest runs that are read: older ones were written by older coders."""


def rows(store: Store | None, dsl: str, target: str) -> list[tuple[dict[str, float], float]]:
    """(features, log of relative time) of every variant measured for this language on this target, the oldest run first."""
    from kernelwright.core.errors import StoreError

    found: list[tuple[dict[str, float], float]] = []
    runs = [run for run in store.runs() if run.job.get("dsl") == dsl][:MOST_RUNS] if store is not None else []
    for run in reversed(runs):
        try:
            steps = store.load_run(run.id).steps if store is not None else ()
        except StoreError:
            continue  # a run that is damaged or was pruned meanwhile teaches nothing
        for step in steps:
            if step.kind == "heat" and step.facts.get("target") == target:
                found += [row for place in step.facts.get("places", ()) if (row := _row(place)) is not None]
    return found


def _row(place: Any) -> tuple[dict[str, float], float] | None:
    if not isinstance(place, dict) or not isinstance(place.get("features"), dict):
        return None
    relative = place.get("relative")
    if not isinstance(relative, int | float) or relative <= 0:
        return None
    return {str(name): float(value) for name, value in place["features"].items()}, math.log(relative)
