"""Who may make noise: any number of workers at once, or one measurement alone.

In: the phases of verdicts in several threads. Out: while a timed phase runs, no trial, build or compilation of another verdict does.
A timed phase waits for what is under way and is let in before anything new begins, so it waits for one request at most. Judges of
other processes take turns with it, round by round (`turn`): kernels that are timed at once would wait for each other at every barrier.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 5.0
"""A round takes a tenth of a second: who holds its turn for longer is stopped, and nobody waits for it."""
LOCK = os.path.join(tempfile.gettempdir(), "kernelwright-cpu.lock")


class Exclusive:
    """One per judge. A thread that is alone may share too: it is its own noise."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharing = 0
        self._waiting = 0
        self._alone: int | None = None

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Work that may run beside other work, but not beside a measurement."""
        me = threading.get_ident()
        if self._alone == me:
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._alone is None and not self._waiting)
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A measurement."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._alone is None and not self._sharing)
            finally:
                self._waiting -= 1
                self._changed.notify_all()
            self._alone = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._changed.notify_all()


@contextmanager
def turn() -> Iterator[None]:
    """One round of measurements, with no other judge's on this machine. Where the lock cannot be had, the round runs all the same: it is
    there for better figures, not for right ones."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            file = os.open(LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
            held.callback(os.close, file)
            held.callback(fcntl.flock, file, fcntl.LOCK_UN)  # closing is not enough where a child has inherited it
            patience = time.monotonic() + PATIENCE_SECONDS
            while not _locked(file) and time.monotonic() < patience:
                time.sleep(0.002)
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
