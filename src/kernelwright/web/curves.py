"""What the charts of a run draw: a RunRecord in; best over time, and the population of its search, out."""

from __future__ import annotations

from typing import Any

from kernelwright.store import RunRecord, Step
from kernelwright.store.summary import best_over_time


def curve(record: RunRecord) -> list[dict[str, Any]]:
    """Every improvement of the best: verdicts as they were measured; races of a search as their factor over the kernel it began from."""
    found: list[dict[str, Any]] = [{**vars(best), "by": "verdict"} for best in best_over_time(record)]
    heats = [step for step in record.steps if step.kind == "heat" and _number(step.facts.get("best"))]
    if heats:
        before = [best["speedup"] for best in found if best["step"] < heats[0].number]
        base = before[-1] if before else 1.0
        for step in heats:
            speedup = base * float(step.facts["best"])
            if speedup > max((one["speedup"] for one in found if one["step"] < step.number), default=0.0):
                found.append({"step": step.number, "seconds": step.at - record.started, "speedup": speedup, "by": "race"})
    return sorted(found, key=lambda one: int(one["step"]))


def population(record: RunRecord) -> list[dict[str, Any]]:
    """Every variant that a search raced: when, how fast over its first kernel, of which island and kind of design, and what was changed."""
    found = []
    for step in record.steps:
        for place in step.facts.get("places", ()) if step.kind == "heat" else ():
            if isinstance(place, dict) and (relative := place.get("relative")) and _number(relative):
                found.append(
                    {
                        "step": step.number,
                        "seconds": step.at - record.started,
                        "speedup": 1.0 / float(relative),
                        "island": place.get("island"),
                        "kind": str(place.get("kind") or "not told"),
                        "what": str(place.get("what", "")),
                    }
                )
    return found


def told(step: Step, parent: int | None) -> dict[str, Any]:
    """A step without what only the cost model reads."""
    facts = dict(step.facts)
    if isinstance(places := facts.get("places"), list):
        facts["places"] = [
            {key: value for key, value in place.items() if key != "features"} for place in places if isinstance(place, dict)
        ]
    return {**vars(step), "facts": facts, "parent": parent}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
