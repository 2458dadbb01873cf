"""One worker as the parent holds it: its channel, its end, its processes; never trusted.

In: what `ForkServer.spawn` made. Out: replies, or the reason why there are none. While the parent waits for a reply it also drains the
worker's prints (only their tail is kept), and watches the memory of the whole family. A `Line` is a Channel with this watching built
in; for candidates it also numbers the requests, so that a message which answers no request is recognised as forged.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.workers import processes
from kernelwright.workers.channel import (
    SEND_SECONDS,
    Channel,
    ChannelClosed,
    ChannelGarbage,
    ChannelTimeout,
    Message,
    close_all,
)
from kernelwright.workers.limits import MIB, Limits
from kernelwright.workers.sampling import Sampler, Sighting

TAIL = 8192
WATCH_SECONDS = 0.2


@dataclass(frozen=True)
class Exit:
    """How a worker ended: "signal" or "code" with its number, "memory" (ended by us for using too much), or "unknown"."""

    kind: str
    number: int = 0

    def __str__(self) -> str:
        if self.kind == "signal":
            name = signal.Signals(self.number).name if self.number in signal.valid_signals() else str(self.number)
            return f"the process was killed by {name}"
        if self.kind == "memory":
            return "the process used more memory than it may"
        return f"the process exited with code {self.number}" if self.kind == "code" else "the process ended"


class Forged(ChannelGarbage):
    """The candidate wrote to the judge's channel itself."""


