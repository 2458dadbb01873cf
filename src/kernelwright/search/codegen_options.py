"""The ways in which a language's coder can write one sketch: a coder and a sketch in, the options that make a difference out.

An option that leaves the text as it is (how sums are split, where nothing is summed) is no axis of a search. `code_of` is what two
kernels have in common that run the same instructions, whatever their sketches and options are called.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping

CODER = "coder "
"""Axes with this prefix are options of the coder, not of the sketch."""
SECONDS = 2.0
"""Time for finding out which options of a design matter; those that were not reached count as if they did."""

_CARRIED = re.compile(r"^SKETCH\w* = r'''.*?^'''$|^OPTIONS = .*?$", re.MULTILINE | re.DOTALL)

Write = Callable[[Mapping[str, int]], str]


def code_of(kernel: str) -> str:
    """A hash of the kernel's code without the sketch and the options that it carries."""
    bare = re.sub(r"\n+", "\n", _CARRIED.sub("", kernel))
    return hashlib.sha256(bare.encode(errors="surrogatepass")).hexdigest()


def ways(
    options: Mapping[str, tuple[int, tuple[int, ...]]], start: Mapping[str, int], write: Write
) -> dict[str, tuple[int, ...]]:
    """For each option the values that lead to different code, the one at the start among them."""
    began = time.monotonic()
    found: dict[str, tuple[int, ...]] = {}
    own = code_of(write(start))
    for name, (default, domain) in options.items():
        value = start.get(name, default)
        codes = {own: value}
        for other in domain:
            if other != value:
                late = time.monotonic() - began > SECONDS
                codes.setdefault(str(other) if late else code_of(write({**start, name: other})), other)
        if len(codes) > 1:
            found[CODER + name] = tuple(sorted(codes.values()))
    return found


def split(values: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """A point's values as those of the sketch and those of the coder."""
    sketch = {name: value for name, value in values.items() if not name.startswith(CODER)}
    return sketch, {name.removeprefix(CODER): value for name, value in values.items() if name.startswith(CODER)}
