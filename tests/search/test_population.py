"""The population: migration moves kernels, elites are kept by kind, children are points of their design's space."""

from __future__ import annotations

import random

from kernelwright.search.features import Axes
from kernelwright.search.point import Point
from kernelwright.search.population import Islands, unlike

TILES = (8, 16, 32, 64)
DESIGNS = [
    Axes({"T": TILES, "coder fetch": (0, 1)}, {"T": 32, "coder fetch": 1}, 1.0, {"T": "tile of a parallel loop"}, {}, family)
    for family in ("rows", "columns", "blocks")
]


def point(design: int, tile: int, fetch: int = 1) -> Point:
    return Point.of(design, {"T": tile, "coder fetch": fetch})


def filled() -> Islands:
    islands = Islands(DESIGNS, random.Random(0))
    for design in range(3):
        islands.tell(point(design, 32), 1.0 + design)
    return islands


def test_migration_moves_the_best_of_each_island_to_the_next() -> None:
    islands = filled()
    assert [len(island.members) for island in islands.islands] == [1, 1, 1]
    assert islands.migrate() == 3
    assert islands.islands[1].best is not None
    assert islands.islands[1].best.point == point(0, 32)
    assert islands.migrate() == 2  # what came from the first island moves on; the others are there already


def test_elites_are_the_best_of_their_kind() -> None:
    islands = filled()
    islands.tell(point(0, 8), 5.0)
    islands.tell(point(0, 16), 4.0)
    kinds = {name.rpartition("; ")[2] + " " + name.partition(" ")[0]: elite.point for name, elite in islands.elites.items()}
    assert len(islands.elites) == 4
    assert point(0, 16) in kinds.values()
    assert point(0, 8) not in kinds.values()


def test_children_are_new_points_of_a_space() -> None:
    islands = filled()
    children = [islands.child() for _ in range(60)]
    assert {child.design for child in children if child} == {0, 1, 2}
    for child in children:
        assert child is not None
        values = dict(child.values)
        assert values["T"] in TILES
        assert values["coder fetch"] in (0, 1)


def test_a_crossover_of_two_designs_keeps_the_sketch_and_takes_the_way_of_writing() -> None:
    islands = filled()
    assert islands.crossed(point(0, 8, 1), point(1, 64, 0)) == point(0, 8, 0)


def test_seldom_chosen_parents_get_their_turn() -> None:
    islands = Islands(DESIGNS[:1], random.Random(0), count=1)
    for number, tile in enumerate(TILES):
        islands.tell(point(0, tile), 1.0 + number)
    island = islands.islands[0]
    chosen = [island.parent().point for _ in range(30)]
    assert set(chosen) == {point(0, tile) for tile in TILES}
    assert chosen.count(point(0, 8)) >= chosen.count(point(0, 64))


def test_an_unlike_elite_is_the_likelier_partner() -> None:
    islands = filled()
    islands.tell(point(0, 8), 5.0)
    mates = [islands._mate(point(0, 32)) for _ in range(300)]
    assert set(mates) == {point(0, 8), point(1, 32), point(2, 32)}
    assert unlike(point(0, 32), point(0, 8)) == 1.0 < unlike(point(0, 32), point(1, 32))
    assert mates.count(point(0, 8)) < min(mates.count(point(1, 32)), mates.count(point(2, 32)))
