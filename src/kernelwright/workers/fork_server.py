"""The parent's side of the server process: start it once, have workers forked from it.

In: the name of an entry function, limits, whether to close it in. Out: a `Worker` that has said hello. The strongest sandbox that
this machine allows is found at the first sandboxed spawn and remembered. Imports no torch. One ForkServer may be used from several
threads.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelwright.core.errors import JudgeError
from kernelwright.workers.channel import Channel, ChannelError, close_all
from kernelwright.workers.limits import Limits
from kernelwright.workers.sandbox import CANN, MODES, Cell
from kernelwright.workers.worker import Worker

START_SECONDS = 180.0
CONFINED_BYTES = 2 << 30
"""What the writable folder of a confined worker may hold: torch.compile keeps its files there."""
SPAWN_SECONDS = 60.0
FIRST_UID = 1_900_000_000
"""Every candidate gets a user id of its own (nobody's on a usual machine), so that limits per user are limits per candidate."""

ALLOCATOR = {
    # A fresh output above malloc's mmap threshold costs a page fault per 4 KiB and call; the same for every contender.
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


class ForkServer:
    """Owns the server process and a folder for its workers. Use as a context manager. `preload` names modules that its
    workers shall find imported; one that has a function `warm` is warmed up there (fork_main.py). `confined`: the workers that are
    trusted with a task's file are closed in too, because the file is a stranger's."""

    def __init__(self, threads: int = 1, *, preload: tuple[str, ...] = (), confined: bool = False) -> None:
        self.threads = threads
        self.confined = confined
        self._preload = preload
        self.mode: str | None = None
        self._lock = threading.Lock()
        self._count = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Channel | None = None
        self._folder: Path | None = None
        self._workers: list[Worker] = []

    def __enter__(self) -> ForkServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process if it does not run; returns when torch is imported."""
        with self._lock:
            self._ensure()

    def close(self) -> None:
        """End all workers and the server, and remove their folder."""
        with self._lock:
            for worker in self._workers:
                worker.stop()
            self._workers.clear()
            self._end()

    def spawn(
        self,
        entry: str,
        *,
        sandboxed: bool,
        limits: Limits | None = None,
        folder: Path | None = None,
        readable: tuple[str, ...] = (),
        devices: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
    ) -> Worker:
        """Fork a worker that runs `entry` ("room.module:function" of this package, given its channel). `folder` is
        the one place it may write; without it, it gets an empty one that vanishes with it. `readable` are paths of the host that
        it may read and `devices` that it may open beside what every worker may, `hidden` Python packages that it cannot import."""
        limits = limits or Limits()
        closed = sandboxed or self.confined
        if closed and not sandboxed:
            # Its replies are believed, so it may read our own files; what it leaves behind would be another's: nothing.
            memory = min(limits.memory, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
            limits = replace(limits, memory=memory, folder_bytes=CONFINED_BYTES)
            folder, readable = None, (*readable, *_search_path())
        more: dict[str, Any] = {"readable": readable, "devices": devices, "hidden": hidden}
        reasons = []
        for mode in self._modes() if closed else ["none"]:
            if mode == "none" and closed and not sandboxed:
                break  # a candidate's verdict says that it was not confined; nobody would be told so of a task
            worker, reason = self._try(entry, mode, closed, limits, folder, more)
            if worker is not None:
                if closed:
                    self.mode = mode
                if sandboxed:
                    worker.number_requests()
                return worker
            reasons.append(f"{mode}: {reason}")
        raise JudgeError(f"no worker could be started ({'; '.join(reasons)})")

    def _modes(self) -> list[str]:
        return [self.mode] if self.mode else list(MODES)

    def _try(
        self,
        entry: str,
        mode: str,
        sandboxed: bool,
        limits: Limits,
        folder: Path | None,
        more: dict[str, Any],
    ) -> tuple[Worker | None, str]:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        lifeline, holding = os.pipe()
        status, telling = os.pipe()
        output, printing = os.pipe()
        number = next(self._count)
        try:
            with self._lock:
                self._ensure()
                assert self._folder is not None
                root = self._folder / f"worker-{number}"
                root.mkdir()
                cell = replace(self._cell(mode, root, folder, number, limits), **more)
                reply = self._ask(
                    {"op": "spawn", "entry": entry, "cell": cell.as_message()}, [theirs.fileno(), lifeline, telling, printing]
                )
        finally:
            theirs.close()
            close_all([lifeline, telling, printing])
        if not reply.get("ok"):
            mine.close()
            close_all([holding, status, output])
            return None, str(reply.get("error"))
        worker = Worker(
            int(reply["pid"]),
            mine,
            lifeline=holding,
            status=status,
            output=output,
            limits=limits,
            folder=str(root),
            sandboxed=sandboxed,
        )
        try:
            hello, _ = worker.channel.receive(SPAWN_SECONDS)
        except ChannelError as error:
            hello = {"ok": False, "error": f"{error} {worker.printed()[-300:]}"}
        if not hello.get("ok"):
            worker.stop()
            return None, str(hello.get("error"))
        worker.level = str(hello["level"])
        with self._lock:
            self._workers = [other for other in self._workers if not other.stopped]
            self._workers.append(worker)
        return worker, ""

    def _cell(self, mode: str, root: Path, folder: Path | None, number: int, limits: Limits) -> Cell:
        uid = FIRST_UID + number % 100_000 if os.geteuid() == 0 else 65534
        if mode == "namespaces":
            return Cell(mode, str(root), str(folder) if folder else None, uid, limits)
        place = folder or root
        if mode == "landlock" and os.geteuid() == 0 and folder is None:
            os.chown(place, uid, uid)
        return Cell(mode, str(root), str(place), uid, limits)

    def _ensure(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._end()
        self._folder = Path(tempfile.mkdtemp(prefix="kernelwright-"))
        self._folder.chmod(0o711)
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        code = "import json, sys; sys.path[:] = json.loads(sys.argv[2])\n"
        code += "from kernelwright.workers.fork_main import main; main(int(sys.argv[1]), sys.argv[3:])"
        with (self._folder / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, str(theirs.fileno()), json.dumps(_search_path()), *self._preload],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self._environment(),
                start_new_session=True,
            )
        theirs.close()
        self._control = Channel(mine)
        try:
            self._control.receive(START_SECONDS)
        except ChannelError as error:
            said = (self._folder / "server.log").read_text(errors="replace").strip().splitlines()
            self._end()
            raise JudgeError(f"the server process of workers did not start: {said[-1] if said else error}") from error

    def _ask(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        assert self._control is not None
        try:
            return self._control.request(message, fds, timeout=SPAWN_SECONDS)[0]
        except ChannelError as error:
            self._end()
            raise JudgeError(f"the server process of workers was lost: {error}") from error

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _environment(self) -> dict[str, str]:
        """Nothing of the user's environment but where libraries are: a forked candidate can read what is put in here."""
        count = str(self.threads)
        result = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH", *CANN) if name in os.environ}
        result |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), count)
        # OpenBLAS starts its threads at import, and a server with threads cannot be forked.
        return {**result, **ALLOCATOR, "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def _search_path() -> list[str]:
    """The parent's own module search path, so that both sides run the same files; the current folder stays out."""
    package = str(Path(__file__).resolve().parents[2])
    return [*dict.fromkeys(path for path in [*sys.path, package] if path and Path(path).is_absolute() and Path(path).exists())]
