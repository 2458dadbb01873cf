"""Counterexamples by trying: small sizes, every iteration there. For claims that no solver decided, or where none is installed.

In: a claim. Out: values that break it, or None when none were found, which proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from kernelwright.sketch import nodes
from kernelwright.sketch.check.claims import SECOND, Claim, broken, met
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.nodes import For, Index

STEPS = (0, 1, 2, 3, 5, 8, 17, 33, 65, 130)
"""Above the least size, in units of its divisor."""
MOST_SETTINGS = 400
MOST_ITERATIONS = 3000
MOST_PAIRS = 200_000


def smallest_break(sketch: nodes.Sketch, claim: Claim, shapes: Mapping[str, Sequence[Index]]) -> dict[str, int] | None:
    """The first break among small sizes, all tunables at their defaults and at their ends."""
    fixed = {size.name: size.value for size in sketch.sizes if not size.dynamic}
    names, values = [], []
    for size in sketch.sizes:
        if size.dynamic:
            least = -(-size.low // size.multiple_of) * size.multiple_of
            tried = [least + step * size.multiple_of for step in STEPS]
            names.append(size.name)
            values.append([value for value in tried if size.high is None or value <= size.high])
    for tunable in sketch.tunables:
        names.append(tunable.name)
        values.append(list(dict.fromkeys((tunable.value, min(tunable.domain), max(tunable.domain)))))
    every = sorted(islice(product(*values), 100_000), key=sum)
    left = MOST_PAIRS
    for setting in every[:MOST_SETTINGS]:
        env = {**fixed, **dict(zip(names, setting, strict=True))}
        found, used = _break(claim, env, shapes, left)
        if found is not None:
            return found
        left -= used
        if left <= 0:
            return None
    return None


def _break(
    claim: Claim, env: dict[str, int], shapes: Mapping[str, Sequence[Index]], most: int
) -> tuple[dict[str, int] | None, int]:
    """A break at these sizes, and how many things were looked at."""
    if claim.meeting is None:
        count = 0
        for count, at in enumerate(islice(_iterations(claim.loops, env), MOST_ITERATIONS), start=1):
            if broken(claim, at):
                return at, count
        return None, count + 1
    loops, others = claim.meeting.store.loops, claim.meeting.other.loops
    mine = list(islice(_iterations(loops, env), MOST_ITERATIONS))
    theirs = mine if others is loops else list(islice(_iterations(others, env), MOST_ITERATIONS))
    if len(mine) * len(theirs) > most:
        return None, 1
    for one in mine:
        for other in theirs:
            both = one | {loop.var + SECOND: other[loop.var] for loop in others}
            if met(claim.meeting, both, shapes):
                return both, 0
    return None, len(mine) * len(theirs) + 1


def _iterations(loops: Sequence[For], env: dict[str, int]) -> Iterator[dict[str, int]]:
    if not loops:
        yield env
        return
    loop, *inner = loops
    try:
        start, stop, step = (evaluate(bound, env) for bound in (loop.start, loop.stop, loop.step))
    except ZeroDivisionError:
        return
    if step <= 0:
        return
    for value in range(start, stop, step):
        yield from _iterations(inner, {**env, loop.var: value})
