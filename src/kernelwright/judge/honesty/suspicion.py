"""What timed blocks give away: the candidate's contender beside eager's, which is known to be honest, in; a finding or nothing out.

Every test compares with eager under the same conditions, and an accusation needs three quarters of the candidate's blocks against
it: one loaded moment is no proof, and who cheats in fewer blocks than that does not move the median. What is done outside the timed
calls is the smaller of wall and CPU time: waiting for a processor is no work, nor are threads that spin beside it (measured for the
same copies under a load of 6: 1.2 to 2.4 ms, where the wall clock alone said 1.7 to 15). The clock asks twice (clock.py).
"""

from __future__ import annotations

from statistics import median
from typing import Any

from kernelwright.judge.timing.contender import Block, Contender
from kernelwright.judge.timing.statistics import lower_quartile, upper_quartile

Finding = dict[str, Any]

CLOCK_SLACK, CLOCK_SHARE = 0.0005, 0.5
"""How far a block's claim must be behind the wall clock to be an accusation. Less gains nothing: the clock takes the larger."""

SLOW_READ = 6e9
"""Bytes a second at which one core fetches outputs from memory while others use it too. Eager's may still lie in the cache; those of
a kernel with streaming stores do not, and that is no crime. Such outputs are guarded by the floor: they cannot be written for nothing."""


def cheating(reason: str) -> Finding:
    """A finding that ends the verdict."""
    return {"status": "cheating", "reason": reason}


def by_time(reason: str) -> Finding:
    """A finding from times alone, which has to show again in a fresh process."""
    return {**cheating(reason), "by_time": True}


def suspicion(candidate: Contender, eager: Contender, impossible: float) -> Finding | None:
    """The first of seven questions that has a bad answer. `impossible` is the time per call below which physics is against it."""
    mine, theirs = candidate.blocks, eager.blocks
    if candidate.busy_windows >= 2:
        return by_time("background work: the process kept computing while no call was running")
    if _clock_is_off(mine, theirs):
        claimed, wall = (median(getattr(block, name) for block in mine) * 1e3 for name in ("claimed", "wall"))
        return by_time(f"its clock is off: calls claimed {claimed:.2f} ms but took {wall:.2f} ms on the wall clock")
    if _works_while_preparing(mine, theirs):
        took, usual = (median(block.preparing for block in blocks) * 1e3 for blocks in (mine, theirs))
        return by_time(f"work outside the timed calls: receiving its inputs takes it {took:.2f} ms, eager {usual:.2f} ms")
    if _works_while_handing_over(candidate, eager):
        took, usual = median(candidate.handing) * 1e3, median(eager.handing) * 1e3
        return by_time(
            f"outputs were computed after the timed calls: handing them over took it {took:.2f} ms, eager {usual:.2f} ms"
        )
    if _works_while_releasing(candidate, eager):
        took, usual = median(candidate.releasing) * 1e3, median(eager.releasing) * 1e3
        return by_time(f"work outside the timed calls: letting go of a block takes it {took:.2f} ms, eager {usual:.2f} ms")
    if _moves_work(mine, theirs):
        share = median(block.first for block in mine)
        return by_time(f"work was moved between timed calls: the first call of a block takes {share:.0%} of the block's time")
    fastest = median(block.seconds for block in mine)
    if fastest < impossible:
        return by_time(
            f"faster than the hardware allows: {fastest * 1e6:.1f} µs a call, the floor is {impossible * 1e6:.1f} µs"
        )
    return None


def _clock_is_off(mine: list[Block], theirs: list[Block]) -> bool:
    gap = lower_quartile([block.wall - block.claimed for block in mine])
    usual = upper_quartile([block.wall - block.claimed for block in theirs])
    return gap > 3 * usual + CLOCK_SLACK + CLOCK_SHARE * median(block.wall for block in mine)


def _works_while_preparing(mine: list[Block], theirs: list[Block]) -> bool:
    extra = lower_quartile([block.preparing for block in mine]) - 1.3 * upper_quartile([block.preparing for block in theirs])
    return extra > 0.0005 and extra > 0.3 * median(block.claimed for block in mine)


def _works_while_releasing(candidate: Contender, eager: Contender) -> bool:
    extra = _releasing(candidate, eager)
    return extra > 0.0005 and extra > 0.3 * median(block.claimed for block in candidate.blocks)


def _releasing(candidate: Contender, eager: Contender) -> float:
    """Seconds a block that destructors and threads need after it, and eager's do not."""
    if min(len(candidate.releasing), len(eager.releasing)) < 3:
        return 0.0
    return lower_quartile(candidate.releasing) - 1.3 * upper_quartile(eager.releasing)


def outside(candidate: Contender, eager: Contender) -> float:
    """Seconds a block that a kernel surely works outside its calls, beyond what eager does there. Too little for an accusation is
    still on its account."""
    preparing = lower_quartile([block.preparing for block in candidate.blocks])
    preparing -= 1.3 * upper_quartile([block.preparing for block in eager.blocks])
    return max(0.0, preparing) + max(0.0, _releasing(candidate, eager))


def _works_while_handing_over(candidate: Contender, eager: Contender) -> bool:
    """Outputs that are computed only when they are asked for: handing over a block's takes the block's own time again."""
    if not candidate.handing or not eager.handing:
        return False
    extra = lower_quartile(candidate.handing) - 1.2 * upper_quartile(eager.handing) - eager.handed_bytes / SLOW_READ
    return extra > 0.0005 and extra > 0.3 * median(block.claimed for block in candidate.blocks)


def _moves_work(mine: list[Block], theirs: list[Block]) -> bool:
    """One call that does the work of those after it. Waking threads makes a first call slower too, but by microseconds. Blocks of
    few calls tell nothing, and a hiccup may have cut some short: those that are long enough decide, if they are the most."""
    long = [block for block in mine if block.calls >= 4]
    if 2 * len(long) < len(mine) or median(block.claimed for block in long) < 0.0005:
        return False
    return lower_quartile([block.first for block in long]) > 0.7 and median(block.first for block in theirs) < 0.5
