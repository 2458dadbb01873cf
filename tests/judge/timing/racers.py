"""Real processes for the clock's tests: forked workers that answer the stopwatch's and the referee's words over real
channels."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kernelwright.judge.timing.fresh_data import rescale
from kernelwright.judge.timing.stopwatch import Stopwatch, still_working
from kernelwright.workers import bundle, channel

Reply = tuple[dict[str, Any], list[int]]


class ForkedWorker:
    """A forked process that answers every message with `answer(message, fds)`."""

    def __init__(self, answer: Callable[[dict[str, Any], list[int]], Reply]) -> None:
        self.channel, theirs = channel.pair()
        self.pid = os.fork()
        if self.pid == 0:
            self.channel.close()
            _serve(channel.Channel(theirs), answer)
        theirs.close()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def cpu_seconds(self) -> float:
        return time.clock_gettime((~self.pid << 3) | 2)  # the process's CPU clock, as workers/processes.py reads it

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.channel.close()


def _serve(line: channel.Channel, answer: Callable[[dict[str, Any], list[int]], Reply]) -> None:
    with contextlib.suppress(BaseException):
        torch.set_num_threads(1)
        _keep_memory()
        while True:
            message, fds = line.receive(None)
            try:
                reply, out = answer(message, fds)
            except Exception as error:
                reply, out = {"ok": False, "kind": "crashed", "error": f"{type(error).__name__}: {error}"}, []
            line.send(reply, out)
            channel.close_all([*fds, *out])
    os._exit(0)


def _keep_memory() -> None:
    """Freed memory stays with the process, as the judge's workers have it from their environment: a block finds its pages again."""
    libc = ctypes.CDLL(None)
    for option, value in ((-3, 32 << 20), (-1, 1 << 30), (-2, 64 << 20)):  # mmap threshold, trim threshold, top pad
        libc.mallopt(option, value)


def racer(call: Callable[[list[Any]], Any]) -> ForkedWorker:
    """A contender that runs `call`, made in the child at its first message."""
    held: list[Stopwatch] = []

    def answer(message: dict[str, Any], fds: list[int]) -> Reply:
        if not held:
            held.append(Stopwatch(call))
        return held[0].handle(message, fds)

    return ForkedWorker(answer)


def referee(reference: Callable[[list[Any]], Any], inputs: list[Any]) -> ForkedWorker:
    """Draws fresh inputs and checks timed outputs against `reference`, like the real one but with a plain comparison."""
    drawn: list[Any] = []

    def answer(message: dict[str, Any], fds: list[int]) -> Reply:
        if message["op"] == "draw_timed":
            drawn[:] = [bundle.clone(inputs) for _ in range(message["calls"])]
            for index, tensor in enumerate(bundle.tensors(drawn)):
                rescale(tensor, random.Random(message["seed"] * 1000 + index))
            packed = bundle.pack(drawn)
            return {"ok": True, "header": packed.header}, [packed.fd]
        if still_working(bundle.unpack(message["probe_header"], fds[1])):
            return {"ok": True, "finding": {"status": "cheating", "reason": "the output was still changing"}}, []
        got = bundle.unpack(message["header"], fds[0])[message["call"]]
        right = torch.allclose(got, reference(drawn[message["call"]]), rtol=1e-4, atol=1e-6)
        return {"ok": True, "finding": None if right else {"status": "wrong_values", "reason": "wrong"}}, []

    return ForkedWorker(answer)


@contextlib.contextmanager
def running(*workers: ForkedWorker) -> Iterator[tuple[ForkedWorker, ...]]:
    """Stops all workers at the end, whatever happens."""
    try:
        yield workers
    finally:
        for worker in workers:
            worker.stop()
