"""Blocks of calls in an untimed verdict: calls in quick succession on data of their own, and the same call many times over.

In: a loaded candidate and a referee. Out: nothing, or `Rejected`. Beside the trials, because a kernel that replays answers, counts its
calls or races with itself is right when each call comes alone.
"""

from __future__ import annotations

import random
import time
from typing import Any

from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.verdict import Status
from kernelwright.judge.conversation import Conversation, Times
from kernelwright.judge.honesty import sampling
from kernelwright.judge.offdevice import Setting
from kernelwright.judge.rejection import Rejected, from_finding
from kernelwright.judge.timing.contender import ahead, foremost
from kernelwright.workers.channel import Message, close_all
from kernelwright.workers.exclusive import Exclusive
from kernelwright.workers.fork_server import ForkServer

RUSH_CALLS, RUSH_BYTES = 12, 256 << 20
RUSH_SAMPLES, RUSH_WORKING, RUSH_SECONDS, RUSH_PATIENCE = 60, 30, 1.2, 15
SMALL_BYTES, SMALL_CALLS = 1 << 20, 48
"""Of data of a call, up to which a rush has more calls: of a kernel of microseconds a few calls show nothing."""
REPEATS, REPEATED_BYTES, REPEATED_SECONDS, BLOCK_SECONDS = 512, 32 << 20, 0.8, 0.3
FRESH_CALLS = 192
"""Calls on data of their own that a rush has, as far as its time allows: who lies in one of fifty lies here."""


