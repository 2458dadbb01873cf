"""A first look at a task: is it usable, does it fit in memory, how long does its reference take. The parent's side; no torch.

The task file runs in a sandboxed worker with limits on memory and time, because a folder of tasks may hold anything. A file that
hangs, exits or is killed there is done with. One that merely raises is asked once more outside, since it may need files beside it
which the sandbox hides. Scaling (`--scale`) happens here too: the task that comes back is the one to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernelwright.core.task import Task
from kernelwright.jobs.bench.record import Outcome
from kernelwright.workers.channel import ChannelClosed, ChannelError, ChannelTimeout
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.limits import GIB, Limits

LOOKING_SECONDS = 90.0
"""For running the file, constructing, counting and drawing, on a busy machine; the reference's own limit comes on top, thrice."""
MEMORY = 256 * GIB


@dataclass(frozen=True)
class Found:
    """What was found: a task that can be run (`outcome` is None) or the reason why it cannot."""

    outcome: Outcome | None
    reason: str = ""
    task: Task | None = None
    scaled: tuple[str, ...] = ()
    reference_ms: float | None = None


def probe(server: ForkServer, task: Task, *, scale: float, max_seconds: float) -> Found:
    """Look at a task without being harmed by it."""
    found = _ask(server, task, scale, max_seconds, sandboxed=True)
    if found.outcome == "unusable_task" and not found.reason.startswith(HARMFUL):
        found = _ask(server, task, scale, max_seconds, sandboxed=False)
    return found


HARMFUL = ("looking at the task", "running the task")


def _ask(server: ForkServer, task: Task, scale: float, max_seconds: float, *, sandboxed: bool) -> Found:
    message = {**task.as_json(), "scale": scale}
    limits = Limits(memory=MEMORY, file_bytes=1 << 30, cpu_seconds=3600)
    worker = server.spawn("jobs.bench.probe_worker:serve", sandboxed=sandboxed, limits=limits)
    stage = "looking"
    try:
        reply, _ = worker.request({"op": "look", **message}, timeout=LOOKING_SECONDS)
        if (refused := _refused(reply)) is not None:
            return refused
        stage = "running"
        timed, _ = worker.request({"op": "time", "most": max_seconds}, timeout=LOOKING_SECONDS / 3 + 3 * max_seconds)
    except ChannelTimeout:
        if stage == "running":
            return Found("too_slow", f"one run of the reference takes longer than {max_seconds:g} s")
        return Found("unusable_task", f"looking at the task takes longer than {LOOKING_SECONDS:g} s: it hangs")
    except ChannelClosed:
        return Found("unusable_task", f"{stage} the task ended its process: {worker.exit_reason(wait=0.5)}")
    except ChannelError as error:
        return Found("unusable_task", f"{stage} the task disturbed the judge's channel: {error}")
    finally:
        worker.stop()
    if (refused := _refused(timed)) is not None:
        return refused
    seconds = float(timed["seconds"])
    if seconds > max_seconds:
        return Found(
            "too_slow",
            f"one run of the reference takes {seconds:.1f} s, more than the {max_seconds:g} s allowed",
            reference_ms=seconds * 1e3,
        )
    source = str(reply["source"])
    same = source == task.source
    made = task if same else task.rewritten(source)
    return Found(None, "", made, tuple(map(str, reply["changes"])), seconds * 1e3)


def _refused(reply: dict[str, Any]) -> Found | None:
    if reply.get("ok"):
        return None
    reason = str(reply.get("error"))
    return Found("too_large" if reply.get("too_large") else "unusable_task", reason)
