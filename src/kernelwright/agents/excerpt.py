"""What a prompt shows of a kernel file: all of a small one without the sketch that it carries, of a large one the parts that matter.

In: a file's text and the lines that somebody pointed at. Out: text whose lines are the file's own, so that they can be quoted in
SEARCH blocks; what is left out says so and stays as it is. A file that a Coder changes carries no sketch: nobody has proved one against it.
"""

from __future__ import annotations

import re

from kernelwright.agents.distil import native_source

WHOLE = 16_000
"""Characters of a kernel file that are shown as they are: about 5,000 tokens."""
AROUND, HEAD, MODULE = 40, 30, 60
"""Lines kept around a place that matters, at the beginning, and of the Python class at the end."""
CARRIED = re.compile(r"^SKETCH\w* = [rR]?(?P<quote>'''|\"\"\").*?(?P=quote)[ \t]*\n+", re.MULTILINE | re.DOTALL)
PLACES = re.compile(r'extern\s+"C"|__global__|@triton\.jit|@T\.prim_func|#pragma omp parallel')


def without_sketch(kernel: str) -> str:
    """The file without `SKETCH = …`."""
    return CARRIED.sub("", kernel)


def shown_kernel(kernel: str, lines: tuple[int, ...] = ()) -> str:
    """The file as a prompt shows it; `lines` are numbers in its native source that must be seen."""
    kernel = without_sketch(kernel)
    if len(kernel) <= WHOLE:
        return kernel
    rows = kernel.splitlines()
    offset = _native_offset(kernel)
    wanted = [offset + line - 1 for line in lines if 0 <= offset + line - 1 < len(rows)]
    wanted += [at for at, row in enumerate(rows) if PLACES.search(row)]
    kept = set(range(min(HEAD, len(rows)))) | set(range(max(0, len(rows) - MODULE), len(rows)))
    used = sum(len(rows[at]) + 1 for at in kept)
    for reach in range(AROUND + 1):
        for place in wanted:
            for at in (place - reach, place + reach):
                if 0 <= at < len(rows) and at not in kept and used + len(rows[at]) < WHOLE:
                    kept.add(at)
                    used += len(rows[at]) + 1
    told, last = [], -1
    for at in sorted(kept):
        if at != last + 1:
            told.append(f"[… lines {last + 2} to {at} of the file are left out and stay as they are …]")
        told.append(rows[at])
        last = at
    return "\n".join(told) + "\n"


def _native_offset(kernel: str) -> int:
    """The index of the file's line on which its native source begins; the compiler counts from there."""
    native = native_source(kernel)
    at = kernel.find(native) if native else -1
    return kernel.count("\n", 0, at) if at >= 0 else 0
