"""What a run amounts to: its best over time, what it spent, one line of it, all of it. In: a RunRecord. Out: plain data for the doors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kernelwright.store.nouns import RunRecord


@dataclass(frozen=True)
class Best:
    """A step after which the run's best was better than before."""

    step: int
    seconds: float
    speedup: float


@dataclass(frozen=True)
class Spending:
    """Answers that were paid for. `unpriced` of them have no known price and are not in `cost_usd`."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    unpriced: int


def best_over_time(record: RunRecord) -> list[Best]:
    """Every improvement of the best correct kernel, in order. Seconds count from the run's start, pauses included."""
    found: list[Best] = []
    for step in record.steps:
        speedup = step.facts.get("speedup")
        if step.facts.get("status") != "correct" or not isinstance(speedup, int | float):
            continue
        if not found or speedup > found[-1].speedup:
            found.append(Best(step.number, step.at - record.started, float(speedup)))
    return found


def spending(record: RunRecord) -> Spending:
    """The sum over the journal; an answer that was recalled cost nothing."""
    paid = [step.facts for step in record.steps if "tokens_out" in step.facts and not step.facts.get("recalled")]
    return Spending(
        calls=len(paid),
        tokens_in=sum(int(facts.get("tokens_in") or 0) for facts in paid),
        tokens_out=sum(int(facts["tokens_out"] or 0) for facts in paid),
        cost_usd=sum(float(facts.get("cost_usd") or 0.0) for facts in paid),
        unpriced=sum(facts.get("cost_usd") is None for facts in paid),
    )


def row(record: RunRecord, steps: int | None = None) -> dict[str, Any]:
    """A run in a list; `steps` is their number where the record has only some of them."""
    best = best_over_time(record)
    job = record.job
    return {
        "run": record.id,
        "status": record.status,
        "task": str(job.get("task", "")),
        "dsl": str(job.get("to") or job.get("dsl", "")),
        "target": str(job.get("target", "")),
        "model": str(job.get("model", "")),
        "speedup": best[-1].speedup if best else None,
        "steps": len(record.steps) if steps is None else steps,
        "cost_usd": spending(record).cost_usd,
        "started": record.started,
        "seconds": round(record.seconds, 1),
        "damaged": list(record.damaged),
    }


def report(record: RunRecord) -> dict[str, Any]:
    """A whole run: what was asked for, its steps as a tree, its best over time, what it spent."""
    parents = record.parents()
    return {
        "run": record.id,
        "job": record.job,
        "status": record.status,
        "best": record.best,
        "started": record.started,
        "seconds": round(record.seconds, 3),
        "spent": asdict(spending(record)),
        "best_over_time": [asdict(best) for best in best_over_time(record)],
        "steps": [{**asdict(step), "parent": parents[step.number]} for step in record.steps],
        "damaged": list(record.damaged),
    }
