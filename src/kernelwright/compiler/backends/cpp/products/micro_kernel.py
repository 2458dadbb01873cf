"""Matrix products in C++: the register-blocked micro-kernel, its operand layouts, and the text of a call to it.

In: where two operands and an accumulator lie (pointers and strides as C texts). Out: C++ text. The emitter owns buffers and
loops; this file owns everything below a tile product. One source serves AVX2, AVX-512 and NEON: the vector width and the block
of registers are compile-time constants of the machine that builds it.

Layouts, for `C[m, n] (+)= A[m, k] @ B[k, n]`, all of one element type T (float, double, int32_t, int64_t):

* A needs no packing: its elements are broadcast, so any strides do (`a_row` per row, and per contraction loop). Measured on
  Zen 3: reading A in place is faster than copying it, also at power-of-two pitches (mm 256 x 2048 x 256: 88 against 80 GFLOP/s),
  as long as a block has no more rows than a set of the first cache has lines: rows a multiple of 4 KiB apart meet in one set of
  8, so blocks of 12 rows by 2 vectors lose 8 % there to 6 by 4 (Zen 4, 1024 cubed). An A that lies along m is the
  exception: `[ceil(m / BLOCK_ROWS)][k][BLOCK_ROWS]`, with blocks `a_block` apart, reads 4 % faster than rows of k, and far faster
  than in place at some pitches.
* B must be contiguous along n. Either in place (`b_panel = PANEL<T>`, any pitch along k; reads whole vectors, so n must be a
  multiple of LANES<T> or the memory behind the tile readable), or as panels: `[ceil(n / PANEL)][k][PANEL]`, zero-filled, with
  `b_panel = k * PANEL` and pitch PANEL along k. Panels pay when rows of B are far apart and B is used for several blocks of
  rows.
* C is a buffer with unit stride along n and pitch `c_row`, a multiple of LANES<T> that is at least n.

The contraction may be a nest of up to three loops, each with its own strides in A and B: a convolution's (kh, kw, channel) is
one call whose accumulators stay in registers throughout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.sketch.nodes import DType

ELEMENT = {DType.f32: "float", DType.f64: "double", DType.i32: "int32_t", DType.i64: "int64_t"}
"""Accumulator dtypes the micro-kernel is instantiated for; operands of other dtypes are converted while they are copied."""

_HEADERS = Path(__file__).parent.parent / "prelude"


def packing() -> str:
    """The functions that copy operands for the micro-kernel."""
    return "\n" + (_HEADERS / "packing.h").read_text(encoding="utf-8")


def prelude(registers: int = 0, unroll: int = 4) -> str:
    """The micro-kernel. `registers` is another block than the machine's own, in hundreds of rows and ones of vectors; the vectors must
    be a power of two, so that a strip never ends inside a panel of B."""
    text = "\n" + (_HEADERS / "products.h").read_text(encoding="utf-8").replace("@UNROLL@", str(unroll))
    if registers:
        rows, vectors = divmod(registers, 100)
        text = re.sub(r"BLOCK_ROWS = \d+, BLOCK_VECTORS = \d+;.*", f"BLOCK_ROWS = {rows}, BLOCK_VECTORS = {vectors};", text)
    return text


@dataclass(frozen=True)
class Loop:
    """One loop of a contraction, outermost first: how often, and the stride of A and of B in it, as C texts."""

    count: str
    a: str
    b: str


def block_of(a_row: str) -> str:
    """How far one block of rows lies from the next where rows lie at equal distances."""
    return f"BLOCK_ROWS * {a_row}" if re.fullmatch(r"\w+", a_row) else f"BLOCK_ROWS * ({a_row})"


def call(
    dtype: DType,
    m: str,
    n: str,
    loops: Sequence[Loop] | str,
    a: str,
    a_row: str,
    a_block: str,
    b: str,
    b_panel: str,
    c: str,
    c_row: str,
    fresh: str,
    panels: str = "",
) -> str:
    """The C++ statement for one tile product; `a_block` is empty if A is not in blocks of its own; `fresh` is a C condition:
    overwrite C instead of adding to it. `loops` is the C text of a list of places where the contraction is one. `panels` is room for the
    panels of a B that lies along k, with columns `b_panel` apart, and is packed strip by strip."""
    left = f"{a}, {a_row}, {a_block or block_of(a_row)}"
    right = f"{b}, {b_panel}, {panels}" if panels else f"{b}, {b_panel}"
    rest = f"{left}, {right}, {c}, {c_row}, {fresh}"
    if isinstance(loops, str):
        return f"gemm_tile<{ELEMENT[dtype]}>({m}, {n}, {loops}, {rest});"
    steps = list(loops) if len(loops) == 1 else [Loop("1", "0", "0")] * (3 - len(loops)) + list(loops)
    if len(steps) not in (1, 3):
        raise ValueError(f"a contraction of {len(loops)} loops; at most three fit one call")
    texts = [f"Step{{{s.count}, {s.a}, {s.b}}}" for s in steps]
    if panels:
        return f"gemm_packing<{ELEMENT[dtype]}>({m}, {n}, {texts[0]}, {rest});"
    return f"gemm_tile<{ELEMENT[dtype]}>({m}, {n}, {', '.join(texts)}, {rest});"
