"""Parts of a batch one after the other: what two kernels hand over between them is then as large as one part needs.

In: an operand, what its operator makes, how much is stored on the way, and how to make it. Out: the value, in parts where storing all of
it would take more memory than eager plus a tenth has. The parts' temporaries share memory (compiler/lower/module_file/workspace.py),
since each is made right before it is used (assemble.py), and are near when they are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kernelwright.compiler.frontend.operators.table import Result
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph.memory_budget import SPARE
from kernelwright.compiler.graph.symbolic import Size, likely
from kernelwright.compiler.graph.values import Concat, Value

MOST = 16
"""Parts: more would leave too little work for all threads in each."""


def in_sections(x: Value, out: Result, between: int, make: Callable[[Value], Value]) -> Value:
    """`make(x)`, which stores `between` elements on its way; the first two axes of x and of the result are the same."""
    room = SPARE * likely(x.size + math.prod(out.shape))
    if not out.native or likely(between) <= room:
        return make(x)
    for axis in (0, 1):
        extent = x.shape[axis]
        if isinstance(extent, Size):
            continue
        counts = (n for n in range(2, min(MOST, extent) + 1) if extent % n == 0 and likely(between) <= n * room)
        if (count := next(counts, 0)) != 0:
            length = extent // count
            parts = (make(b.slice_axis(x, axis, k * length, (k + 1) * length)) for k in range(count))
            return Concat(out.shape, out.dtype, tuple(parts), axis)
    return make(x)
