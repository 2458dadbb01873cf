"""A task looked at without a kernel: a Task in, its facts, trials and flags out. The task's code runs in a process of its own.

So a file that crashes, prints or never ends costs one sentence, and the caller needs no torch. Parent side is `describe`; the
child is this module run with the number of a socket, which serves referee requests (referee.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from kernelwright.core.errors import JudgeError, TaskError
from kernelwright.core.task import Task
from kernelwright.workers.channel import Channel, ChannelClosed, ChannelTimeout, Message, close_all, pair

PATIENCE = 300.0


@dataclass(frozen=True)
class Description:
    """What the judge knows of a task before it sees a kernel."""

    facts: dict[str, Any]
    trials: tuple[dict[str, Any], ...]
    flags: tuple[str, ...]
    reference: str

    def as_json(self) -> dict[str, Any]:
        """One object for scripts; seeds stay secret."""
        facts = {key: value for key, value in self.facts.items() if key not in ("seed", "state")}
        labels = [trial["label"] for trial in self.trials]
        return {**facts, "trials": labels, "reference": self.reference, "flags": list(self.flags)}


def describe(task: Task, *, budget_s: float = 5.0, patience: float = PATIENCE) -> Description:
    """Run the referee on the task; TaskError when the file is at fault."""
    channel, theirs = pair()
    command = [sys.executable, "-m", "kernelwright.judge.describe", str(theirs.fileno())]
    child = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    theirs.close()
    try:
        request = {"op": "open", **task.as_json()}
        opened = _ask(channel, task, request, patience)
        _ask(channel, task, {"op": "weights", "names": opened["facts"]["state"]}, patience)
        planned = _ask(channel, task, {"op": "plan", "budget_s": budget_s}, patience)
        flagged = _ask(channel, task, {"op": "flags"}, patience)
    finally:
        channel.close()
        _end(child)
    return Description(opened["facts"], tuple(planned["trials"]), tuple(flagged["flags"]), planned["reference"])


def _ask(channel: Channel, task: Task, message: Message, patience: float) -> Message:
    try:
        reply, fds = channel.request(message, timeout=patience)
    except ChannelTimeout as error:
        raise TaskError(task.path, f"the reference did not finish within {patience:.0f} s") from error
    except ChannelClosed as error:
        raise TaskError(task.path, "running the task ended its process (it exits, crashes, or ran out of memory)") from error
    close_all(fds)
    if reply.get("task_error"):
        raise TaskSentence(str(reply["task_error"]))
    if not reply.get("ok"):
        raise JudgeError(f"{task.path}: the task could not be examined: {reply['error']['type']}: {reply['error']['message']}")
    return reply


class TaskSentence(TaskError):
    """A TaskError that comes from the child as its finished sentence."""

    def __init__(self, sentence: str) -> None:
        Exception.__init__(self, sentence)
        self.path, self.line, self.reason = "", None, sentence


def _end(child: subprocess.Popen[bytes]) -> None:
    """The child leaves when its channel closes; whatever it started goes with it."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=0.5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


if __name__ == "__main__":
    from kernelwright.judge.reference.service import serve

    serve(Channel(socket.socket(fileno=int(sys.argv[1]))))
