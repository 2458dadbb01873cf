"""The prelude of a C++ kernel: only the functions that its source uses.

In: C++ source. Out: the sections of prelude/*.h that it names, in the files' order, with what those need in turn.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FILES = ("basics.h", "vectors.h", "halves.h", "functions.h")

_FUNCTION = """// Always inlined: a loop that calls a function is not vectorised
#define FUNCTION static inline __attribute__((always_inline))
"""


@cache
def sections() -> dict[str, str]:
    """Name of each section → its text."""
    found: dict[str, str] = {}
    for file in _FILES:
        text = (Path(__file__).parent / "prelude" / file).read_text(encoding="utf-8")
        for part in text.split("// == ")[1:]:
            name, _, body = part.partition("\n")
            found[name.strip()] = body.rstrip() + "\n"
    return found


def prelude(source: str) -> str:
    """All sections that `source` needs, each after those it needs itself."""
    known = sections()
    order: list[str] = []

    def need(text: str, within: str = "") -> None:
        for name in dict.fromkeys(re.findall(r"\b\w+\b", text)):
            if name in known and name != within and name not in order:
                need(known[name], name)
                order.append(name)

    need(source)
    text = "".join(known[name] for name in order)
    return _FUNCTION + text if "FUNCTION" in text else text
