"""What a language plugs in: lowering a sketch to a kernel file, what it needs of the machine, and its skills.

A language is one object found under the entry point group `kernelwright.dsl`, so that another package can add one.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from kernelwright.errors import ConfigError
from kernelwright.sketch.nodes import Sketch

State = Sequence[tuple[str, Sequence[int], str, bool]]
"""(name, shape, dtype, is it a buffer) for each entry of the reference's state_dict."""


class Language(Protocol):
    """One DSL. `lower` raises SketchError for what it cannot express; `facts` is what `doctor` shows."""

    name: str
    skills: Path

    def lower(self, sketch: Sketch, *, state: State = (), shapes: Sequence[Sketch] = (), threads: int | None = None) -> str:
        """One self-contained Python file that defines `ModelNew`; `shapes` are sketches for the task's other input shapes."""

    def facts(self) -> dict[str, str]:
        """What of this machine the language uses, and what is missing, by name."""


def languages() -> dict[str, Language]:
    """All installed languages by name."""
    return {entry.name: entry.load() for entry in entry_points(group="kernelwright.dsl")}


def language(name: str) -> Language:
    """The language of this name; an unknown one is told with the names that exist."""
    for entry in entry_points(group="kernelwright.dsl"):
        if entry.name == name:
            found: Language = entry.load()
            return found
    known = ", ".join(sorted(entry.name for entry in entry_points(group="kernelwright.dsl")))
    raise ConfigError(f"there is no language {name!r}; installed are: {known}")
