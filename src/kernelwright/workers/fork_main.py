"""The server process: imports torch once, stays clean and single-threaded, and forks workers on request.

In: requests on a socket from the parent ({"op": "spawn", "entry", "cell"} with four descriptors: the worker's channel, a lifeline,
a status pipe, an output pipe). Out: {"ok", "pid"} of the worker's *keeper*. The family of one worker:

    server ─fork─► (leaves the namespaces, exits) ─fork─► keeper (pid 1 in there) ─fork─► worker (runs the entry function)

The keeper does nothing but wait: for the worker's end, which it reports on the status pipe, and for the lifeline, whose other end
only the parent holds. When either comes, the keeper ends and takes the whole family with it, so that no process survives a parent
that was killed. The worker says hello with its sandbox level before any foreign code runs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from kernelwright.workers import sandbox
from kernelwright.workers import system_calls as system
from kernelwright.workers.channel import Channel, ChannelClosed, ChannelError, close_all
from kernelwright.workers.processes import kill_descendants

FOUNDATION = ("torch", "torch.utils._python_dispatch", "torch.utils.flop_counter", "torch.profiler", "numpy", "ctypes")
"""What every worker finds imported, before what its server's owner names."""


def main(fd: int, extra: Sequence[str] = ()) -> NoReturn:
    """Serve until the parent is gone; `extra` modules are imported beside FOUNDATION, and warmed up where they can be."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended keepers are reaped by the kernel
    control = Channel(socket.socket(fileno=fd))
    missing = [name for name in (*FOUNDATION, *extra) if not _preload(name)]
    _warm(extra)
    threads = len(os.listdir("/proc/self/task"))
    gc.collect()
    gc.freeze()
    try:
        control.send({"ok": True, "missing": missing, "threads": threads})
        while True:
            message, fds = control.receive(None)
            try:
                reply = _spawn(message, fds, control)
            except (ImportError, AttributeError, OSError) as error:
                reply = {"ok": False, "error": str(error)}
            finally:
                close_all(fds)
            control.send(reply)
    except ChannelError:
        os._exit(0)


def _preload(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return False
    return True


def _warm(names: Sequence[str]) -> None:
    """What a worker imports only when it runs costs a second; done once here, on one thread (a pool would not survive a fork)."""
    import torch

    torch.set_num_threads(1)
    for name in names:
        warm = getattr(sys.modules.get(name), "warm", None)
        if warm is not None:
            warm()


def _spawn(message: dict[str, Any], fds: list[int], control: Channel) -> dict[str, Any]:
    """Fork a family and tell the keeper's pid, which only its own parent knows."""
    cell = sandbox.Cell.from_message(message["cell"])
    entry = _find(message["entry"])
    reader, writer = os.pipe()
    if os.fork() == 0:
        control.close()
        os.close(reader)
        _leave(cell, entry, fds, writer)
    os.close(writer)
    said = b""
    while part := os.read(reader, 4096):
        said += part
    os.close(reader)
    if said.isdigit():
        return {"ok": True, "pid": int(said)}
    return {"ok": False, "error": said.decode(errors="replace") or "the sandbox could not be entered"}


def _find(entry: str) -> Callable[[Channel], None]:
    """`room.module:function` of this package."""
    module, _, name = entry.partition(":")
    place = f"kernelwright.{module}"
    found: Callable[[Channel], None] = getattr(importlib.import_module(place), name)
    return found


def _leave(cell: sandbox.Cell, entry: Callable[[Channel], None], fds: list[int], writer: int) -> NoReturn:
    """The short-lived process between server and keeper."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        sandbox.detach(cell.mode)
        keeper = os.fork()
    except OSError as error:
        os.write(writer, f"{error.strerror}".encode())
        os._exit(1)
    if keeper == 0:
        os.close(writer)
        _keep(cell, entry, fds)
    os.write(writer, str(keeper).encode())
    os._exit(0)


def _keep(cell: sandbox.Cell, entry: Callable[[Channel], None], fds: list[int]) -> NoReturn:
    """The keeper: close the cell, fork the worker, wait."""
    code = 1
    try:
        os.setsid()
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        line, lifeline, status, output = fds
        wake, alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        sandbox.close(cell)
        worker = os.fork()
        if worker == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _work(cell, entry, line, output)
        os.close(line)
        os.close(output)
        ended = _wait(worker, lifeline, wake)
        if cell.mode != "namespaces":  # with them, the kernel ends the family together with its pid 1
            kill_descendants(os.getpid())
        if ended is not None:
            os.write(status, str(ended).encode())
        code = 0
    except OSError as error:
        with contextlib.suppress(ChannelError, OSError):
            Channel(socket.socket(fileno=os.dup(fds[0]))).send({"ok": False, "error": f"the sandbox cannot be closed: {error}"})
    finally:
        os._exit(code)


def _wait(worker: int, lifeline: int, wake: int) -> int | None:
    """The worker's wait status, or None when the parent let go."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if wake in ready:
            os.read(wake, 512)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == worker:
                    return status
                if pid == 0:
                    break
        if lifeline in ready:
            return None


def _work(cell: sandbox.Cell, entry: Callable[[Channel], None], line: int, output: int) -> NoReturn:
    """The worker: only its channel and its output stay open."""
    code = 70
    try:
        nothing = os.open("/dev/null", os.O_RDONLY)
        for fd, place in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(fd, place)
        line = os.dup2(line, 3) if line != 3 else line
        os.set_inheritable(line, False)
        os.closerange(4, 4096)
        channel = Channel(socket.socket(fileno=line))
        level = sandbox.seal(cell)
        channel.send({"ok": True, "level": level})
        entry(channel)
        code = 0
    except ChannelClosed:
        code = 0
    except SystemExit:
        code = 71
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
