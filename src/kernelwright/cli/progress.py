"""The progress view on stderr: what the team does, line by line, and the end of what a model is writing just now."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

if TYPE_CHECKING:
    from kernelwright.agents.watch import Watch

TAIL_LINES = 6


class View:
    """Holds the current line and the tail of the current answer; rich draws it a few times a second."""

    def __init__(self, name: str) -> None:
        self._name, self._line, self._tail, self._lock = name, "starting", "", threading.Lock()
        self._started = time.monotonic()
        self._spinner = Spinner("dots")

    def say(self, line: str) -> None:
        with self._lock:
            self._line, self._tail = line, ""

    def text(self, piece: str) -> None:
        with self._lock:
            self._tail = (self._tail + piece)[-4000:]

    def __rich__(self) -> Group:
        with self._lock:
            line = Text(f"{self._name}: {self._line}  ", overflow="ellipsis", no_wrap=True)
            line.append(f"{time.monotonic() - self._started:.0f} s", style="dim")
            self._spinner.update(text=line)
            tail = [
                Text(part, style="dim", overflow="ellipsis", no_wrap=True) for part in self._tail.splitlines()[-TAIL_LINES:]
            ]
        return Group(self._spinner, *tail)


@contextmanager
def watching(name: str) -> Iterator[Watch]:
    """A Watch that draws on stderr: alive on a terminal, a line for each step where it goes to a file."""
    from kernelwright.agents.watch import Watch

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Watch(lambda line: console.print(f"{name}: {line}", markup=False, highlight=False, soft_wrap=True))
        return
    view = View(name)
    with Live(view, console=console, refresh_per_second=8, transient=True):
        yield Watch(view.say, view.text)
