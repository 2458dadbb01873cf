"""How much a worker may use: a frozen set of numbers, and how they are imposed on the calling process.

In: `Limits` made by the parent (plain data, travels as JSON). Out: rlimits of the worker and everything it starts. What an rlimit
cannot express (memory of a whole family of processes, wall time) is watched by the parent, in server.py.
"""

from __future__ import annotations

import contextlib
import resource
from dataclasses import asdict, dataclass
from typing import Any

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """Bounds for one worker. `memory` is what it may add to the server's own footprint, as address space per process and as
    resident memory over all its processes."""

    memory: int = 6 * GIB
    processes: int = 256
    file_bytes: int = 1 * GIB
    folder_bytes: int = 1 * GIB
    cpu_seconds: int = 3600
    open_files: int = 1024

    def as_message(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Limits:
        return cls(**{name: int(value) for name, value in message.items()})


def impose(limits: Limits, *, processes: int | None) -> None:
    """Lower this process's rlimits for good. Address space counts from what is mapped now: torch alone maps hundreds of MiB.
    `processes` is the limit for this user's tasks, or None where the user has others that must not count."""
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_AS, _mapped_bytes() + limits.memory)
    if processes is not None:
        _set(resource.RLIMIT_NPROC, processes)
    _set(resource.RLIMIT_FSIZE, limits.file_bytes)
    _set(resource.RLIMIT_CPU, limits.cpu_seconds)
    _set(resource.RLIMIT_NOFILE, limits.open_files)
    _set(resource.RLIMIT_MEMLOCK, 64 * MIB)


def _set(what: int, value: int) -> None:
    # A hard limit that is already lower stays: raising it needs privileges and is not ours to do.
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(what, (value, value))


def _mapped_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
