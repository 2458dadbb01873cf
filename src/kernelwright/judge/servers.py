"""The judge's server of workers: which modules its forks find imported, and where each kind of worker begins.

In: a number of threads, and further modules (a language's runtime). Out: a `ForkServer`. After the sandbox is closed our own files cannot
be read any more, so whatever a worker needs is imported here, before it is forked.
"""

from __future__ import annotations

from kernelwright.workers.fork_server import ForkServer

REFEREE = "judge.reference.service:serve"
CANDIDATE = "judge.candidate:serve"
CONTENDER = "judge.timing.baseline_worker:serve"

PRELOAD = (
    "kernelwright.judge.reference.service",
    "kernelwright.judge.candidate",
    "kernelwright.judge.timing.baseline_worker",
    "kernelwright.judge.timing.stopwatch",
)


def judge_server(threads: int = 1, *, preload: tuple[str, ...] = (), confined: bool = False) -> ForkServer:
    """A server whose workers can be referee, candidate and contender; `confined` as in ForkServer."""
    return ForkServer(threads, preload=(*PRELOAD, *preload), confined=confined)
