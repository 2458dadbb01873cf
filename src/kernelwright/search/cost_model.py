"""The cost model: rows of features with measured times in, a guess for other rows out; numpy only.

It is a ridge regression of the logarithm of time over features (features.py), fitted to what the store knows of this target and to
the run's own measurements, which weigh more. Every guess that is made before its measurement is kept beside it, so that the model is
checked all the time: `agreement` is the rank correlation between the two, and a model that does not agree is not `trusted`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, float]

OWN_WEIGHT, PAST_WEIGHT = 1.0, 0.3
RIDGE = 1.0
"""Pulls a feature that was seen once halfway back to "makes no difference"."""
MOST_PAST = 4000
ENOUGH = 10
"""Guesses that were checked before their agreement says anything; until then the past's own is asked."""
AGREES = 0.15


class CostModel:
    """Learns as a search goes on. Values are logarithms of time relative to the search's first kernel: less is faster."""

    def __init__(self, past: Sequence[tuple[Row, float]] = ()) -> None:
        self._past = list(past)[-MOST_PAST:]
        self._own: list[tuple[Row, float]] = []
        self._checked: list[tuple[float, float]] = []
        self._weights: dict[str, float] | None = None
        self.past_agreement = _held_out(self._past)

    def guess(self, row: Row) -> float:
        """The expected value."""
        if self._weights is None:
            self._weights = _fitted(self._past, self._own)
        weights = self._weights
        return sum(weights.get(name, 0.0) * value for name, value in row.items())

    def tell(self, row: Row, value: float) -> None:
        """A measurement; the guess made before it is put down beside it."""
        self._checked.append((self.guess(row), value))
        self._own.append((row, value))
        self._weights = None

    @property
    def agreement(self) -> float | None:
        """Rank correlation between guesses and the measurements that followed; None where there are too few, or all are equal."""
        guesses = [guess for guess, _ in self._checked]
        return rank_correlation(guesses, [value for _, value in self._checked]) if len(guesses) >= ENOUGH else None

    @property
    def checked(self) -> int:
        return len(self._checked)

    @property
    def trusted(self) -> bool:
        """Whether its order is better than chance, as far as is known."""
        known = self.agreement if len(self._checked) >= ENOUGH else self.past_agreement
        return known is not None and known >= AGREES


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's, ties by their mean rank; None where one side does not vary."""
    import numpy as np

    x, y = _ranks(a), _ranks(b)
    if len(a) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: Sequence[float]) -> Any:
    import numpy as np

    known = np.asarray(values, dtype=float)
    _, inverse, counts = np.unique(known, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2.0)[inverse]


def _fitted(past: Sequence[tuple[Row, float]], own: Sequence[tuple[Row, float]]) -> dict[str, float]:
    import numpy as np

    rows = [*past, *own]
    names = sorted({name for row, _ in rows for name in row})
    if not rows or not names:
        return {}
    column = {name: at for at, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    for at, (row, _) in enumerate(rows):
        for name, value in row.items():
            matrix[at, column[name]] = value
    weight = np.array([PAST_WEIGHT] * len(past) + [OWN_WEIGHT] * len(own))
    values = np.array([value for _, value in rows])
    left = matrix.T @ (matrix * weight[:, None]) + RIDGE * np.eye(len(names))
    solved = np.linalg.solve(left, matrix.T @ (values * weight))
    return dict(zip(names, map(float, solved), strict=True))


def _held_out(rows: Sequence[tuple[Row, float]], folds: int = 4) -> float | None:
    """The agreement on parts that were left out of the fitting, contiguous in time so that one run is rarely on both sides."""
    if len(rows) < 4 * ENOUGH:
        return None
    guesses: list[float] = []
    size = -(-len(rows) // folds)
    for at in range(0, len(rows), size):
        weights = _fitted([*rows[:at], *rows[at + size :]], ())
        guesses += [sum(weights.get(name, 0.0) * value for name, value in row.items()) for row, _ in rows[at : at + size]]
    return rank_correlation(guesses, [value for _, value in rows])
