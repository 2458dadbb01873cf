"""The parent between two workers: a referee, which it trusts, and a candidate, which it does not.

In: requests. Out: replies, or `Rejected` when the candidate fails (whatever it does), TaskError when the task is at fault, JudgeError
when we are. Closing a conversation ends both workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from kernelwright.core.errors import JudgeError, KernelwrightError, TaskError
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.judge.rejection import from_channel, from_reply
from kernelwright.workers.channel import ChannelError, ChannelTimeout, Message, close_all
from kernelwright.workers.exclusive import Exclusive
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.worker import Worker

REFEREE_SECONDS = 900.0


@dataclass(frozen=True)
class Times:
    """Wall-clock limits in seconds. Loading a kernel file may take `load`, and up to `build` while a compiler is at work; a call
    may take `run` (`interpreted` without its device), or `slower` times what the reference takes, whichever is more."""

    load: float = 60.0
    build: float = 300.0
    run: float = 20.0
    interpreted: float = 120.0
    slower: float = 300.0


class TaskRefused(TaskError):
    """The referee's sentence about a task that cannot be judged; it names the file and the line already."""

    def __init__(self, path: str, sentence: str) -> None:
        KernelwrightError.__init__(self, sentence)
        self.path, self.line, self.reason = path, None, sentence.removeprefix(f"{path}:").strip()


class Conversation:
    """Both workers of one verdict, once they are spawned. What they are asked to do waits while another verdict is timed."""

    def __init__(
        self, server: ForkServer, task: Task, kernel: Kernel, threads: int, times: Times, exclusive: Exclusive
    ) -> None:
        self.exclusive = exclusive
        self.server, self.task, self.kernel, self.threads, self.times = server, task, kernel, threads, times
        self.referee: Worker | None = None
        self.candidate: Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (self.candidate, self.referee):
            if worker is not None:
                worker.stop()

    def printed(self) -> str:
        """The end of what the candidate printed, without the profiler's own notes."""
        text = self.candidate.printed() if self.candidate else ""
        return "\n".join(line for line in text.splitlines() if not line.startswith("USDT:"))

    def running(self) -> Worker:
        """The candidate's worker."""
        assert self.candidate is not None
        return self.candidate

    def ask_candidate(
        self, message: Message, fds: list[int] | None = None, *, doing: str, seconds: float
    ) -> tuple[Message, list[int]]:
        """One request to the candidate; every way in which it can go wrong becomes `Rejected`."""
        worker = self.running()
        try:
            with self.exclusive.sharing():
                worker.channel.send(message, fds or [])
                if (
                    message["op"] == "load"
                    and not worker.channel.ready(min(self.times.load, seconds))
                    and not worker.has_children()
                ):
                    seconds = min(self.times.load, seconds)
                    raise ChannelTimeout("loading takes too long")
                reply, received = worker.channel.receive(seconds)
        except ChannelError as error:
            raise from_channel(error, worker, doing, seconds) from error
        if reply.get("ok") is not True:
            close_all(received)
            raise from_reply(reply, doing, worker.printed(), self.kernel.source)
        return reply, received

    def ask_referee(self, message: Message, fds: list[int] | None = None) -> tuple[Message, list[int]]:
        """One request to the referee. Its failures are the task's fault or ours, never the candidate's."""
        assert self.referee is not None
        try:
            with self.exclusive.sharing():
                reply, received = self.referee.request(message, fds or [], timeout=REFEREE_SECONDS)
        except ChannelError as error:
            ended = self.referee.exit_reason()
            raise JudgeError(f"{self.task.path}: the reference's process failed ({ended}); is the task too large?") from error
        if reply.get("ok") is not True:
            close_all(received)
            if reply.get("task_error"):
                raise TaskRefused(self.task.path, str(reply["task_error"]))
            said = reply.get("error")
            raise JudgeError(f"{self.task.path}: the referee failed: {said.get('message') if isinstance(said, dict) else said}")
        return reply, received
