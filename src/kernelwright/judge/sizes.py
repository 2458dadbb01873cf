"""What a verdict says of sizes that vary: a session in; the sizes tried, what was timed there, and a geometric mean out.

Which sizes are tried is chosen in the referee (`reference/sizes.py`), out of the candidate's sight. Here is the parent's side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kernelwright.core.kernel import Kernel
from kernelwright.core.verdict import SizeProof, Sizes, SizeTiming, Timing
from kernelwright.judge.session import Session

SIZE_SECONDS = 0.8
"""Of rounds at one other size."""


@contextmanager
def at_sizes(session: Session, trial: int) -> Iterator[dict[str, Any]]:
    """Timed inputs are drawn at a trial's sizes meanwhile; gives the facts of a call there."""
    reply, _ = session.ask_referee({"op": "at_sizes", "trial": trial})
    try:
        yield reply["facts"]
    finally:
        session.ask_referee({"op": "at_sizes", "trial": None})


def size_timing(place: str, timing: Timing) -> SizeTiming:
    """The figures of a measurement at other sizes."""
    return SizeTiming(
        sizes=place,
        kernel_ms=timing.kernel_ms,
        eager_ms=timing.eager_ms,
        speedup=timing.speedup,
        speedup_low=timing.speedup_low,
        speedup_high=timing.speedup_high,
    )


def sizes_of(session: Session, own: Timing | None, timed: Sequence[SizeTiming]) -> Sizes | None:
    """The verdict's words on sizes; None for a task whose sizes are fixed."""
    if session.varying is None:
        return None
    ratios = [each.speedup for each in (*timed, own) if each is not None] if timed else []
    return Sizes(
        ranges=str(session.varying["ranges"]),
        tried=tuple(session.places),
        left_out=tuple(str(each) for each in session.varying["left_out"]),
        timed=tuple(timed),
        speedup=math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None,
    )


def proof_for(session: Session, kernel: Kernel) -> SizeProof | None:
    """What is proved for every size of what the kernel file says it computes; None for a task whose sizes are fixed."""
    if session.varying is None:
        return None
    from kernelwright.sketch.check.size_proof import proof_of_texts

    return proof_of_texts(kernel.sketches)
