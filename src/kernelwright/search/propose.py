"""Which points of a search to try next: designs with their axes in, points out, results back in.

First the designs as they are, in the cost model's order; then the neighbours of the best point so far, one axis at a time; when those
are used up, what optuna's estimator makes of all results. No point is proposed twice. The dice are seeded: the same results lead to
the same proposals, which is what makes a search that was killed go on where it was.
"""

from __future__ import annotations

import random
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.search.station import Axes

MOST_ASKS = 60
"""Guesses of the optimiser in a row that are known already before the space counts as used up."""


@dataclass(frozen=True)
class Point:
    """One choice: a design, and a value for each of its axes."""

    design: int
    values: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, design: int, values: dict[str, int]) -> Point:
        return cls(design, tuple(sorted(values.items())))


class Proposer:
    """Asked for points and told how they did: seconds relative to one common rival (less is better), None for what failed."""

    def __init__(self, designs: Sequence[Axes], seed: int = 0) -> None:
        self._designs = designs
        self._dice = random.Random(seed)
        self._seed = seed
        order = sorted(range(len(designs)), key=lambda number: designs[number].cost)
        self._queue = deque(Point.of(number, designs[number].defaults) for number in order)
        self._asked: set[Point] = set()
        self._results: dict[Point, float | None] = {}
        self._centre: Point | None = None
        self._study: Any = None

    @property
    def best(self) -> Point | None:
        """The fastest so far."""
        done = {point: value for point, value in self._results.items() if value is not None}
        return min(done, key=lambda point: done[point]) if done else None

    def ask(self, count: int) -> list[Point]:
        """Up to so many new points; none when every one was tried."""
        found: list[Point] = []
        while len(found) < count and (point := self._next()) is not None:
            self._asked.add(point)
            found.append(point)
        return found

    def tell(self, point: Point, value: float | None) -> None:
        self._results[point] = value
        if self._study is not None:
            self._learn(point, value)

    def _next(self) -> Point | None:
        while True:
            if not self._queue and self.best is not None and self.best != self._centre:
                self._centre = self.best
                self._queue.extend(self._neighbours(self._centre))
            if not self._queue:
                return self._guess()
            point = self._queue.popleft()
            if point not in self._asked:
                return point

    def _neighbours(self, centre: Point) -> list[Point]:
        values, axes = dict(centre.values), self._designs[centre.design].axes
        found = []
        for name, domain in axes.items():
            at = domain.index(values[name])
            for other in (at - 1, at + 1):
                if 0 <= other < len(domain):
                    found.append(Point.of(centre.design, {**values, name: domain[other]}))
        self._dice.shuffle(found)
        return found

    def _guess(self) -> Point | None:
        total = sum(_size(design) for design in self._designs)
        if len(self._asked) >= total:
            return None
        if self._study is None:
            self._study = _new_study(self._seed)
            for point, value in self._results.items():
                self._learn(point, value)
        for _ in range(MOST_ASKS):
            trial = self._study.ask()
            design = trial.suggest_categorical("design", list(range(len(self._designs))))
            axes = self._designs[design].axes
            point = Point.of(
                design, {name: trial.suggest_categorical(f"{design}: {name}", list(domain)) for name, domain in axes.items()}
            )
            if point not in self._asked:
                return point
        return None

    def _learn(self, point: Point, value: float | None) -> None:
        import optuna
        from optuna.distributions import CategoricalDistribution

        axes = self._designs[point.design].axes
        names = {f"{point.design}: {name}": chosen for name, chosen in point.values}
        domains = {f"{point.design}: {name}": CategoricalDistribution(list(axes[name])) for name, _ in point.values}
        state = optuna.trial.TrialState.COMPLETE if value is not None else optuna.trial.TrialState.FAIL
        self._study.add_trial(
            optuna.trial.create_trial(
                state=state,
                value=value,
                params={"design": point.design, **names},
                distributions={"design": CategoricalDistribution(list(range(len(self._designs)))), **domains},
            )
        )


def _size(design: Axes) -> int:
    count = 1
    for domain in design.axes.values():
        count *= len(domain)
    return count


def _new_study(seed: int) -> Any:
    from kernelwright.errors import ToolMissing

    try:
        import optuna
    except ImportError as error:
        raise ToolMissing(
            "optuna", "searching beyond the neighbours of a design", "pip install 'kernelwright[search]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True, n_startup_trials=6)
    return optuna.create_study(sampler=sampler)
