"""One contender as the parent sees it while the clock runs: a worker in, timed blocks and suspicions out.

A contender sends the stopwatch's messages (stopwatch.py), holds each claim against the parent's own wall clock, and looks at the
process's CPU time in windows in which an honest kernel is idle. While another contender runs, this one is stopped (SIGSTOP): nobody
can disturb another, and threads that spin after a parallel region cost nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from kernelwright.workers import processes
from kernelwright.workers.channel import Channel, ChannelGarbage, Message, close_all

SETTLE_SECONDS = 0.015
"""Longer than OpenMP's worker threads spin after a region (measured: up to 8 ms), so that spinning is not taken for work."""
WINDOW_SECONDS = 0.012
BUSY_SHARE = 0.4
LONG_MILLISECONDS = 50
READY_SECONDS, SLOW_PAGES = 0.001, 0.7e9
"""What a message may take, and bytes a second at which pages are fetched at the slowest (measured under a load of 6: 1.5e9)."""


class Worker(Protocol):
    """What the clock needs of a worker process (server.py)."""

    @property
    def channel(self) -> Channel: ...
    @property
    def pid(self) -> int: ...  # of the keeper, whose first child is the worker; or of the worker itself
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def cpu_seconds(self) -> float: ...


@dataclass(frozen=True)
class Block:
    """n calls back to back: seconds per call by the stopwatch, and the parent's view of the same block. `preparing` is what
    receiving its inputs took. `first` is the share of the block's time that its first call took."""

    seconds: float
    calls: int
    claimed: float
    wall: float
    preparing: float
    first: float


@dataclass(frozen=True)
class _Moment:
    """A reading of both clocks: the wall's, and the CPU time of all processes of a worker."""

    wall: float
    processor: float


class ContenderFault(Exception):
    """The contender did not do what it was asked in a timed block. `reply` is what it said instead."""

    def __init__(self, name: str, reply: Message) -> None:
        super().__init__(f"{name}: {reply.get('error', reply)}")
        self.name = name
        self.reply = reply


