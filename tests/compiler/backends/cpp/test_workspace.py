"""Temporaries share memory exactly when they are not alive together."""

from __future__ import annotations

import random

from kernelwright.compiler.lower.module_file.workspace import ALIGNMENT, Lifetime, layout


def test_a_chain_needs_two_places() -> None:
    chain = {f"t{k}": Lifetime(1000, k, k + 1) for k in range(20)}
    assert layout(chain).size == 2 * 1024


def test_living_ones_never_overlap() -> None:
    choose = random.Random(3)
    for _ in range(50):
        lives = {}
        for k in range(choose.randint(1, 30)):
            first = choose.randint(0, 20)
            lives[f"t{k}"] = Lifetime(choose.choice([1, 64, 100, 5000]), first, first + choose.randint(0, 6))
        made = layout(lives)
        for name, life in lives.items():
            begin = made.offsets[name]
            assert begin % ALIGNMENT == 0
            assert begin + life.size <= made.size
            for other, its in lives.items():
                apart = its.last < life.first or life.last < its.first
                there = made.offsets[other]
                assert other == name or apart or begin + life.size <= there or there + its.size <= begin


def test_nothing_needs_nothing() -> None:
    assert layout({}).size == 0
