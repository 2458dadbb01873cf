"""The Point noun: one choice in a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A design by its number, and a value for each of its axes."""

    design: int
    values: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, design: int, values: Mapping[str, int]) -> Point:
        return cls(design, tuple(sorted(values.items())))

    def words(self, defaults: Mapping[str, int], note: str = "") -> str:
        """The point as what was changed in its design; `note` says what is special about that."""
        changed = [f"{name} {value}" for name, value in self.values if value != defaults.get(name)]
        design = f"design {self.design + 1}" + (f" ({note})" if note else "")
        return design + (f" with {', '.join(changed)}" if changed else "")
