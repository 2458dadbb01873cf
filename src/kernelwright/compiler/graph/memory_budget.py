"""How much memory a module may keep beside its parameters: whether contractions may hold rearranged copies of their weights.

In: the captured graph. Out: yes or no, for all contractions together. Eager holds inputs, parameters and results whatever it does, so a
kernel that keeps at most `SPARE` of these bytes more is within a tenth of it, temporaries included. Weights that are small beside what
they are applied to (most convolutions) may be kept twice; those of a linear layer with few rows may not, and are packed by every call.
"""

from __future__ import annotations

import math

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.captured import Captured
from kernelwright.compiler.graph.symbolic import likely
from kernelwright.sketch.nodes import Int

SPARE = 0.08
"""Part of what eager holds that copies of weights may take."""


def copies_fit(captured: Captured) -> bool:
    """Whether a second copy of all weights of contractions is little beside what eager holds."""
    fixed = {t.name for t in captured.tensors if t.role in ("param", "constant")}
    held = sum(t.dtype.size * math.prod(e.value for e in t.shape if isinstance(e, Int)) for t in captured.tensors)
    held += sum(o.dtype.size * likely(o.size) for o in captured.outputs if isinstance(o, v.Value) and not isinstance(o, v.Leaf))
    order = v.topological([o for o in captured.outputs if isinstance(o, v.Value)])
    constant: set[int] = set()
    for value in order:
        if value.tensor in fixed if isinstance(value, v.Leaf) else all(id(s) in constant for s in value.sources()):
            constant.add(id(value))
    contractions = [x for x in order if isinstance(x, v.Contraction) and id(x) not in constant]
    copies = sum(
        x.dtype.size * likely(x.size) for c in contractions for x in c.operands if id(x) in constant
    )  # each makes its own
    at_once = max((_around(c, constant) for c in contractions), default=0)  # of these eager holds both sides while it computes
    return copies <= SPARE * max(held, at_once)


def _around(contraction: v.Contraction, constant: set[int]) -> int:
    """Bytes of the values that a contraction reads and of what it makes."""
    read = [x for x in contraction.operands if id(x) not in constant]
    return sum(x.dtype.size * likely(x.size) for x in (*read, contraction))
