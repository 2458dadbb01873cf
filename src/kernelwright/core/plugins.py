"""What packages plug in, found by entry points: a group and a name in, the object out. Nothing is imported before it is asked for.

Ours are among them (pyproject.toml), so a language of another package has all that a built-in one has. What such an object must be is
said where it is used: a language in `compiler/language.py`.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

LANGUAGES = "kernelwright.dsl"
OPERATORS = "kernelwright.operators"
DEFAULT_LANGUAGE = "cpp"
"""What a kernel is written in when nobody says: a compiler is all it takes, and every machine has one."""


def names(group: str = LANGUAGES) -> tuple[str, ...]:
    """The names that are installed."""
    return tuple(dict.fromkeys(entry.name for entry in entry_points(group=group)))


def load(name: str, group: str = LANGUAGES) -> Any | None:
    """The object of this name; None where nothing is installed under it."""
    return next((entry.load() for entry in entry_points(group=group) if entry.name == name), None)
