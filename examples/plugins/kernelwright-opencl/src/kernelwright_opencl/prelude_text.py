"""The OpenCL prelude: of prelude/*.cl, the sections that a source names (compiler/lower/prelude.py).

OpenCL C has no templates: floats.cl is written once for float and once for double (both under one name: clang's `overloadable`),
integers.cl once for each type that a source names, extremes.cl for what an atomic can hold.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from kernelwright.compiler.lower.prelude import needed, sections_of

_SAME = "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma"
_FUNCTION = "#define FUNCTION static inline __attribute__((overloadable))\n"
_INT64_ATOMICS = (
    "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
    "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n"
)
_INTEGERS = ("long", "int", "short", "char", "uchar", "bool")
_ATOMIC = {"float": "uint", "double": "ulong", "int": "uint", "long": "ulong"}


def _of_type(text: str, kind: str, bits: str = "") -> str:
    """A section with T (and B, the bits of T) written out."""
    text = re.sub(r"(\b|_)T\b", rf"\g<1>{kind}", text)
    return re.sub(r"(\b|_)B\b", rf"\g<1>{bits}", text) if bits else text


@cache
def sections() -> dict[str, str]:
    """Name of each section → its text."""
    files = {
        name: sections_of((Path(__file__).parent / "prelude" / f"{name}.cl").read_text(encoding="utf-8"))
        for name in ("basics", "floats", "integers", "extremes")
    }
    found = dict(files["basics"])
    both = files["floats"] | {f"{name}_of": f"FUNCTION T {name}_of(T x) {{ return {name}(x); }}\n" for name in _SAME.split()}
    for name, text in both.items():
        code = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))
        found[name] = _of_type(text, "float") + _of_type(code, "double")
    for name, text in files["integers"].items():
        found |= {f"{name}_{kind}": _of_type(text, kind) for kind in _INTEGERS}
    for name, text in files["extremes"].items():
        found[name] = "".join(_of_type(text, kind, bits) for kind, bits in _ATOMIC.items())
    return found


def prelude(source: str) -> str:
    """All sections that `source` needs."""
    text = needed(source, sections(), _FUNCTION)
    return (_INT64_ATOMICS if "put_" in source else "") + text
