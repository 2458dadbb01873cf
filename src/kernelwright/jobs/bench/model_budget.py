"""Models for a whole benchmark: one of them for all tasks, one budget for all, and for each task a run of its own in the store.

In: a model's spec and what may be spent. Out: the models of one job. What a model answered is kept in the store, so a resumed benchmark
pays for nothing twice.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from kernelwright.agents.team_models import TeamModels
from kernelwright.core.job import BUILTIN
from kernelwright.jobs.bench.record import Step
from kernelwright.run.memo import Memory

if TYPE_CHECKING:
    from kernelwright.agents.models import Model
    from kernelwright.store import Store


class Models:
    """Use as a context manager; with `builtin` nothing is opened and every job gets the built-in mind."""

    def __init__(self, spec: str, *, max_cost: float | None = None) -> None:
        self._spec = spec
        self._max_cost = max_cost
        self._stack = ExitStack()
        self._model: Model | None = None
        self._store: Store | None = None

    def __enter__(self) -> Self:
        if self._spec == BUILTIN:
            return self
        from kernelwright.agents.models import Ledger, Limits, open_model
        from kernelwright.core import config
        from kernelwright.store import Store

        limits = Limits.of(config.load().settings)
        limits = replace(limits, max_cost_usd=self._max_cost) if self._max_cost is not None else limits
        self._store = self._stack.enter_context(Store.open(None))
        self._model = open_model(self._spec, store=self._store, limits=limits, ledger=Ledger(limits))
        self._stack.callback(self._model.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, key: str, dsl: str) -> TeamModels | None:
        """Who thinks about one task; None is the built-in mind alone."""
        if self._model is None or self._store is None:
            return None
        run = self._store.begin({"command": "bench", "task": key, "dsl": dsl, "model": self._spec})
        return TeamModels(self._model, self._model, self._store, run, Memory(run.id, self._store))


def paid(lineage: tuple[Step, ...]) -> float:
    """Dollars that a job's steps have cost; what was recalled cost nothing."""
    return sum(float(step.facts.get("cost_usd") or 0.0) for step in lineage if not step.facts.get("recalled"))
