"""A race: kernels of one task race each other before any of them is judged, so that a search need not pay a verdict for each.

In: kernel sources. Out: for each, seconds per call beside the others of the same race, or why it cannot run. Builds run side by side,
measurements alone on the machine, with the clock's own contenders and fresh data. Who falls behind is measured no further. Nothing here
says that a kernel is right: a winner still needs a verdict. Candidates are sandboxed as always.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.judge.rejection import Rejected
from kernelwright.judge.session import Session
from kernelwright.judge.timing.clock import plan_blocks
from kernelwright.judge.timing.contender import Contender, ContenderFault, foremost
from kernelwright.judge.timing.roofline import Work
from kernelwright.target import Target
from kernelwright.workers.channel import ChannelError, Message, close_all
from kernelwright.workers.exclusive import turn

if TYPE_CHECKING:
    from kernelwright.judge.verify import Judge

STAGES = ((2, 1.25), (3, 1.08), (5, 1.0))
AGAIN = ((7, 1.0),)
FINAL = ((12, 1.0),)
LAP = ((6, 1.0),)
"""Rounds of each stage, and how much slower than the fastest a kernel may be to be measured in the next."""
BUILDS = 2


@dataclass(frozen=True)
class Place:
    """How one kernel came in: median seconds per call over its rounds, how many these were, or the fault that kept it out."""

    seconds: float | None
    rounds: int = 0
    fault: str = ""


class Race:
    """Races of one task's kernels. Holds one referee for all of them; use as a context manager."""

    def __init__(self, judge: Judge, task: Task) -> None:
        self._judge, self._task = judge, task
        self._mine = threading.Lock()
        self._dice = random.SystemRandom()
        self._host = _Entrant(self, Kernel.from_source("class ModelNew: pass\n"))

    def __enter__(self) -> Self:
        self._host.open()
        self._plan(self._host.facts)
        return self

    def __exit__(self, *_: object) -> None:
        self._host.__exit__()

    def at(self, sizes: Mapping[str, int]) -> None:
        """Race at these sizes from now on, for a task whose sizes vary."""
        reply, _ = self._host.ask_referee({"op": "at_sizes", "sizes": dict(sizes)})
        self._plan(reply["facts"])

    def _plan(self, facts: dict[str, Any]) -> None:
        work = Work.from_facts(facts)
        eager = float(facts.get("eager_seconds") or 1e-3)
        self._calls = plan_blocks(eager, work.read_bytes + work.written_bytes, Target.host().last_level_cache).calls
        self._timeout = 60 + 100 * eager

    def race(self, kernels: list[str], stages: tuple[tuple[int, float], ...] = STAGES) -> list[Place]:
        """All of them against each other, in the order given."""
        with ThreadPoolExecutor(BUILDS) as pool:
            entrants = list(pool.map(self._enter, kernels))
        contenders = {
            number: Contender(str(number), one.candidate, self._timeout)
            for number, one in enumerate(entrants)
            if not one.fault and one.candidate
        }
        try:
            with self._judge.exclusive.alone(), foremost():
                self._run(contenders, entrants, stages)
        finally:
            for entrant in entrants:
                entrant.leave()
        return [_place(contenders.get(number), entrant.fault) for number, entrant in enumerate(entrants)]

    def _enter(self, source: str) -> _Entrant:
        entrant = _Entrant(self, Kernel.from_source(source))
        entrant.join(self._host)
        try:
            entrant.load()
        except Rejected as rejected:
            entrant.fault = rejected.reason
        return entrant

    def _run(self, contenders: dict[int, Contender], entrants: list[_Entrant], stages: tuple[tuple[int, float], ...]) -> None:
        racing = list(contenders)
        self._round(contenders, racing, entrants, record=False)
        for rounds, slack in stages:
            for _ in range(rounds):
                self._round(contenders, racing, entrants, record=True)
            racing = [number for number in racing if not entrants[number].fault]
            fastest = min((_seconds(contenders[number]) for number in racing), default=0.0)
            racing = [number for number in racing if _seconds(contenders[number]) <= slack * fastest]
            if len(racing) < 2:
                return

    @turn()
    def _round(self, contenders: dict[int, Contender], racing: list[int], entrants: list[_Entrant], *, record: bool) -> None:
        drawn, fds = self._host.ask_referee({"op": "draw_timed", "calls": self._calls, "seed": self._dice.getrandbits(48)})
        align = self._dice.getrandbits(32)
        try:
            for number in self._dice.sample(racing, len(racing)):
                if entrants[number].fault:
                    continue
                try:
                    block = contenders[number].run_block(drawn["header"], fds[0], self._calls, align)
                    contenders[number].rest()
                except (ContenderFault, ChannelError) as error:
                    entrants[number].fault = f"forward failed: {error}"
                    continue
                if record:
                    contenders[number].blocks.append(block)
        finally:
            close_all(fds)


class _Entrant(Session):
    """A candidate without a referee of its own: the race's serves all, one request at a time."""

    def __init__(self, race: Race, kernel: Kernel) -> None:
        judge = race._judge
        super().__init__(judge.server, race._task, kernel, judge.threads, judge.times, judge.exclusive)
        self._turn = race._mine
        self.fault = ""

    def join(self, host: _Entrant) -> None:
        """Take part in the host's race."""
        self.referee, self.facts, self._init = host.referee, host.facts, host._init
        self._init_fds = [os.dup(fd) for fd in host._init_fds]

    def leave(self) -> None:
        """End the candidate; the referee stays."""
        self.referee = None
        self.__exit__()

    def ask_referee(self, message: Message, fds: list[int] | None = None) -> tuple[Message, list[int]]:
        with self._turn:
            return super().ask_referee(message, fds)


def _seconds(contender: Contender) -> float:
    return median(max(block.seconds, 0.0) for block in contender.blocks) if contender.blocks else float("inf")


def _place(contender: Contender | None, fault: str) -> Place:
    if contender is None or fault or not contender.blocks:
        return Place(None, 0, fault or "it was not measured")
    return Place(_seconds(contender), len(contender.blocks))
