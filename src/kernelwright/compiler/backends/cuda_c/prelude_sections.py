"""The CUDA prelude: the sections of prelude/basics.h that a source names. Functions that are no more than CUDA's own under another name
are written here by rule.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kernelwright.compiler.lower.prelude import needed, sections_of

_SAME = "exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma"
_FUNCTION = (
    "#define FUNCTION static __device__ __forceinline__\n"
    "#define HOST_FUNCTION static __host__ __device__ __forceinline__\n"  # sizes that vary are reckoned with on both sides
)


@cache
def sections() -> dict[str, str]:
    """Name of each section → its text."""
    found: dict[str, str] = {}
    for name in _SAME.split():
        found[f"{name}_of"] = (
            f"FUNCTION float {name}_of(float x) {{ return {name}f(x); }}\n"
            f"FUNCTION double {name}_of(double x) {{ return {name}(x); }}\n"
        )
    return found | sections_of((Path(__file__).parent / "prelude" / "basics.h").read_text(encoding="utf-8"))


def prelude(source: str) -> str:
    """All sections that `source` needs."""
    return needed(source, sections(), _FUNCTION)


def scratch_memory() -> str:
    """Memory of the device for tiles that do not fit into shared memory."""
    return (Path(__file__).parent / "prelude" / "scratch.h").read_text(encoding="utf-8")
