"""Who may make noise: any number of workers at once, or one measurement alone.

In: the phases of verdicts in several threads. Out: while a timed phase runs, no trial, build or compilation of another verdict does.
A timed phase waits for what is under way and is let in before anything new begins, so it waits for one request at most.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Quiet:
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
