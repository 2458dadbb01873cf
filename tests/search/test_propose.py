"""Proposals: designs first, then neighbours of the best, then guesses; never the same point twice, and the same points every time."""

from __future__ import annotations

import math
import random

import pytest

from kernelwright.search.cost_model import CostModel
from kernelwright.search.features import Axes
from kernelwright.search.point import Point
from kernelwright.search.propose import Proposer

DOMAIN = (8, 16, 32, 64, 128)
DESIGNS = [
    Axes({"a": DOMAIN, "b": DOMAIN, "c": (0, 1)}, {"a": 32, "b": 32, "c": 0}, cost=2.0),
    Axes({"a": DOMAIN}, {"a": 64}, cost=1.0),
]


def cost(point: Point) -> float:
    values = dict(point.values)
    if point.design == 1:
        return 5.0
    return abs(DOMAIN.index(values["a"]) - 4) + abs(DOMAIN.index(values["b"]) - 1) + (1 - values["c"]) + 0.5


def searched(count: int, batch: int = 4) -> tuple[Proposer, list[Point]]:
    proposer, asked = Proposer(DESIGNS), []
    while len(asked) < count and (points := proposer.ask(batch)):
        asked += points
        for point in points:
            proposer.tell(point, cost(point))
    return proposer, asked


def test_designs_come_first_in_the_order_of_their_cost() -> None:
    assert Proposer(DESIGNS).ask(2) == [Point.of(1, {"a": 64}), Point.of(0, {"a": 32, "b": 32, "c": 0})]


def test_a_smooth_space_is_descended_with_few_measurements() -> None:
    proposer, asked = searched(24)
    assert proposer.best is not None
    assert cost(proposer.best) == 0.5
    assert len(asked) <= 24


def test_no_point_is_proposed_twice_and_a_small_space_is_used_up() -> None:
    pytest.importorskip("optuna")
    proposer, asked = Proposer([DESIGNS[1]]), []
    while points := proposer.ask(2):
        asked += points
        for point in points:
            proposer.tell(point, float(dict(point.values)["a"]))
    assert len(asked) == len(set(asked)) == len(DOMAIN)


def test_the_same_results_lead_to_the_same_proposals() -> None:
    pytest.importorskip("optuna")
    assert searched(36)[1] == searched(36)[1]


def test_failures_are_not_the_best() -> None:
    proposer = Proposer(DESIGNS)
    first, second = proposer.ask(2)
    proposer.tell(first, None)
    proposer.tell(second, 2.0)
    assert proposer.best == second


def test_the_estimator_begins_with_the_best_of_a_trusted_model() -> None:
    pytest.importorskip("optuna")
    every = [Point.of(0, {"a": a, "b": b, "c": c}) for a in DOMAIN for b in DOMAIN for c in (0, 1)]
    rows = Proposer(DESIGNS[:1])
    past = [(rows.row(point), math.log(cost(point))) for point in every for _ in range(3)]
    random.Random(1).shuffle(past)
    model = CostModel(past)
    assert model.trusted
    proposer = Proposer(DESIGNS[:1], model)
    order = sorted(every, key=lambda point: model.guess(rows.row(point)))
    for _ in range(3):
        guess = proposer._guess()
        assert guess is not None
        assert order.index(guess) < 8
        proposer._asked.add(guess)


def test_without_a_model_that_is_trusted_the_estimator_begins_by_itself() -> None:
    assert Proposer(DESIGNS)._promising() == []
