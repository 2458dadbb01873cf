"""Which points of a search to try next: designs with their axes in, points out, results back in.

1. The designs as they are, in the order of the designer's estimates.
2. The neighbours of the best point so far, one axis at a time; then all axes at once that were gains alone.
3. Children of the population (islands.py) and guesses of optuna's estimator, in turn.

Where the cost model is trusted it says which neighbours come first, which of several children is worth measuring, and what the
estimator begins with. No point is proposed twice. The dice are seeded: the same results lead to the same proposals, which is what
makes a search that was killed go on where it was.
"""

from __future__ import annotations

import math
import random
import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any

from kernelwright.search.cost_model import CostModel
from kernelwright.search.features import Axes, row
from kernelwright.search.point import Point
from kernelwright.search.population import Islands

MOST_ASKS = 60
"""Guesses in a row that are known already before the space counts as used up."""
BROOD = 12
"""Children of which a trusted cost model picks one."""
POOL, SEEDS = 300, 4
"""Points by the dice of which a trusted cost model's best are what the estimator begins with."""
GAIN = 0.01
"""What a change must bring alone to be tried together with others."""


class Proposer:
    """Asked for points and told how they did: seconds relative to one common contender (less is better), None for what failed."""

    def __init__(self, designs: Sequence[Axes], model: CostModel | None = None, seed: int = 0) -> None:
        self._designs = designs
        self._dice = random.Random(seed)
        self._seed = seed
        self.model = model or CostModel()
        self.islands = Islands(designs, self._dice)
        self._least = min((design.cost for design in designs if design.cost), default=0.0)
        order = sorted(range(len(designs)), key=lambda number: designs[number].cost)
        self._queue = deque(Point.of(number, designs[number].defaults) for number in order)
        self._asked: set[Point] = set()
        self._results: dict[Point, float | None] = {}
        self._centres: set[Point] = set()
        self._joined: set[Point] = set()
        self._dropped: set[int] = set()
        self._children = 0
        self._study: Any = None

    @property
    def best(self) -> Point | None:
        """The fastest so far."""
        done = {point: value for point, value in self._results.items() if value is not None}
        return min(done, key=lambda point: done[point]) if done else None

    @property
    def settled(self) -> bool:
        """Whether every single change of the best point was tried."""
        return not self._queue and self.best is not None and self.best in self._centres

    def row(self, point: Point) -> dict[str, float]:
        """What the cost model sees of a point."""
        return row(self._designs[point.design], dict(point.values), self._least)

    def ask(self, count: int) -> list[Point]:
        """Up to so many new points; none when every one was tried."""
        found: list[Point] = []
        while len(found) < count and (point := self._next()) is not None:
            self._asked.add(point)
            found.append(point)
        return found

    def tell(self, point: Point, value: float | None) -> None:
        self._results[point] = value
        if value is not None:
            self.model.tell(self.row(point), math.log(value))
            self.islands.tell(point, value)
        if self._study is not None:
            self._learn(point, value)

    def correct(self, point: Point, value: float) -> None:
        """A better measurement of a point that was told before: who leads depends on it, what was learnt from it may stay."""
        self._results[point] = value
        self.islands.correct(point, value)

    def drop(self, design: int) -> None:
        """A design that turned out wrong: none of its points counts, and no further one is proposed."""
        self._dropped.add(design)
        self._results |= {point: None for point in self._results if point.design == design}
        self.islands.drop(design)

    def _new(self, point: Point) -> bool:
        return point not in self._asked and point.design not in self._dropped

    def _next(self) -> Point | None:
        while True:
            if not self._queue:
                self._refill()
            if not self._queue:
                return self._child() if self._children % 2 == 0 else self._guess()
            point = self._queue.popleft()
            if self._new(point):
                return point

    def _refill(self) -> None:
        """The neighbours of a new best; then what its gains are together."""
        best = self.best
        if best is None:
            return
        if best not in self._centres:
            self._centres.add(best)
            self._queue.extend(self._neighbours(best))
        elif best not in self._joined:
            self._joined.add(best)
            self._queue.extend(self._together(best))

    def _neighbours(self, centre: Point) -> list[Point]:
        values, axes = dict(centre.values), self._designs[centre.design].axes
        found = []
        for name, domain in axes.items():
            at = domain.index(values[name])
            for other in (at - 1, at + 1):
                if 0 <= other < len(domain):
                    found.append(Point.of(centre.design, {**values, name: domain[other]}))
        self._dice.shuffle(found)
        return sorted(found, key=lambda point: self.model.guess(self.row(point))) if self.model.trusted else found

    def _together(self, centre: Point) -> list[Point]:
        """All values that were gains when they alone were changed, in a design that the best belongs to."""
        base = dict(self._designs[centre.design].defaults)
        own = self._results.get(Point.of(centre.design, base))
        if own is None:
            return []
        gains: dict[str, tuple[float, int]] = {}
        for point, value in self._results.items():
            changed = [(name, to) for name, to in point.values if to != base.get(name)]
            if point.design == centre.design and value is not None and value < own * (1 - GAIN) and len(changed) == 1:
                name, to = changed[0]
                gains[name] = min(gains.get(name, (value, to)), (value, to))
        mine = dict(centre.values)
        joined = {**mine, **{name: to for name, (_, to) in gains.items() if mine[name] == base[name]}}
        return [Point.of(centre.design, joined)] if joined != mine else []

    def _child(self) -> Point | None:
        self._children += 1
        brood: list[Point] = []
        for _ in range(MOST_ASKS):
            point = self.islands.child()
            if point is None:
                break
            if self._new(point) and point not in brood:
                brood.append(point)
            if len(brood) >= (BROOD if self.model.trusted else 1):
                break
        if not brood:
            return self._guess()
        return min(brood, key=lambda point: self.model.guess(self.row(point))) if len(brood) > 1 else brood[0]

    def _guess(self) -> Point | None:
        self._children += 1
        total = sum(_size(design) for number, design in enumerate(self._designs) if number not in self._dropped)
        if sum(point.design not in self._dropped for point in self._asked) >= total:
            return None
        if self._study is None:
            self._study = _new_study(self._seed)
            for point, value in self._results.items():
                self._learn(point, value)
            for point in self._promising():
                self._study.enqueue_trial(_parameters(point))
        for _ in range(MOST_ASKS):
            trial = self._study.ask()
            design = trial.suggest_categorical("design", list(range(len(self._designs))))
            axes = self._designs[design].axes
            point = Point.of(
                design, {name: trial.suggest_categorical(f"{design}: {name}", list(domain)) for name, domain in axes.items()}
            )
            if self._new(point):
                return point
        return self._unseen()

    def _unseen(self) -> Point | None:
        """A point by the dice, where the estimator only repeats itself."""
        return next((point for _ in range(MOST_ASKS) if self._new(point := self._thrown())), None)

    def _promising(self) -> list[Point]:
        """The cost model's best of many points that were not tried; none where it is not trusted."""
        if not self.model.trusted:
            return []
        pool = dict.fromkeys(point for _ in range(POOL) if self._new(point := self._thrown()))
        return sorted(pool, key=lambda point: self.model.guess(self.row(point)))[:SEEDS]

    def _thrown(self) -> Point:
        design = self._dice.randrange(len(self._designs))
        return Point.of(design, {name: self._dice.choice(domain) for name, domain in self._designs[design].axes.items()})

    def _learn(self, point: Point, value: float | None) -> None:
        import optuna
        from optuna.distributions import CategoricalDistribution

        axes = self._designs[point.design].axes
        domains = {f"{point.design}: {name}": CategoricalDistribution(list(axes[name])) for name, _ in point.values}
        state = optuna.trial.TrialState.COMPLETE if value is not None else optuna.trial.TrialState.FAIL
        self._study.add_trial(
            optuna.trial.create_trial(
                state=state,
                value=value,
                params=_parameters(point),
                distributions={"design": CategoricalDistribution(list(range(len(self._designs)))), **domains},
            )
        )


def _parameters(point: Point) -> dict[str, int]:
    """A point in the estimator's words: every design has parameters of its own."""
    return {"design": point.design, **{f"{point.design}: {name}": value for name, value in point.values}}


def _size(design: Axes) -> int:
    count = 1
    for domain in design.axes.values():
        count *= len(domain)
    return count


def _new_study(seed: int) -> Any:
    from kernelwright.core.errors import ToolMissing

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
