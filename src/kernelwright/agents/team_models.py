"""Who thinks in a run, and what it remembers: the models of the roles, the store and its run, the memory, the switch of knowledge.

Without models the built-in mind works alone; without a store nothing is remembered beyond the job's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelwright.run.memo import Memory

if TYPE_CHECKING:
    from kernelwright.agents.models import Model
    from kernelwright.store import Run, Store


@dataclass(frozen=True)
class TeamModels:
    """Made by `order.py` for a job of the command line; by hand in tests."""

    designer: Model | None = None
    coder: Model | None = None
    store: Store | None = None
    run: Run | None = None
    memory: Memory | None = None
    knowledge: bool = True
