"""The cost model: learns what matters, says how well it agrees, and is not trusted before it does."""

from __future__ import annotations

import random

from kernelwright.search.cost_model import CostModel, rank_correlation


def measured(dice: random.Random, names: list[str]) -> tuple[dict[str, float], float]:
    row = {name: 1.0 for name in names if dice.random() < 0.4}
    return row, -0.3 * row.get("wide", 0.0) + 0.5 * row.get("slow", 0.0) + dice.gauss(0, 0.02)


def test_it_learns_what_makes_a_kernel_fast() -> None:
    dice, model = random.Random(0), CostModel()
    for _ in range(40):
        model.tell(*measured(dice, ["wide", "slow", "idle"]))
    assert model.guess({"wide": 1.0}) < model.guess({"idle": 1.0}) < model.guess({"slow": 1.0})
    assert model.agreement is not None
    assert model.agreement > 0.7
    assert model.trusted


def test_noise_is_not_trusted() -> None:
    dice, model = random.Random(1), CostModel()
    for _ in range(60):
        model.tell({name: 1.0 for name in "abcdef" if dice.random() < 0.5}, dice.gauss(0, 1))
    assert model.agreement is not None
    assert abs(model.agreement) < 0.4
    assert not CostModel().trusted


def test_the_past_counts_before_the_first_measurement_and_is_checked_on_what_was_held_out() -> None:
    dice = random.Random(2)
    model = CostModel([measured(dice, ["wide", "slow", "idle"]) for _ in range(80)])
    assert model.past_agreement is not None
    assert model.past_agreement > 0.7
    assert model.trusted
    assert model.guess({"wide": 1.0}) < 0 < model.guess({"slow": 1.0})


def test_rank_correlation_knows_ties_and_constants() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == 1.0
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == -1.0
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None
    assert 0.9 < (rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) or 0) < 1.0
