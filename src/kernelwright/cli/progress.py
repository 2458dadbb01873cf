"""The progress view on stderr: moves with their reasons, verdicts and speeds, which stay on the screen; below them what is being done just
now, and the end of what a model is writing."""

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

from kernelwright.core.verdict import Status

if TYPE_CHECKING:
    from kernelwright.run.observer import Observer, Standing

REJECTED = frozenset(status for status in Status if status is not Status.correct)
TAIL_LINES = 6
BARS = "▁▂▃▄▅▆▇█"


class View:
    """Holds the current line and the tail of the current answer; rich draws it a few times a second."""

    def __init__(self, name: str) -> None:
        self._name, self._line, self._tail, self._lock = name, "starting", "", threading.Lock()
        self._started = time.monotonic()
        self._spinner = Spinner("dots")
        self._standing: Standing | None = None

    def say(self, line: str) -> None:
        with self._lock:
            self._line, self._tail = line, ""

    def kept(self, line: str) -> Text:
        """A line that stays above the view, with the seconds since the start."""
        text = Text(f"{time.monotonic() - self._started:6.0f} s  ", style="dim")
        status = line.strip().split(":")[0]
        return text.append(line, style="green" if status == "correct" else "red" if status in REJECTED else "not dim")

    def text(self, piece: str) -> None:
        with self._lock:
            self._tail = (self._tail + piece)[-4000:]

    def stands(self, standing: Standing) -> None:
        with self._lock:
            self._standing = standing

    def __rich__(self) -> Group:
        with self._lock:
            line = Text(f"{self._name}: {self._line}  ", overflow="ellipsis", no_wrap=True)
            line.append(f"{time.monotonic() - self._started:.0f} s", style="dim")
            self._spinner.update(text=line)
            tail = [
                Text(part, style="dim", overflow="ellipsis", no_wrap=True) for part in self._tail.splitlines()[-TAIL_LINES:]
            ]
            search = [Text(part, overflow="ellipsis", no_wrap=True) for part in standing_lines(self._standing)]
        return Group(self._spinner, *search, *tail)


def standing_lines(standing: Standing | None) -> list[str]:
    """How a search stands, as lines: the best with its way there, the budget, islands, and what is raced just now."""
    if standing is None:
        return []
    best = standing.best[-1] if standing.best else 1.0
    left = max(standing.budget - standing.seconds, 0.0)
    agreement = f", cost model {standing.agreement:.2f}" if standing.agreement is not None else ""
    lines = [f"  best {best:.2f}x the first kernel  {bars(list(standing.best[-40:]))}"]
    lines.append(
        f"  {standing.raced} raced, {standing.seconds:.0f} s of {standing.budget:.0f} s, at most {left:.0f} s left{agreement}"
    )
    return lines + [f"  {island}" for island in standing.islands] + [f"  > {what}" for what in standing.doing]


def bars(values: list[float]) -> str:
    """A sparkline."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1)) if high > low else 0] for value in values)


@contextmanager
def watching(name: str) -> Iterator[Observer]:
    """A Observer that draws on stderr: alive on a terminal, a line for each step where it goes to a file."""
    from kernelwright.run.observer import Observer

    console = Console(stderr=True)
    if not console.is_terminal:

        def line(text: str) -> None:
            console.print(f"{name}: {text}", markup=False, highlight=False, soft_wrap=True)

        yield Observer(line, note=line)
        return
    view = View(name)
    with Live(view, console=console, refresh_per_second=8, transient=True):
        yield Observer(view.say, view.text, view.stands, lambda text: console.print(view.kept(text)))
