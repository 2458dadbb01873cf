"""The C++ prelude: the sections of prelude/*.h that a source names (compiler/lower/prelude.py)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kernelwright.compiler.lower.prelude import needed, sections_of

_FILES = ("basics.h", "vectors.h", "fp16_bf16.h", "functions.h")

_FUNCTION = """// Always inlined: a loop that calls a function is not vectorised
#define FUNCTION static inline __attribute__((always_inline))
"""


@cache
def sections() -> dict[str, str]:
    """Name of each section → its text."""
    found: dict[str, str] = {}
    for file in _FILES:
        found |= sections_of((Path(__file__).parent / "prelude" / file).read_text(encoding="utf-8"))
    return found


def prelude(source: str) -> str:
    """All sections that `source` needs."""
    return needed(source, sections(), _FUNCTION)