@dataclass
class Contender:
    """Times one worker. `blocks` holds the recorded blocks in the order of the rounds."""

    name: str
    worker: Worker
    timeout: float
    blocks: list[Block] = field(default_factory=list)
    busy_windows: int = 0
    handing: list[float] = field(default_factory=list)
    """Seconds from the end of a block to the arrival of all its outputs, for each block that was asked for them."""
    releasing: list[float] = field(default_factory=list)
    """Seconds of work from the end of a block until all of it has been let go, for each recorded block whose outputs nobody wanted."""
    handed_bytes: int = 0
    """The most that a block handed over."""
    ended: _Moment | None = None

    def run_block(self, header: dict[str, Any], fd: int, calls: int, align: int, *, watch: bool = False) -> Block:
        """Prepare, (watch,) run, (watch). The contender is left running: its outputs may be asked for; call `rest` afterwards."""
        self.worker.resume()
        processes = self._processes()
        give_precedence(processes)
        asked = self._moment()
        self._timed({"op": "time_prepare", "header": header, "align": align}, [fd])
        preparing = self._work_since(asked) + self._ready()
        if watch:
            self._watch_idle()
        reply, wall = self._timed({"op": "time_go"}, [])
        self.ended = self._moment()
        nanoseconds, first, done = (_count(reply.get(key)) for key in ("ns", "first_ns", "calls"))
        if done != calls:
            raise ChannelGarbage("a timed block reported another number of calls than it was asked for")
        if watch:
            self._watch_idle()
        claimed = nanoseconds * 1e-9
        return Block(claimed / calls, calls, claimed, wall, preparing, first / nanoseconds)

    def _ready(self) -> float:
        """Have a large block's memory fetched, which is on nobody's account; seconds of work beyond what its pages explain."""
        family = self._processes()
        before, asked = processes.own_bytes(family[0]), self._moment()
        self._ask({"op": "time_ready"})
        fetched = max(0, processes.own_bytes(family[0]) - before)
        return max(0.0, self._work_since(asked) - READY_SECONDS - fetched / SLOW_PAGES)

    def weigh(self, header: dict[str, Any], fd: int, align: int) -> int | None:
        """Bytes that one call needs: inputs, outputs, temporaries, and what calls before it have left for the next (packed weights,
        buffers). None where the system does not say. The contender is left stopped."""
        self.worker.resume()
        process = self._processes()[0]
        self._ask({"op": "time_release"})
        kept = self._ask({"op": "time_rest", "trim": True})[0].get("kept")
        before = processes.forget_peak(process)
        self._timed({"op": "time_prepare", "header": header, "align": align}, [fd])
        processes.forget_peak(process)  # the inputs are there twice while they are copied
        self._timed({"op": "time_go"}, [])
        most = processes.peak_bytes(process)
        self.rest()
        return kept + most - before if isinstance(kept, int) and before is not None and most is not None else None

    def fetch_outputs(self, *, prompt: bool) -> tuple[Message, list[int]]:
        """The outputs of all calls of the last block; the descriptors become the caller's. All of them at once and (`prompt`)
        right after the block: who computes an output only when it is asked for then needs the whole block's time here."""
        reply, fds = self._ask({"op": "time_outputs", "call": 0, "whole": True}, keep=True)
        if prompt and self.ended:
            self.handing.append(self._work_since(self.ended))
        if len(fds) != 2:
            close_all(fds)
            raise ChannelGarbage("a timed block handed over no outputs")
        self.handed_bytes = max(self.handed_bytes, sum(os.fstat(fd).st_size for fd in fds))
        return reply, fds

    def fetch_inputs(self, call: int) -> tuple[Message, list[int]]:
        """What a call of the last block has left of its inputs; the descriptors become the caller's."""
        return self._ask({"op": "time_inputs", "call": call}, keep=True)

    def rest(self, *, account: bool = False) -> None:
        """Free the block's memory and stop the process until its next turn. `account`: nothing but the block lies behind it, so that
        all work since then is the kernel's (destructors, threads that go on)."""
        self._ask({"op": "time_release"})
        if account and self.ended:
            self.releasing.append(self._work_since(self.ended))
        take_precedence_back(self._processes())
        self._ask({"op": "time_rest"})
        self.worker.pause()

    def _moment(self) -> _Moment:
        return _Moment(time.perf_counter(), self.worker.cpu_seconds())

    def _work_since(self, then: _Moment) -> float:
        """Seconds that were spent on work: neither longer than the clock on the wall says (threads that spin beside it do not count)
        nor than the processors do (waiting for one does not count)."""
        now = self._moment()
        return min(now.wall - then.wall, now.processor - then.processor)

    def _processes(self) -> list[int]:
        """The worker, then whatever it started."""
        return processes.descendants(self.worker.pid) or [self.worker.pid]

    def _watch_idle(self) -> None:
        """Between two requests an honest kernel does nothing. A second look, later, tells slow spinning from work."""
        if self._busy_share(SETTLE_SECONDS) > BUSY_SHARE and self._busy_share(4 * SETTLE_SECONDS) > BUSY_SHARE:
            self.busy_windows += 1

    def _busy_share(self, settle: float) -> float:
        time.sleep(settle)
        before, start = self.worker.cpu_seconds(), time.perf_counter()
        time.sleep(WINDOW_SECONDS)
        return (self.worker.cpu_seconds() - before) / (time.perf_counter() - start)

    def _timed(self, message: Message, fds: list[int]) -> tuple[Message, float]:
        """A reply and the seconds until it began to arrive. Our own poll comes first: reading prints and watching memory, which
        the channel does while it waits, would be counted otherwise; a wait too long to matter is left to the channel."""
        poll = select.poll()
        channel = self.worker.channel
        poll.register(channel.fileno(), select.POLLIN)
        started = time.perf_counter()
        channel.send(message, fds)
        arrived = time.perf_counter() - started if poll.poll(LONG_MILLISECONDS) else None
        reply, received = channel.receive(self.timeout)
        seconds = arrived or time.perf_counter() - started
        close_all(received)
        if not reply.get("ok"):
            raise ContenderFault(self.name, reply)
        return reply, seconds

    def _ask(self, message: Message, fds: list[int] | None = None, *, keep: bool = False) -> tuple[Message, list[int]]:
        reply, received = self.worker.channel.request(message, fds or [], timeout=self.timeout)
        if not keep or not reply.get("ok"):
            close_all(received)
            received = []
        if not reply.get("ok"):
            raise ContenderFault(self.name, reply)
        return reply, received


@contextlib.contextmanager
def foremost() -> Iterator[None]:
    """The calling thread before the contenders themselves, where we may: it has next to nothing to do, and what it sees on its
    clock must not depend on who else runs."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, *before)


def give_precedence(processes: list[int]) -> None:
    """Put all threads of a contender before other programs, where we may (root). On a busy machine the threads of one kernel
    otherwise land on one core and wait out each other's time slices at every barrier: 0.1 ms become 10 ms. Real-time threads
    are moved to a core of their own at once. Every contender alike, so no ratio gains by it; 5 % stay for other programs."""
    _schedule(processes, os.SCHED_RR, 1)


@contextlib.contextmanager
def ahead(worker: Worker) -> Iterator[None]:
    """A worker before other programs for a while."""
    family = processes.descendants(worker.pid) or [worker.pid]
    give_precedence(family)
    try:
        yield
    finally:
        take_precedence_back(family)


def take_precedence_back(processes: list[int]) -> None:
    """Between its turns a contender is a program like any other."""
    _schedule(processes, os.SCHED_OTHER, 0)


def _schedule(processes: list[int], policy: int, priority: int) -> None:
    for pid in processes:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


def _count(number: Any) -> int:
    """A positive whole number as a worker must report it: `True`, NaN and what else JSON can say are refused."""
    if type(number) is not int or number <= 0:
        raise ChannelGarbage("a timed block reported no time")
    return number
