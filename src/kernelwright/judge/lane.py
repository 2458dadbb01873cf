"""One contender as the parent sees it while the clock runs: a worker in, timed blocks and suspicions out.

A lane sends the stopwatch's messages (stopwatch.py), holds each claim against the parent's own wall clock, and looks at the
process's CPU time in windows in which an honest kernel is idle. While another lane runs, this one is stopped (SIGSTOP): nobody
can disturb a rival, and threads that spin after a parallel region cost nothing.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kernelwright.judge import family
from kernelwright.judge.channel import Channel, ChannelGarbage, Message, close_all

SETTLE_SECONDS = 0.015
"""Longer than OpenMP's worker threads spin after a region (measured: up to 8 ms), so that spinning is not taken for work."""
WINDOW_SECONDS = 0.012
BUSY_SHARE = 0.4


class Worker(Protocol):
    """What the clock needs of a worker process (template.py)."""

    @property
    def channel(self) -> Channel: ...
    @property
    def pid(self) -> int: ...  # of the keeper, whose first child is the worker; or of the worker itself
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def cpu_seconds(self) -> float: ...


@dataclass(frozen=True)
class Block:
    """n calls back to back: seconds per call by the stopwatch, and the parent's view of the same block. `preparing` is the CPU
    time of the main thread while it received its inputs: unlike wall time, other programs do not lengthen it. `first` is the
    share of the block's time that its first call took."""

    seconds: float
    calls: int
    claimed: float
    wall: float
    preparing: float
    first: float


class LaneFault(Exception):
    """The contender did not do what it was asked in a timed block. `reply` is what it said instead."""

    def __init__(self, name: str, reply: Message) -> None:
        super().__init__(f"{name}: {reply.get('error', reply)}")
        self.name = name
        self.reply = reply


@dataclass
class Lane:
    """Times one worker. `blocks` holds the recorded blocks in the order of the rounds."""

    name: str
    worker: Worker
    timeout: float
    blocks: list[Block] = field(default_factory=list)
    busy_windows: int = 0

    def run_block(self, header: dict[str, Any], fd: int, calls: int, align: int, *, watch: bool = False) -> Block:
        """Prepare, (watch,) run, (watch). The lane is left running: its outputs may be asked for; call `rest` afterwards."""
        self.worker.resume()
        processes = self._processes()
        give_precedence(processes)
        idle = main_thread_seconds(processes[0])
        self._ask({"op": "time_prepare", "header": header, "align": align}, [fd])
        preparing = main_thread_seconds(processes[0]) - idle
        if watch:
            self._watch_idle()
        before = time.perf_counter()
        reply, _ = self._ask({"op": "time_go"})
        wall = time.perf_counter() - before
        nanoseconds, first, done = (_count(reply.get(key)) for key in ("ns", "first_ns", "calls"))
        if done != calls:
            raise ChannelGarbage("a timed block reported another number of calls than it was asked for")
        if watch:
            self._watch_idle()
        claimed = nanoseconds * 1e-9
        return Block(claimed / calls, calls, claimed, wall, preparing, first / nanoseconds)

    def fetch_outputs(self, call: int) -> tuple[Message, list[int]]:
        """The outputs of one call of the last block; the descriptors become the caller's."""
        reply, fds = self._ask({"op": "time_outputs", "call": call}, keep=True)
        if len(fds) != 2:
            close_all(fds)
            raise ChannelGarbage("a timed block handed over no outputs")
        return reply, fds

    def rest(self) -> None:
        """Free the block's memory and stop the process until its next turn."""
        take_precedence_back(self._processes())
        self._ask({"op": "time_release"})
        self.worker.pause()

    def _processes(self) -> list[int]:
        """The worker, then whatever it started."""
        return family.descendants(self.worker.pid) or [self.worker.pid]

    def _watch_idle(self) -> None:
        """Between two requests an honest kernel does nothing. A second look, later, tells slow spinning from work."""
        if self._busy_share(SETTLE_SECONDS) > BUSY_SHARE and self._busy_share(4 * SETTLE_SECONDS) > BUSY_SHARE:
            self.busy_windows += 1

    def _busy_share(self, settle: float) -> float:
        time.sleep(settle)
        before, start = self.worker.cpu_seconds(), time.perf_counter()
        time.sleep(WINDOW_SECONDS)
        return (self.worker.cpu_seconds() - before) / (time.perf_counter() - start)

    def _ask(self, message: Message, fds: list[int] | None = None, *, keep: bool = False) -> tuple[Message, list[int]]:
        reply, received = self.worker.channel.request(message, fds or [], timeout=self.timeout)
        if not keep or not reply.get("ok"):
            close_all(received)
            received = []
        if not reply.get("ok"):
            raise LaneFault(self.name, reply)
        return reply, received


def give_precedence(processes: list[int]) -> None:
    """Put all threads of a contender before other programs, where we may (root). On a busy machine the threads of one kernel
    otherwise land on one core and wait out each other's time slices at every barrier: 0.1 ms become 10 ms. Real-time threads
    are moved to a core of their own at once. Every contender alike, so no ratio gains by it; 5 % stay for other programs."""
    _schedule(processes, os.SCHED_RR, 1)


def take_precedence_back(processes: list[int]) -> None:
    """Between its turns a contender is a program like any other."""
    _schedule(processes, os.SCHED_OTHER, 0)


def _schedule(processes: list[int], policy: int, priority: int) -> None:
    for pid in processes:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


def main_thread_seconds(pid: int) -> float:
    """CPU time of a process's first thread, to the nanosecond while it waits; 0 where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


def _count(number: Any) -> int:
    """A positive whole number as a worker must report it: `True`, NaN and what else JSON can say are refused."""
    if type(number) is not int or number <= 0:
        raise ChannelGarbage("a timed block reported no time")
    return number
