"""Integers seen at sample points → the function they are of the coordinates there.

In: a matrix of coordinates (one row a sample, one column a coordinate) and what was seen in each row. Out: an `Affine` form that
gives exactly that in every row, if need be with quotients and remainders of one coordinate; or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Matrix = Any


@dataclass(frozen=True)
class Part:
    """`coordinate // by % modulo` (`modulo` 0: no remainder is taken)."""

    coordinate: int
    by: int = 1
    modulo: int = 0


@dataclass(frozen=True)
class Affine:
    """`offset + sum(factor * part)`."""

    offset: int
    terms: tuple[tuple[Part, int], ...] = ()

    def values(self, points: Matrix) -> Any:
        """Its values in all rows."""
        total: Any = np.full(len(points), self.offset, dtype=np.int64)
        for part, factor in self.terms:
            column = points[:, part.coordinate] // part.by
            total += factor * (column % part.modulo if part.modulo else column)
        return total

    def coordinates(self) -> frozenset[int]:
        """The coordinates it depends on."""
        return frozenset(part.coordinate for part, _ in self.terms)

    def plain(self) -> dict[int, int] | None:
        """Factors by coordinate, when there is neither quotient nor remainder."""
        if any(part.by != 1 or part.modulo for part, _ in self.terms):
            return None
        return {part.coordinate: factor for part, factor in self.terms}


class Space:
    """Sample points, prepared once for many fits. `extents` are those of the coordinates (1: it is always zero)."""

    def __init__(self, points: Matrix, extents: Sequence[int]) -> None:
        self.points = points
        self.extents = list(extents)
        self.varying = [k for k in range(points.shape[1]) if len(points) and (points[:, k] != points[0, k]).any()]
        self._inverse: dict[Any, Any] = {}

    def fit(self, seen: Any, quotients: bool = True) -> Affine | None:
        """The form that gives what was seen."""
        seen = np.asarray(seen, dtype=np.int64)
        if not len(seen):
            return Affine(0)
        if (seen == seen[0]).all():
            return Affine(int(seen[0]))
        plain = [Part(k) for k in self.varying]
        found = self._solve(plain, seen)
        if found is not None or not quotients:
            return found
        for k in self.varying:
            for by in _divisors(self.extents[k]):
                rest = [p for p in plain if p.coordinate != k]
                found = self._solve([*rest, Part(k, by), Part(k, 1, by)], seen)
                if found is not None:
                    return found
        return None

    def _solve(self, parts: list[Part], seen: Any) -> Affine | None:
        key = tuple(parts)
        if key not in self._inverse:
            columns = []
            for part in parts:
                column = self.points[:, part.coordinate] // part.by
                columns.append(column % part.modulo if part.modulo else column)
            matrix = np.stack([*columns, np.ones(len(self.points), dtype=np.int64)], axis=1).astype(np.float64)
            chosen = _independent(matrix)
            self._inverse[key] = (matrix, chosen, np.linalg.pinv(matrix[:, chosen]))
        matrix, chosen, inverse = self._inverse[key]
        solved = inverse @ seen.astype(np.float64)
        factors = np.zeros(matrix.shape[1])
        factors[chosen] = np.round(solved)
        if (matrix @ factors != seen).any():
            return None
        terms = tuple((part, int(f)) for part, f in zip(parts, factors[:-1], strict=True) if f)
        return Affine(int(factors[-1]), terms)


def _independent(matrix: Any) -> list[int]:
    """Columns that are linearly independent, the last (the offset) first of all, then in order."""
    chosen: list[int] = []
    sample = matrix if len(matrix) <= 2000 else matrix[np.random.default_rng(0).choice(len(matrix), 2000, replace=False)]
    basis: list[Any] = []
    for k in [matrix.shape[1] - 1, *range(matrix.shape[1] - 1)]:
        column = sample[:, k].copy()
        scale = float(np.abs(column).max()) or 1.0
        column /= scale
        for _ in range(2):
            for b in basis:
                column -= b * (b @ column)
        size = float(np.linalg.norm(column))
        if size > 1e-7 * np.sqrt(len(sample)):
            basis.append(column / size)
            chosen.append(k)
    return sorted(chosen)


def _divisors(extent: int) -> list[int]:
    return [d for d in range(2, min(extent, 4097)) if extent % d == 0][:24]