class Blocks(Conversation):
    """A conversation about many calls at once."""

    def __init__(
        self,
        server: ForkServer,
        task: Task,
        kernel: Kernel,
        threads: int,
        times: Times,
        exclusive: Exclusive,
        setting: Setting | None,
    ) -> None:
        super().__init__(server, task, kernel, threads, times, exclusive)
        self.setting = setting
        self.interpreted = setting is not None and not setting.device
        self.facts: dict[str, Any] = {}
        self._dice = random.SystemRandom()
        self._call_seconds = 0.0

    def rush(self) -> None:
        """Blocks of calls in quick succession, each on data of its own, as the clock makes them, with outputs checked: replaying
        when calls come in a rush fails here, and the observer gets samples enough also of short kernels."""
        data = sum(int(self.facts.get(name, 0)) for name in ("input_bytes", "output_bytes"))
        fewest = 2 if data <= 2 * RUSH_BYTES else 1  # calls that long come in no rush, and two sets of data may not fit
        most = SMALL_CALLS if data <= SMALL_BYTES else RUSH_CALLS
        calls = max(fewest, min(most, RUSH_BYTES // max(data, 1), int(1.0 / max(self._call_seconds, 1e-6))))
        # Processor time, so that a busy machine does not make the judge milder; and an end, where it has stopped for us.
        started, begun, made = time.monotonic(), self._processor_seconds(), 0
        while True:
            self._rush_block(calls)
            made += calls
            seen = self.running().seen
            enough = self.running().sampler is None or (seen.total >= RUSH_SAMPLES and sampling.working(seen) >= RUSH_WORKING)
            seconds = min(
                self._processor_seconds() - begun + made * self._call_seconds, (time.monotonic() - started) / RUSH_PATIENCE
            )
            if (enough and made >= FRESH_CALLS) or seconds > RUSH_SECONDS:
                return

    def _processor_seconds(self) -> float:
        """Of the referee. The candidate's are what its fastest call takes: who spins beside its calls must not shorten what is tried."""
        return self.referee.cpu_seconds() if self.referee is not None else 0.0

    def _rush_block(self, calls: int) -> None:
        self._prepare_block(calls)
        self.ask_candidate({"op": "time_go"}, doing="forward", seconds=calls * self._call_limit())
        reply, sent = self._fetch_timed(0, whole=True)
        try:
            self._check_timed(self._dice.randrange(calls), reply, sent)
        finally:
            close_all(sent)
        self._release_block()

    def repeat(self) -> None:
        """The same inputs many times over: threads that write to one place without an order are right most of the time, so every
        output that is not the first one bit by bit is held against the reference. Sums in the order in which threads arrive are
        honest, and pass. Answers of megabytes come in several blocks: who lies after so many calls must come to them."""
        started, begun, made = time.monotonic(), self._processor_seconds(), 0
        while made < REPEATS:
            calls = self._repeat_block(REPEATS - made)
            made += calls
            seconds = min(
                self._processor_seconds() - begun + made * self._call_seconds, (time.monotonic() - started) / RUSH_PATIENCE
            )
            if calls < 2 or seconds > REPEATED_SECONDS:
                return

    def _repeat_block(self, most: int) -> int:
        """One block of calls on the same inputs; how many it had."""
        written = int(self.facts.get("output_bytes", 0))
        calls = min(most, REPEATED_BYTES // max(written, 1), int(BLOCK_SECONDS / max(self._call_seconds, 1e-6)))
        if calls < 2 or self.interpreted:
            return 0
        self._prepare_block(1, repeat=calls)
        with foremost(), ahead(self.running()):  # on a busy machine its threads would run one after the other
            self.ask_candidate({"op": "time_go"}, doing="forward", seconds=calls * self._call_limit())
        reply, sent = self._fetch_timed(0, whole=True)
        try:
            headers = {"header": reply.get("header"), "probe_header": reply.get("probe_header")}
            left, more = self.ask_candidate({"op": "time_inputs", "call": 0}, doing="handing over outputs", seconds=60)
            sent += more
            headers["after_header"] = left.get("header")
            answer, _ = self.ask_referee({"op": "check_repeated", "calls": calls, **headers}, sent)
            if answer.get("finding"):
                raise from_finding(answer["finding"])
        finally:
            close_all(sent)
        self._release_block()
        return calls

    def _release_block(self) -> None:
        for op in ("time_release", "time_rest"):
            self.ask_candidate({"op": op}, doing="handing over outputs", seconds=60)

    def _prepare_block(self, calls: int, *, repeat: int = 1) -> None:
        """Fresh inputs of so many calls, each to be used as often as `repeat` says."""
        drawn, fds = self.ask_referee({"op": "draw_timed", "calls": calls, "seed": self._dice.getrandbits(48)})
        message = {"op": "time_prepare", "header": drawn["header"], "align": self._dice.getrandbits(32), "repeat": repeat}
        try:
            self.ask_candidate(message, fds, doing="receiving inputs", seconds=60 + calls * self._call_limit())
        finally:
            close_all(fds)

    def _fetch_timed(self, call: int, *, whole: bool = False) -> tuple[Message, list[int]]:
        """The outputs of a call of the last block, or of all its calls; the descriptors become the caller's."""
        message = {"op": "time_outputs", "call": call, "whole": whole}
        reply, sent = self.ask_candidate(message, doing="handing over outputs", seconds=60)
        if len(sent) != 2 or reply.get("plain") is not True:
            close_all(sent)
            raise Rejected(Status.cheating, "the outputs of calls in quick succession are not plain tensors")
        return reply, sent

    def _check_timed(self, call: int, reply: Message, sent: list[int]) -> None:
        """One call of a block in full, and a glance at all others."""
        headers = {"header": reply.get("header"), "probe_header": reply.get("probe_header")}
        left, more = self.ask_candidate({"op": "time_inputs", "call": call}, doing="handing over outputs", seconds=60)
        sent += more  # the caller closes them with the outputs
        headers["after_header"] = left.get("header")
        answer, _ = self.ask_referee({"op": "check_timed", "call": call, "whole": True, **headers}, sent)
        if answer.get("finding"):
            raise from_finding(answer["finding"])

    def _call_limit(self) -> float:
        """Seconds that one call may take."""
        least = self.times.interpreted if self.interpreted else self.times.run
        return max(least, self.times.slower * float(self.facts.get("eager_seconds", 0)))
