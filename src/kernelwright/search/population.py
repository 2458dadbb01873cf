"""The population: measured points in, new points by mutation and crossover out.

Islands hold populations of their own, so that one good design does not displace all others at once; every so often the best of each
island moves to the next. For each kind of design (features.py) the best is kept as an elite, however slow the kind is: elites are the
other parent of a crossover, the more unlike the first the likelier. Parents are chosen by rank with a bonus for those that were
seldom chosen (rank-UCB). A child may be asked for at any time: no generation waits for another.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelwright.search.codegen_options import CODER
from kernelwright.search.features import Axes, kind
from kernelwright.search.point import Point

COUNT = 3
MOST_MEMBERS = 12
MIGRATE_EVERY = 10
"""Results of the whole search between two migrations."""
CURIOSITY = 0.7
CROSSOVER = 0.4
"""Share of children with two parents."""


@dataclass
class Member:
    """A measured point in an island: `value` is its relative time, `chosen` how often it became a parent."""

    point: Point
    value: float
    chosen: int = 0


@dataclass
class Island:
    members: list[Member] = field(default_factory=list)
    moved_in: int = 0

    @property
    def best(self) -> Member | None:
        return min(self.members, key=lambda member: member.value, default=None)

    def add(self, point: Point, value: float) -> bool:
        """Take a point in; the slowest leaves where there are too many."""
        if any(member.point == point for member in self.members):
            return False
        self.members.append(Member(point, value))
        self.members.sort(key=lambda member: member.value)
        del self.members[MOST_MEMBERS:]
        return True

    def parent(self) -> Member:
        """By rank, with a bonus for what was seldom chosen."""
        total = sum(member.chosen for member in self.members) + 1

        def score(at: int) -> float:
            rank = 1.0 - at / len(self.members)
            return rank + CURIOSITY * math.sqrt(math.log(total + 1) / (1 + self.members[at].chosen))

        chosen = self.members[max(range(len(self.members)), key=score)]
        chosen.chosen += 1
        return chosen


class Islands:
    """All islands, the elites, and the dice."""

    def __init__(self, designs: Sequence[Axes], dice: random.Random, count: int = COUNT) -> None:
        self._designs, self._dice = designs, dice
        self.islands = [Island() for _ in range(count)]
        self.elites: dict[str, Member] = {}
        self._home: dict[Point, int] = {}
        self._turn = 0
        self._results = 0

    def tell(self, point: Point, value: float) -> None:
        """A result goes to the island of its parent; a point of no parent to the island of its design."""
        at = self._home.get(point, point.design % len(self.islands))
        self.islands[at].add(point, value)
        name = kind(self._designs[point.design], dict(point.values))
        if name not in self.elites or value < self.elites[name].value:
            self.elites[name] = Member(point, value)
        self._results += 1
        if self._results % MIGRATE_EVERY == 0:
            self.migrate()

    def correct(self, point: Point, value: float) -> None:
        """A better measurement: wherever the point is a member or an elite."""
        for member in (*(member for island in self.islands for member in island.members), *self.elites.values()):
            if member.point == point:
                member.value = value
        for island in self.islands:
            island.members.sort(key=lambda member: member.value)

    def drop(self, design: int) -> None:
        """Nobody of a design that turned out wrong has children."""
        for island in self.islands:
            island.members = [member for member in island.members if member.point.design != design]
        self.elites = {name: elite for name, elite in self.elites.items() if elite.point.design != design}

    def migrate(self) -> int:
        """The best of each island moves on to the next; how many were new there."""
        best = [island.best for island in self.islands]
        arrived = 0
        for at, member in enumerate(best):
            into = self.islands[(at + 1) % len(self.islands)]
            if member is not None and into.add(member.point, member.value):
                into.moved_in += 1
                arrived += 1
        return arrived

    def child(self) -> Point | None:
        """A new point of the next island that has members; None where there is nobody yet."""
        for _ in self.islands:
            at = self._turn % len(self.islands)
            self._turn += 1
            if self.islands[at].members:
                parent = self.islands[at].parent().point
                mate = self._mate(parent) if self._dice.random() < CROSSOVER else None
                made = self.crossed(parent, mate) if mate is not None else self.mutated(parent)
                self._home.setdefault(made, at)
                return made
        return None

    def mutated(self, point: Point) -> Point:
        """One axis, at times two, at another of its values; near ones are likelier."""
        axes, values = self._designs[point.design].axes, dict(point.values)
        names = self._dice.sample(sorted(axes), min(len(axes), 1 + (self._dice.random() < 0.3)))
        for name in names:
            domain = axes[name]
            at = domain.index(values[name])
            others = [value for value in domain if value != values[name]]
            weights = [1.0 / abs(domain.index(value) - at) for value in others]
            values[name] = self._dice.choices(others, weights)[0]
        return Point.of(point.design, values)

    def crossed(self, one: Point, other: Point) -> Point:
        """Of one design: each axis from either. Of two: the sketch of the one, written in the other's way."""
        mine, theirs = dict(one.values), dict(other.values)
        axes = self._designs[one.design].axes
        for name, domain in axes.items():
            fits = theirs.get(name) in domain and (one.design == other.design or name.startswith(CODER))
            if fits and (one.design != other.design or self._dice.random() < 0.5):
                mine[name] = theirs[name]
        return Point.of(one.design, mine)

    def _mate(self, point: Point) -> Point | None:
        """An elite for inspiration, the likelier the more unlike the point it is; None where there is no other."""
        others = [elite.point for elite in self.elites.values() if elite.point != point]
        if not others:
            return None
        return self._dice.choices(others, [1.0 + unlike(point, other) for other in others])[0]


def unlike(a: Point, b: Point) -> float:
    """How many axes differ; another design is as far as can be."""
    if a.design != b.design:
        return 1.0 + max(len(a.values), len(b.values))
    mine, theirs = dict(a.values), dict(b.values)
    return float(sum(mine[name] != theirs.get(name) for name in mine))
