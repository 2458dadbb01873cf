"""From what went wrong in a candidate's process to a status and one sentence.

In: a failed reply, an end of the process, an error of its channel. Out: `Rejected`, which the orchestrator turns into a verdict. What
the candidate says about itself decides only between kinds of failure, never for success.
"""

from __future__ import annotations

import re
from typing import Any

from kernelwright.core.verdict import Build, Mismatch, Status
from kernelwright.workers.channel import ChannelClosed, ChannelError, ChannelGarbage, ChannelTimeout, Message
from kernelwright.workers.sandbox import COMPILER_REFUSAL
from kernelwright.workers.worker import Exit, Forged, Worker

ERROR_LINE = re.compile(r"\b(fatal error|error)\b\s*:|undefined reference|undefined symbol|SyntaxError|Error:", re.IGNORECASE)
MEMORY_SIGNS = ("bad_alloc", "not enough memory", "Cannot allocate memory", "MemoryError", "can't allocate memory")
LINES_AROUND = 6


class Rejected(Exception):
    """The kernel's verdict is known before the end: these fields of it."""

    def __init__(self, status: Status, reason: str, *, mismatch: Mismatch | None = None, build: Build | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.mismatch = mismatch
        self.build = build

    def at(self, place: str) -> Rejected:
        """The same, with the sizes at which it happened named."""
        said = self.reason if place in self.reason else f"at {place}: {self.reason}"
        return Rejected(self.status, said, mismatch=self.mismatch, build=self.build)


class Refused(Rejected):
    """The kernel is not executed in this way; there may be another."""


def from_finding(finding: dict[str, Any]) -> Rejected:
    """The referee's or the clock's finding."""
    mismatch = Mismatch(**finding["mismatch"]) if finding.get("mismatch") else None
    return Rejected(Status(finding["status"]), str(finding["reason"]), mismatch=mismatch)


def from_reply(reply: Message, doing: str, printed: str, source: str) -> Rejected:
    """A failure that the candidate's worker reported itself."""
    kind, text = str(reply.get("kind", "crash")), str(reply.get("error", "")).strip()
    name, first = str(reply.get("type", "an error"))[:80], _first_line(text)
    if COMPILER_REFUSAL in text or "No module named 'torch._inductor" in text:
        return Rejected(Status.cheating, f"{doing} used torch.compile: {COMPILER_REFUSAL}")
    if kind == "memory":
        return Rejected(Status.out_of_memory, f"{doing} ran out of memory: {first}")
    if kind == "build":
        return _build_failed(name, text, str(reply.get("trace", "")), printed, source)
    if kind == "exit":
        return Rejected(Status.crashed, f"{doing} tried to exit: {first}")
    if kind == "refused":
        return Refused(Status.crashed, f"{doing} needs what is not executed here: {first}")
    where = _line_of_kernel(str(reply.get("trace", "")))
    return Rejected(Status.crashed, f"{doing} raised {name}{where}: {first}")


def from_channel(error: ChannelError, worker: Worker, doing: str, seconds: float | None) -> Rejected:
    """No reply: too late, gone, or forged."""
    if isinstance(error, Forged):
        return Rejected(
            Status.cheating, "the kernel wrote to the judge's channel itself: a message arrived that answers no request"
        )
    if isinstance(error, ChannelGarbage):
        return Rejected(Status.cheating, f"the kernel tampered with the judge's channel: {error}")
    ended = worker.exit_reason(wait=0.5 if isinstance(error, ChannelTimeout) else 2.0)
    if ended.kind == "memory" or (ended.kind != "unknown" and any(sign in worker.printed() for sign in MEMORY_SIGNS)):
        return Rejected(Status.out_of_memory, f"{doing} ran out of memory: {ended}")
    if ended == Exit("signal", 24):
        return Rejected(Status.timed_out, f"{doing} used more CPU time than it may")
    if isinstance(error, ChannelTimeout):
        return Rejected(Status.timed_out, f"{doing} did not finish within its time limit of {seconds:.0f} s")
    if isinstance(error, ChannelClosed) and ended.kind == "unknown":
        return Rejected(Status.crashed, f"{doing} failed: the process closed the judge's channel")
    return Rejected(Status.crashed, f"{doing} failed: {ended}")


def _build_failed(name: str, text: str, trace: str, printed: str, source: str) -> Rejected:
    """The compiler's first error with the lines around it, from wherever it was printed; else the Python error itself."""
    for where in (text, printed):
        lines = where.splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\berror\b\s*:|undefined reference", line) and not line.startswith("subprocess."):
                start = max(0, number - 2)
                excerpt = "\n".join(lines[start : start + 2 * LINES_AROUND])
                message = line.strip()[:500]
                return Rejected(
                    Status.build_failed, f"the kernel does not build: {message}", build=Build(message=message, excerpt=excerpt)
                )
    compiling = name == "CompileFailed"  # a target's compiler refused what the file has launched
    message = _first_line(text) if compiling else f"{name}: {_first_line(text)}"
    return Rejected(
        Status.build_failed,
        f"the kernel does not build: {message}" if compiling else f"the kernel file cannot be loaded: {message}",
        build=Build(message=message, excerpt=_excerpt(trace, source)),
    )


def _excerpt(trace: str, source: str) -> str:
    """The lines of the kernel file around the place where it failed."""
    found = re.findall(r'kernel\.py", line (\d+)', trace)
    if not found:
        return trace[-1500:]
    lines, at = source.splitlines(), int(found[-1])
    start = max(0, at - 1 - LINES_AROUND // 2)
    return "\n".join(
        f"{number + 1:4d}{'>' if number + 1 == at else ' '} {lines[number]}" for number in range(start, min(len(lines), at + 3))
    )


def _line_of_kernel(trace: str) -> str:
    found = re.findall(r'kernel\.py", line (\d+)', trace)
    return f" at line {found[-1]}" if found else ""


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else "no message")[:400]
