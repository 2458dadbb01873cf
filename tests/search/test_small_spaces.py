"""The bench of small spaces: what it counts as a measurement, and what it says of a search."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from kernelwright.search.features import Axes
from kernelwright.search.point import Point

TILES = (8, 16, 32, 64, 128)
WIDE = Axes({"a": TILES, "b": TILES, "c": TILES, "d": (0, 1)}, {"a": 32, "b": 32, "c": 32, "d": 0}, 1.0)


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / "tune_spaces.py"
    spec = importlib.util.spec_from_file_location("tune_spaces", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_space_has_the_axes_that_fit(bench: ModuleType) -> None:
    assert list(bench.small(WIDE, 60).axes) == ["a", "b", "d"]
    assert bench.small(WIDE, 60).defaults == {"a": 32, "b": 32, "d": 0}
    every = bench.points(bench.small(WIDE, 60))
    assert every[0] == Point.of(0, {"a": 32, "b": 32, "d": 0})
    assert len(every) == len(set(every)) == 50


@pytest.mark.parametrize("seed", range(3))
def test_the_search_looks_at_a_tenth_and_equal_code_counts_once(bench: ModuleType, seed: int) -> None:
    table, times = {}, {}
    for point in bench.points(WIDE):
        values = dict(point.values)
        if values["a"] == values["b"] == 8:
            continue  # breaks a rule
        far = abs(TILES.index(values["a"]) - 4) + abs(TILES.index(values["c"]) - 1)
        code = f"{values['a']} {values['b']} {values['c']}"  # d makes no difference
        table[point], times[code] = code, 1.0 + 0.2 * far
    code, count = bench.searched(WIDE, table, times, seed)
    assert count <= len(times) // 10
    assert times[code] < times[table[Point.of(0, WIDE.defaults)]]


def test_the_report_says_in_how_many_spaces_enough_was_found(bench: ModuleType) -> None:
    line = {"space": "core/x", "points": 50, "kernels": 40, "measurements": 4, "gain": 1.5}
    said = bench.report([{**line, "shares": [0.9, 1.0, 1.0]}, {**line, "shares": [0.9, 0.9, 1.0]}, {"space": "y", "code": "c"}])
    assert "95% found in 1 of 2 spaces" in said
    assert "| core/x | 50 | 40 | 4 | 1.50x | 100.0% | 90.0% |" in said
