"""Memory as a contender: what the machine reads, writes and copies while a kernel is timed.

In: the machine's threads and caches. Out: a sheet whose bandwidths are the medians of passes over arrays far larger than the caches, one
pass of each kind in every round of the race, while all contenders rest. Neighbours on a shared machine move its bandwidth by 1.7x
within minutes: against a figure of another hour a roofline says nothing. One process of roofline.c serves all races of a judge; it
waits without spinning. Without a compiler there is none, and the sheet stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from dataclasses import dataclass, field, replace
from statistics import median

from kernelwright.core.errors import ToolMissing
from kernelwright.judge.timing.contender import give_precedence
from kernelwright.target import Target
from kernelwright.target.measure import program

MOST_BYTES = 256 << 20
PATIENCE = 20.0
"""Seconds for a round of passes, which take a tenth of one on an idle machine."""


@dataclass
class Rates:
    """Bytes a second of the passes of one race."""

    read: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)
    copy: list[float] = field(default_factory=list)

    def sheet(self, target: Target) -> Target:
        """The target with the bandwidth that it had in these rounds."""
        if not self.copy:
            return target
        read, write, copy = median(self.read), median(self.write), median(self.copy)
        return replace(target, bandwidth=max(read, write, copy), read_bandwidth=read, write_bandwidth=write)


class Streams:
    """The process that makes the passes; started by the first."""

    def __init__(self, target: Target, threads: int) -> None:
        self._bytes = min(MOST_BYTES, 4 * target.last_level_cache, target.memory // 32 or MOST_BYTES)
        self._target, self._threads = target, threads
        self._process: subprocess.Popen[str] | None = None
        self._missing = False

    def flow(self, rates: Rates) -> None:
        """One pass of each kind, added to the rates."""
        if self._missing or not self._started():
            return
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
                raise TimeoutError("no passes")
            measured = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):  # it was killed, perhaps for memory, or stopped: a roofline is not worth a verdict
            self._missing = True
            self.close()
            return
        for kind, rate in measured.items():
            getattr(rates, kind).append(float(rate))

    def _started(self) -> bool:
        if self._process is None:
            try:
                built = program(self._target.title, self._target.cores)
                command = [str(built), str(self._threads), "0", str(self._bytes), "passes"]
                exclusive = {**os.environ, "OMP_WAIT_POLICY": "passive"}
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=exclusive
                )
            except (ToolMissing, OSError, subprocess.SubprocessError):
                self._missing = True
                return False
            give_precedence([self._process.pid])
        return True

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.kill()
            self._process.communicate()
            self._process = None
