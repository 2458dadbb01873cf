"""Where the time of a verdict goes: the end of each phase in, seconds by phase out. Bookkeeping only; no verdict depends on it."""

from __future__ import annotations

import time


class Phases:
    """A watch with laps. A phase that is met twice counts together."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def end(self, phase: str) -> None:
        """What happened since the last call was this phase."""
        now = time.monotonic()
        self.seconds[phase] = round(self.seconds.get(phase, 0.0) + now - self._last, 3)
        self._last = now
