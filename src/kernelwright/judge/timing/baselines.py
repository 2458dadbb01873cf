"""The contenders that a kernel is timed against: workers that run the reference in eager mode, under torch.compile, or as a plug-in does.

In: a task. Out: workers, loaded and idle. Constructing and compiling cost seconds, so both begin in the background as soon as a task
is known (`prepare`), while the kernel is still being written or tried; compiling takes its turn with timed phases, which it would
disturb. Contenders are trusted, kept between verdicts on the same task, and stopped in between. A contender other than eager failing
is a warning, never a failed verdict.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from kernelwright.core.errors import JudgeError
from kernelwright.core.task import Task
from kernelwright.judge.servers import CONTENDER
from kernelwright.workers.channel import ChannelError
from kernelwright.workers.exclusive import Exclusive
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.limits import Limits
from kernelwright.workers.worker import Worker

COMPILE_SECONDS = 240.0
OPEN_SECONDS = 600.0
ROOMY = Limits(memory=1 << 46, file_bytes=1 << 46)


class Baselines:
    """Keeps the contenders of the last `kept` tasks. While a contender is timed, `exclusive` keeps others from being compiled."""

    def __init__(self, server: ForkServer, threads: int, exclusive: Exclusive, *, kept: int) -> None:
        self._server = server
        self._threads = threads
        self._exclusive = exclusive
        self._tasks_kept = kept
        self._mine = threading.Lock()
        self._kept: dict[tuple[str, str, str], Future[Worker]] = {}

    def prepare(self, task: Task, modes: Sequence[str], device: str = "") -> None:
        """Begin to construct (and compile) the task's contenders beside eager; returns at once. `device` is torch's name of it, nothing
        for the CPU."""
        for mode in ("eager", *modes):
            self._contender(task, mode, device)

    def eager(self, task: Task, device: str = "") -> Worker:
        """The reference as it is."""
        return self._contender(task, "eager", device).result()

    def anew(self, task: Task, device: str = "") -> Worker:
        """Eager in another process; the one there was ends."""
        with self._mine:
            old = self._kept.pop((task.hash, "eager", device), None)
        if old is not None:
            old.add_done_callback(_end)
        return self.eager(task, device)

    def other(self, task: Task, mode: str, device: str = "") -> tuple[Worker | None, str]:
        """The reference in another mode ("compile" …), or None and why not. Waits for its compiler: not to be called in a measurement."""
        try:
            return self._contender(task, mode, device).result(), ""
        except JudgeError as error:
            return None, str(error)

    def rest(self) -> None:
        """Stop all that are kept until they are needed again."""
        for future in list(self._kept.values()):
            if (worker := _ready(future)) is not None:
                worker.pause()

    def _contender(self, task: Task, mode: str, device: str) -> Future[Worker]:
        with self._mine:
            found = self._kept.get((task.hash, mode, device))
            if found is None or ((worker := _ready(found)) is not None and worker.stopped):
                found = Future()
                self._keep((task.hash, mode, device), found)
                threading.Thread(target=self._start, args=(task, mode, device, found), daemon=True).start()
            return found

    def _start(self, task: Task, mode: str, device: str, future: Future[Worker]) -> None:
        try:
            worker = self._open(task, mode, device)
            if mode != "eager":
                with self._exclusive.sharing():
                    self._compile(worker, mode)
            worker.pause()
            future.set_result(worker)
        except BaseException as error:
            future.set_exception(error)

    def _open(self, task: Task, mode: str, device: str) -> Worker:
        worker = self._server.spawn(CONTENDER, sandboxed=False, limits=ROOMY, folder=_cache() if mode != "eager" else None)
        # The candidate is sampled while it is timed, which costs a call of a millisecond some 5 %: alike for all.
        worker.observe()
        message = {"op": "open", **task.as_json(), "mode": mode}
        try:
            reply, _ = worker.request(
                {**message, "init_seed": 0, "threads": self._threads, "device": device}, timeout=OPEN_SECONDS
            )
        except ChannelError as error:
            worker.stop()
            raise JudgeError(f"{task.path}: the {mode} contender did not start: {error}") from error
        if not reply.get("ok"):
            worker.stop()
            raise JudgeError(f"{task.path}: the {mode} contender did not start: {reply.get('error')}")
        return worker

    def _compile(self, worker: Worker, mode: str) -> None:
        name = "torch.compile" if mode == "compile" else mode
        try:
            reply, _ = worker.request({"op": "compile"}, timeout=COMPILE_SECONDS)
        except ChannelError as error:
            worker.stop()
            raise JudgeError(f"{name} did not finish: {error}") from error
        if not reply.get("ok"):
            worker.stop()
            raise JudgeError(f"{name} cannot run this task: {str(reply.get('error'))[:200]}")

    def _keep(self, key: tuple[str, str, str], future: Future[Worker]) -> None:
        self._kept[key] = future
        tasks = list(dict.fromkeys(key[0] for key in self._kept))
        for old in tasks[: -self._tasks_kept]:
            for gone in [other for other in self._kept if other[0] == old]:
                self._kept.pop(gone).add_done_callback(_end)


def _ready(future: Future[Worker]) -> Worker | None:
    return future.result() if future.done() and future.exception() is None else None


def _end(future: Future[Worker]) -> None:
    if (worker := _ready(future)) is not None:
        worker.stop()


def _cache() -> Path:
    """Where compiled graphs are kept between runs; only trusted contenders ever write there."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "kernelwright" / "compiled"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