class Line(Channel):
    """The parent's end of a worker's channel."""

    def __init__(self, sock: socket.socket, worker: Worker, *, numbered: bool) -> None:
        super().__init__(sock)
        self._worker = worker
        self._numbered = numbered
        self._number = ""
        self._calling = False

    def send(self, message: Message, fds: Sequence[int] = (), *, timeout: float = SEND_SECONDS) -> None:
        if self._numbered:
            if self._pending():
                raise Forged("a message arrived that answers no request")
            self._number = secrets.token_hex(8)
            message = {**message, "id": self._number}
        self._calling = message.get("op") == "time_go"
        if self._calling:
            self._worker.before_call()
        super().send(message, fds, timeout=timeout)

    def receive(self, timeout: float | None) -> tuple[Message, list[int]]:
        message, fds = super().receive(timeout)
        if self._numbered and message.pop("id", None) != self._number:
            close_all(fds)
            raise Forged("a message arrived that answers no request")
        if self._calling:
            self._worker.after_call(message.get("calls"))
        return message, fds

    def ready(self, timeout: float) -> bool:
        """Whether something arrives within so many seconds (a message, or the end of the stream)."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._sock.recv(1, socket.MSG_PEEK)
                return True
            except BlockingIOError:
                try:
                    self._wait(select.POLLIN, deadline)
                except ChannelTimeout:
                    return False
            except OSError:
                return True

    def _pending(self) -> bool:
        """Bytes that arrived while nothing was asked. An end of the stream is no message; it is met on the next read."""
        try:
            return bool(self._sock.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def _wait(self, event: int, deadline: float | None) -> None:
        left = WATCH_SECONDS if deadline is None else min(deadline - time.monotonic(), WATCH_SECONDS)
        if left <= 0:
            raise ChannelTimeout("no message arrived in time")
        poll = select.poll()
        poll.register(self._sock, event)
        if self._worker.printing:
            poll.register(self._worker.output, select.POLLIN)
        poll.poll(left * 1000 + 1)
        self._worker.drain()
        self._worker.watch()


class Worker:
    """A spawned worker. `level` is the sandbox level it reached."""

    def __init__(
        self,
        pid: int,
        sock: socket.socket,
        *,
        lifeline: int,
        status: int,
        output: int,
        limits: Limits,
        folder: str,
        sandboxed: bool,
    ) -> None:
        self.pid = pid
        self.level = "none"
        self.sandboxed = sandboxed
        self.output = output
        self.printing = True
        os.set_blocking(output, False)
        os.set_blocking(status, False)
        self._pidfd = os.pidfd_open(pid)
        self._lifeline, self._status, self._folder = lifeline, status, folder
        self._limits = limits
        self._tail = b""
        self._exit: Exit | None = None
        self._stopped = False
        self._next_watch = 0.0
        self.channel = Line(sock, self, numbered=False)
        self._sock = sock
        self.sampler: Sampler | None = None
        self.seen = Sighting()

    @property
    def stopped(self) -> bool:
        return self._stopped

    def number_requests(self) -> None:
        """From now on replies must answer the request just sent (the hello before it does not)."""
        self.channel = Line(self._sock, self, numbered=True)

    def request(self, message: Message, fds: Sequence[int] = (), *, timeout: float | None) -> tuple[Message, list[int]]:
        return self.channel.request(message, fds, timeout=timeout)

    def observe(self) -> bool:
        """From now on, look where its calls spend their time; False where this machine does not allow it."""
        process = self.process()
        self.sampler = Sampler.start(process) if process else None
        return self.sampler is not None

    def before_call(self) -> None:
        """A block of calls begins: what was sampled before it (copying inputs, building) does not count."""
        if self.sampler is not None:
            self.sampler.forget()

    def after_call(self, calls: object) -> None:
        """A block of calls has ended."""
        if self.sampler is not None:
            self.sampler.take(self.seen, calls if isinstance(calls, int) and 0 < calls < 10_000 else 1)

    def has_children(self) -> bool:
        """Whether the worker runs other programs just now: a compiler, most likely."""
        return len(processes.descendants(self.pid)) > 1

    def process(self) -> int | None:
        """The pid of the worker proper, below its keeper; None once it is gone."""
        below = processes.descendants(self.pid)
        return below[0] if below else None

    def cpu_seconds(self) -> float:
        """CPU time that the worker and everything it started have used."""
        return processes.cpu_seconds(self.pid)

    def pause(self) -> None:
        """Stop all its processes, so that nobody disturbs another measurement."""
        processes.signal_descendants(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        processes.signal_descendants(self.pid, signal.SIGCONT)

    def drain(self) -> None:
        """Take what was printed; keep the end of it."""
        for _ in range(16):
            try:
                part = os.read(self.output, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                part = b""
            if not part:
                self.printing = False
                return
            self._tail = (self._tail + part)[-TAIL:]

    def printed(self) -> str:
        """The tail of what it printed, as text."""
        if not self._stopped:
            self.drain()
        return self._tail.decode(errors="replace")

    def watch(self) -> None:
        """End a family that holds more memory than it may (one process alone is bounded by its rlimit)."""
        now = time.monotonic()
        if not self.sandboxed or now < self._next_watch:
            return
        self._next_watch = now + WATCH_SECONDS
        limit = self._limits.memory + 512 * MIB
        if processes.resident_bytes(self.pid, limit) > limit:
            self._exit = Exit("memory")
            processes.kill_descendants(self.pid)

    def exit_reason(self, wait: float = 2.0) -> Exit:
        """Why the worker is gone; "unknown" when it is not (yet) or its keeper could not tell."""
        if self._exit is None and not self._stopped:
            poll = select.poll()
            poll.register(self._status, select.POLLIN)
            poll.poll(wait * 1000)
            with contextlib.suppress(OSError, ValueError):
                code = int(os.read(self._status, 64))
                self._exit = Exit("signal", os.WTERMSIG(code)) if os.WIFSIGNALED(code) else Exit("code", os.WEXITSTATUS(code))
        return self._exit or Exit("unknown")

    def stop(self) -> None:
        """End the whole family and free what it held. Safe to call twice."""
        if self._stopped:
            return
        self.exit_reason(wait=0.0)
        with contextlib.suppress(OSError):
            self.drain()
        self._stopped = True
        if self.sampler is not None:
            self.sampler.close()
        if not self.sandboxed or "namespaces" not in self.level:
            processes.kill_descendants(self.pid)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.poll(5000)
        self.channel.close()
        close_all([self._pidfd, self._lifeline, self._status, self.output])
        shutil.rmtree(self._folder, ignore_errors=True)
