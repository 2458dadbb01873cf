"""A search's measurements in T4, the exchange format of the auto-tuning community (schema 1.0.0, as Kernel Tuner writes it).

In: a run's record. Out: one JSON object. Times are in milliseconds; what was not measured apart from the rest (building, the search
itself) is 0. A variant of a search was raced, not judged: `correctness` is 1 only for kernels that have a verdict.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright.store import RunRecord

VERSION = "1.0.0"


def export(record: RunRecord) -> dict[str, Any]:
    """Every variant of every race of the run."""
    judged = {
        step.inputs.get("kernel") for step in record.steps if step.kind == "judged" and step.facts.get("status") == "correct"
    }
    results = [
        _result(place, step.at, judged)
        for step in record.steps
        if step.kind == "heat"
        for place in step.facts.get("places", ())
        if isinstance(place, dict)
    ]
    return {"schema_version": VERSION, "results": results}


def _result(place: dict[str, Any], at: float, judged: set[str | None]) -> dict[str, Any]:
    seconds = place.get("seconds")
    took = [seconds * 1e3] if isinstance(seconds, int | float) else []
    fault = str(place.get("fault") or "")
    names = ("compilation", "benchmark", "framework", "search_algorithm", "validation")
    return {
        "timestamp": datetime.fromtimestamp(at, UTC).isoformat(),
        "configuration": {"design": str(place.get("what", "")).split(" with ")[0], **place.get("values", {})},
        "times": {**dict.fromkeys(names, 0.0), "runtimes": took},
        "invalidity": "correct" if took else "runtime" if "forward failed" in fault else "compile",
        "correctness": 1 if place.get("kernel") in judged else 0,
        "measurements": [{"name": "time", "value": value, "unit": "ms"} for value in took],
        "objectives": ["time"],
    }
