"""The prelude of a CUDA source: only the functions that it uses.

In: CUDA source. Out: the sections of prelude/*.h that it names, each after those it needs itself. Functions that are no more than
CUDA's own under another name are written here by rule.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_SAME = "exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma"
_FUNCTION = "#define FUNCTION static __device__ __forceinline__\n"


@cache
def sections() -> dict[str, str]:
    """Name of each section → its text."""
    found: dict[str, str] = {}
    for name in _SAME.split():
        found[f"{name}_of"] = (
            f"FUNCTION float {name}_of(float x) {{ return {name}f(x); }}\n"
            f"FUNCTION double {name}_of(double x) {{ return {name}(x); }}\n"
        )
    text = (Path(__file__).parent / "prelude" / "basics.h").read_text(encoding="utf-8")
    for part in text.split("// == ")[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = body.rstrip() + "\n"
    return found


def prelude(source: str) -> str:
    """All sections that `source` needs."""
    known = sections()
    order: list[str] = []

    def need(text: str, within: str = "") -> None:
        for name in dict.fromkeys(re.findall(r"\b\w+\b", text)):
            if name in known and name != within and name not in order:
                need(known[name], name)
                order.append(name)

    need(source)
    text = "".join(known[name] for name in order)
    return _FUNCTION + text if text else ""
