"""Where variants of a search are written and raced, and what is known of them.

In: points. Out: kernels and their places. What was found out before is remembered by the run (`Workbench.finding`).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from kernelwright.core.kernel import Kernel
from kernelwright.judge.timing.race import STAGES, Place, Race
from kernelwright.run.attempts import Attempt
from kernelwright.run.workbench import Workbench, digest
from kernelwright.search.features import Axes
from kernelwright.search.point import Point
from kernelwright.search.worker import SearchWorker, Written


@dataclass(frozen=True)
class Variant:
    """A kernel of the search. `relative` is its time over the seed's: less is faster. The seed has no point where no design has it."""

    kernel: Kernel
    sketch: str
    point: Point | None = None
    relative: float = 1.0


@dataclass(frozen=True)
class Tuned:
    """What a search came to. `path` lists the changes that were gains on the way, each with the factor that it brought."""

    attempt: Attempt
    gain: float
    ended: str
    raced: int
    path: tuple[tuple[str, float], ...] = ()


@dataclass
class State:
    """A search under way: the fastest, all that was measured by the hash of its code, and how it came to this."""

    leader: Variant
    variants: dict[str, Variant]
    raced: int = 0
    stale: int = 0
    path: list[tuple[str, float]] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    right: set[int] = field(default_factory=set)
    """Designs of which a kernel was judged right."""
    wrong: set[str] = field(default_factory=set)
    """Code of kernels of designs that are not."""


class Races:
    """Where variants are written and raced. SearchWorker and race are opened when the first thing is to be done that is not remembered."""

    def __init__(
        self, bench: Workbench, stack: ExitStack, sketches: tuple[str, ...], own: bool, options: dict[str, int]
    ) -> None:
        self._bench, self._stack = bench, stack
        self._given = (sketches, own, options)
        self._open_worker: SearchWorker | None = None
        self._open_race: Race | None = None
        key = {"sketches": [digest(sketch) for sketch in sketches], "own": own, "options": options}
        found = bench.finding("spaces", key, lambda: {"designs": [asdict(design) for design in self._worker().designs]})
        self.designs = [
            Axes(**{**item, "axes": {name: tuple(values) for name, values in item["axes"].items()}})
            for item in found["designs"]
        ]

    def write(self, point: Point) -> Written | None:
        """The kernel for a point; None where it breaks a rule."""
        return self._worker().write(point)

    def fault(self, variant: Variant) -> str:
        """What the judge finds wrong with it, if anything."""
        verdict = self._bench.tried(variant.kernel)
        return "" if verdict.ok else verdict.reason

    def race(self, variants: list[Variant], stages: tuple[tuple[int, float], ...] = STAGES, lap: int = 0) -> list[Place]:
        """All beside each other, each in a process of its own; remembered. Another `lap` is another race."""
        key = {
            "kernels": [variant.kernel.hash for variant in variants],
            "stages": [list(stage) for stage in stages],
            "lap": lap,
        }

        def race() -> dict[str, Any]:
            return {
                "places": [
                    asdict(place) for place in self._racing().race([variant.kernel.source for variant in variants], stages)
                ]
            }

        return [Place(**place) for place in self._bench.finding("heat", key, race)["places"]]

    def _worker(self) -> SearchWorker:
        if self._open_worker is None:
            job, (sketches, own, options) = self._bench.job, self._given
            worker = SearchWorker(self._bench.drafter, job, sketches=sketches, own=own, options=options)
            self._open_worker = self._stack.enter_context(worker)
        return self._open_worker

    def _racing(self) -> Race:
        if self._open_race is None:
            self._open_race = self._stack.enter_context(Race(self._bench.judge, self._bench.task))
        return self._open_race
