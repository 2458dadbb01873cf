"""Whether the machine did other work while something was timed: a finding made under load is a guess, and is marked as one.

In: a stretch of time. Out: `Watch.quiet`. Two witnesses: the time that our own threads waited for a core (Linux counts it in nanoseconds),
and what others used of all cores (counted in ticks, so only stretches of a tenth of a second tell). Where neither can be read, nothing is
known against the machine.
"""

from __future__ import annotations

import functools
import os
import time
from contextlib import suppress
from pathlib import Path

WAITED = 0.03
"""Waiting for a core that is more than this share of the time disturbs a measurement."""
OTHERS = 0.1
"""So does work of others that takes more than this share of all cores: it takes memory bandwidth, too."""
TICKS_TELL = 0.1
"""Seconds from which a count of ticks of a hundredth says something."""


class Watch:
    """Begins where it is made; ask `quiet` at the end."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._waited, self._busy, self._own = _waited(), _busy(), _own()

    @property
    def quiet(self) -> bool:
        """Whether nothing speaks against what was measured since."""
        wall = max(time.perf_counter() - self._began, 1e-6)
        if (_waited() - self._waited) / wall > WAITED:
            return False
        others = (_busy() - self._busy) - (_own() - self._own)
        return wall < TICKS_TELL or others / wall / (os.cpu_count() or 1) <= OTHERS


@functools.cache
def quiet_now() -> bool:
    """A look at the machine that takes as long as ticks need; once a process."""
    watch = Watch()
    time.sleep(TICKS_TELL)
    return watch.quiet


def _waited() -> float:
    """Seconds that the threads of this process were ready to run and did not."""
    total = 0
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError, IndexError, ValueError):
                total += int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[1])
    return total * 1e-9


def _busy() -> float:
    """Seconds of all cores that anybody used, another guest of the host included."""
    with suppress(OSError, ValueError, IndexError):
        user, nice, system, _, _, interrupts, soft, stolen = map(
            int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        )
        return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")
    return _own()


def _own() -> float:
    used = os.times()
    return used.user + used.system
