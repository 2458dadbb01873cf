"""The judge: a task and a kernel in, a verdict that cannot be fooled out.

1. `verify.py`     the orchestrator `Judge`; `session.py` its steps, `call_blocks.py` those with many calls, `conversation.py` the
                   exchange with the two workers, `rejection.py` failures in words, `expectations.py` what earlier verdicts found out;
2. `servers.py`    which workers there are (`workers/` forks them, closes the candidate in and carries their messages);
3. `reference/`    the trusted worker that draws inputs and compares: `service.py` its requests, `referee.py` who answers them, `trials.py`
                   and `adversary.py` what is tried, `expect.py` and `numerics.py` what is right, `rows.py` large tasks;
4. `candidate.py`  the worker that runs the kernel;
5. `honesty/`      what it called and where its time went, null candidates, the gallery of cheats;
6. `timing/`       `clock.py` the interleaved measurement, `stopwatch.py` the only code that times calls.
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
