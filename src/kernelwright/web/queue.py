"""The runs that the page starts: put down in the store, then taken by `kernelwright resume` in a process of its own.

So a run belongs to no server: it goes on when the server ends, a queued one is begun by the next server, and whoever asks the store sees
the same. In: JobSpecs, and the names of runs to end or go on with. Out: processes. At most `abreast` at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from kernelwright.core import config
from kernelwright.core.errors import ConfigError, StoreError
from kernelwright.core.job import JobSpec
from kernelwright.store import RunRecord, Store
from kernelwright.web.listing import Listing

TICK = 0.3
PATIENCE = 15.0
"""Seconds between asking a process to end and ending it."""
TAIL = 4000
MOST_QUEUED = 200
LOG = "job.log"


class Queue:
    """Made with the store; `start` begins to start what is queued. `folder` holds a folder for each run."""

    def __init__(self, store: Store, listing: Listing, place: str, folder: Path, *, abreast: int = 1) -> None:
        self._store, self._listing, self._place, self._folder, self._abreast = store, listing, place, folder, abreast
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._ending: dict[str, float] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="queue", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more is started; what runs goes on."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def submit(self, job: JobSpec) -> str:
        """Put a job down; the name of its run."""
        if len(self._listing.having("queued")) >= MOST_QUEUED:
            raise ConfigError(f"{MOST_QUEUED} runs wait already; cancel some, or wait")
        run = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
        place = self._folder / run
        try:
            place.mkdir(parents=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"{place}: cannot be made: {error.strerror or error}") from error
        self._store.queue({**job.as_json(), "out": str(place)}, run)
        return run

    def cancel(self, run: str) -> str:
        """End a run; what became of it: "stopped" (it had not begun), or "ending"."""
        process = self._store.holder(run)
        if process is None:
            if (row := self._listing.row(run)) and row["status"] == "queued" and self._store.set_aside(run, "stopped"):
                return "stopped"
            raise ConfigError("nobody works on this run, so there is nothing to cancel")
        if not _ours(process):
            raise ConfigError("this run belongs to a program that does more than this run; end it there")
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        self._ending[run] = time.monotonic() + PATIENCE
        return "ending"

    def resume(self, run: str) -> None:
        """Put an ended or interrupted run down again; what it had found out is recalled."""
        JobSpec.from_json(self._store.load_run(run).job)  # one that cannot be repeated says so now
        if not self._store.set_aside(run, "queued"):
            raise ConfigError("this run is being worked on")

    def said(self, record: RunRecord) -> str:
        """The end of what a run's process wrote, where it did not end well."""
        if record.status in ("running", "queued", "done") or not self._begun_here(record.id):
            return ""
        try:
            text = (self._folder / record.id / LOG).read_text(errors="replace")
        except OSError:
            return ""
        return text[-TAIL:]

    def _begun_here(self, run: str) -> bool:
        return "/" not in run and (self._folder / run).is_dir()

    def _work(self) -> None:
        while not self._ended.wait(TICK):
            with suppress(StoreError):  # the listing tells of a store that cannot be read
                self._reap()
                self._press()
                self._begin()

    def _begin(self) -> None:
        alive = set(self._children) | {run for run in self._listing.having("running") if self._begun_here(run)}
        for run in self._listing.having("queued"):
            if len(alive) >= self._abreast:
                return
            if run not in alive and self._store.load_run(run).status == "queued":
                self._children[run] = self._spawn(run)
                alive.add(run)

    def _spawn(self, run: str) -> subprocess.Popen[bytes]:
        place = self._folder / run
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = config.find_file(Path.cwd())
        settings = {"KERNELWRIGHT_SANDBOX_TASKS": "true", **({"KERNELWRIGHT_CONFIG": str(found)} if found else {})}
        command = [sys.executable, "-m", "kernelwright", "resume", run, *(["--store", self._place] if self._place else [])]
        with (place / LOG).open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=place,
                env=os.environ | settings,
                start_new_session=True,
            )

    def _reap(self) -> None:
        for run, child in list(self._children.items()):
            if child.poll() is None:
                continue
            del self._children[run]
            if self._store.load_run(run).status == "queued":  # it ended before it took the run: it would for ever
                self._store.set_aside(run, "failed")

    def _press(self) -> None:
        for run, until in list(self._ending.items()):
            process = self._store.holder(run)
            if process is None:
                del self._ending[run]
            elif time.monotonic() > until and _ours(process):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def _ours(process: int) -> bool:
    """Whether a process is a command of ours that does this run and nothing else."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word in words for word in (b"generate", b"tune", b"migrate", b"resume"))
