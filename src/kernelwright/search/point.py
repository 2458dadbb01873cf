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

    def words(self, defaults: Mapping[str, int]) -> str:
        """The point as what was changed in its design."""
        changed = [f"{name} {value}" for name, value in self.values if value != defaults.get(name)]
        return f"design {self.design + 1}" + (f" with {', '.join(changed)}" if changed else "")
