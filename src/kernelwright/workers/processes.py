"""A worker's processes as the host sees them: everything that descends from its keeper, read from /proc by the parent.

In: a pid. Out: pids, CPU seconds, resident bytes; and signals sent to all of them. A candidate may fork, detach and rename itself
as it likes: orphans fall back to the keeper, so they stay descendants.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

TICK = os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, parents before children, `pid` itself left out."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of all descendants, their ended threads and their ended children; nanoseconds where the kernel counts them."""
    total = 0.0
    for each in descendants(pid):
        # The clock id of another process's CPU clock, as clock_getcpuclockid(3) makes it.
        with contextlib.suppress(OSError):
            total += time.clock_gettime((~each << 3) | 2)
        total += _ended_children_seconds(each)
    return total + _ended_children_seconds(pid)


def resident_bytes(pid: int, limit: int) -> int:
    """Memory of all descendants together. Forked processes share pages; their exact shares are slow to find out, so that is done
    only when the simple sum is above `limit`."""
    total = _resident_sum(pid)
    if total <= limit:
        return total
    exact = 0
    for each in descendants(pid):
        with contextlib.suppress(OSError), open(f"/proc/{each}/smaps_rollup") as rollup:
            for line in rollup:
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    exact += int(line.split()[1]) * 1024
    return exact or total


def _resident_sum(pid: int) -> int:
    total = 0
    for each in descendants(pid):
        with contextlib.suppress(OSError), open(f"/proc/{each}/status") as status:
            for line in status:
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def signal_descendants(pid: int, number: int) -> None:
    """Signal the whole family; looks again until nobody new has appeared meanwhile."""
    done: set[int] = set()
    for _ in range(64):
        fresh = [each for each in descendants(pid) if each not in done]
        if not fresh:
            return
        for each in fresh:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, number)
        done.update(fresh)


def kill_descendants(pid: int) -> None:
    """End the whole family below `pid`. Stopped first, so that a fork bomb cannot outrun the killing."""
    signal_descendants(pid, signal.SIGSTOP)
    signal_descendants(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as children:
                found += [int(child) for child in children.read().split()]
    except OSError:
        return found
    return found


def _ended_children_seconds(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / TICK


def forget_peak(pid: int) -> int | None:
    """Let a process's peak of memory begin with what it has now, and say what that is; None where the system does not let us."""
    try:
        with open(f"/proc/{pid}/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return None
    return peak_bytes(pid)


def own_bytes(pid: int) -> int:
    """Memory that a process holds for itself alone, now; 0 once it is gone."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/statm") as statm:
        _, resident, shared, *_ = statm.read().split()
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def peak_bytes(pid: int) -> int | None:
    """The most memory that a process had resident since then."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
