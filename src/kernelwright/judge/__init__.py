"""The judge: a task and a kernel in, a verdict that cannot be fooled out.

1. `verify.py`     the orchestrator `Judge`; `session.py` its steps, `conversation.py` the exchange
                   with the two workers, `rejection.py` failures in words;
2. `server.py`   starts the server process (`workers/fork_server.py`), which forks workers (`worker.py`, `family.py`);
3. `sandbox.py`    closes the candidate in (`landlock.py`, `seccomp.py`, `limits.py`, `system_calls.py`);
4. `channel.py`, `bundle.py`  the bounded boundary between processes;
5. `referee.py`    the trusted worker that draws inputs and compares (`inputs.py`, `numerics.py`, `nulls.py`, `regions.py`);
6. `candidate.py`  the worker that runs the kernel; `trace.py` what it called, `observe.py` where its time went, seen from outside;
7. `clock.py`      the interleaved measurement (`stopwatch.py`, `contender.py`, `statistics.py`, `roofline.py`, `baselines.py`), alone on
                   the machine (`exclusive.py`);
8. `verdict.py`    the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelwright.core.verdict import Status, Verdict

if TYPE_CHECKING:
    from kernelwright.judge.conversation import Times
    from kernelwright.judge.verify import Judge

__all__ = ["Judge", "Status", "Times", "Verdict"]


def __getattr__(name: str) -> Any:
    """`Judge` is imported on use: workers import this package too and need none of it."""
    if name == "Judge":
        from kernelwright.judge.verify import Judge

        return Judge
    if name == "Times":
        from kernelwright.judge.conversation import Times

        return Times
    raise AttributeError(name)
