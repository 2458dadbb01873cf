"""Products of bf16 where the machine multiplies pairs of them (AVX-512 BF16): twice the operations of floats, half the bytes.

In: the scheduler and a `gemm` value with two bf16 operands. Out: lines that compute it, to stand in an `#if` beside those that convert
both operands to floats first (product.py); `PRELUDE` holds what they call. Products of pairs are exact and their sums are floats, as
with converted operands.

A is read in place, two elements of a row at a time. B is copied into panels of a cache line, `[n / 16][ceil(k / 2)][16][2]`, zeros
behind its ends; so a pair that runs over the end of k meets a zero, and A's part of it is masked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.compiler.lower.tile_values import VIEWS, Storage, Value
from kernelwright.sketch.index import combine, poly, to_c
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.product import View
    from kernelwright.compiler.backends.cpp.schedule import Scheduler

CONDITION = "#if defined(__AVX512BF16__)"
PANEL = 16

PRELUDE = r"""
#if defined(__AVX512BF16__)
// ---- products of bf16 in pairs: C[m, n] (+)= A[m, k] * B[k, n], sums in floats
#include <immintrin.h>
template <int ROWS, int VECTORS>
__attribute__((always_inline)) inline void pairs_registers(
    long k, const uint16_t* a, long a_row, const uint16_t* b, long b_panel, float* c, long c_row, bool fresh) {
  __m512 sum[ROWS][VECTORS];
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < VECTORS; v++) sum[r][v] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(c + r * c_row + v * 16);
  auto step = [&](long i, auto pair_of) __attribute__((always_inline)) {
    __m512bh row[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) row[v] = (__m512bh)_mm512_loadu_si512(b + v * b_panel + i * 16);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      const __m512bh scale = (__m512bh)_mm512_set1_epi32(pair_of(a + r * a_row + i));
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], scale, row[v]);
    }
  };
  long i = 0;
#pragma GCC unroll 4
  for (; i + 2 <= k; i += 2) step(i, [](const uint16_t* p) { int pair; __builtin_memcpy(&pair, p, 4); return pair; });
  if (i < k) step(i, [](const uint16_t* p) { return int(*p); });
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < VECTORS; v++) _mm512_storeu_ps(c + r * c_row + v * 16, sum[r][v]);
}

template <int ROWS, int VECTORS>
__attribute__((always_inline)) inline void pairs_rest(
    long rows, long k, const uint16_t* a, long a_row, const uint16_t* b, long b_panel, float* c, long c_row, bool fresh) {
  if constexpr (ROWS > 0) {
    if (rows == ROWS) pairs_registers<ROWS, VECTORS>(k, a, a_row, b, b_panel, c, c_row, fresh);
    else pairs_rest<ROWS - 1, VECTORS>(rows, k, a, a_row, b, b_panel, c, c_row, fresh);
  }
}

template <int VECTORS>
__attribute__((noinline)) void pairs_strip(
    long m, long k, const uint16_t* a, long a_row, const uint16_t* b, long b_panel, float* c, long c_row, bool fresh) {
  constexpr int R = 6;
  long i = 0;
  for (; i + R <= m; i += R) pairs_registers<R, VECTORS>(k, a + i * a_row, a_row, b, b_panel, c + i * c_row, c_row, fresh);
  pairs_rest<R - 1, VECTORS>(m - i, k, a + i * a_row, a_row, b, b_panel, c + i * c_row, c_row, fresh);
}

inline void gemm_pairs(
    long m, long n, long k, const uint16_t* a, long a_row, const uint16_t* panels, float* c, long c_row, bool fresh) {
  const long b_panel = (k + 1) / 2 * 32;
  long j = 0;
  for (; j + 64 <= n; j += 64) pairs_strip<4>(m, k, a, a_row, panels + j / 16 * b_panel, b_panel, c + j, c_row, fresh);
  for (; j + 32 <= n; j += 32) pairs_strip<2>(m, k, a, a_row, panels + j / 16 * b_panel, b_panel, c + j, c_row, fresh);
  for (; j < n; j += 16) pairs_strip<1>(m, k, a, a_row, panels + j / 16 * b_panel, b_panel, c + j, c_row, fresh);
}

inline void pack_pairs(long k, long n, const uint16_t* b, long b_row, long b_column, uint16_t* panels) {
  for (long p = 0; p < n; p += 16) {
    const long width = n - p < 16 ? n - p : 16;
    uint32_t* out = (uint32_t*)(panels + p / 16 * ((k + 1) / 2 * 32));
    for (long i = 0; i < k; i += 2, out += 16) {
      const uint16_t* first = b + i * b_row + p * b_column;
      const uint16_t* second = i + 1 < k ? first + b_row : nullptr;
      if (width == 16 && b_column == 1 && second)
        for (int e = 0; e < 16; e++) out[e] = first[e] | uint32_t(second[e]) << 16;
      else
        for (int e = 0; e < 16; e++)
          out[e] = e < width ? first[e * b_column] | (second ? uint32_t(second[e * b_column]) << 16 : 0) : 0;
    }
  }
}
#endif
"""


def operands(scheduler: Scheduler, value: Value) -> tuple[Value, Value] | None:
    """The two bf16 tiles that a product of floats multiplies, if all of their elements are numbers of bf16; ask before they are
    converted."""
    if value.dtype is not DType.f32:
        return None
    found = [_narrow(scheduler, x, value) for x in value.args[:2]]
    return (found[0], found[1]) if found[0] is not None and found[1] is not None else None


def _narrow(scheduler: Scheduler, x: Value, value: Value) -> Value | None:
    """A tile of floats as a tile of bf16 with the same numbers: a conversion is left out, whatever stands around it (a border of zeros,
    a view) stays. None where floats may not be numbers of bf16."""
    if x.dtype is DType.bf16:
        return x
    if x.storage is not None or x.kept or scheduler.usage.consumers.get(x, 0) > 1:
        return None
    if x.op == "cast":
        return x.args[0] if x.args[0].dtype is DType.bf16 else None
    if x.op == "const":
        return scheduler.builder.number(0, DType.bf16, x.shape) if x.data == 0 else None
    if x.op == "where":
        args: list[Value | None] = [x.args[0], *(_narrow(scheduler, arg, value) for arg in x.args[1:])]
    elif x.op in VIEWS:
        args = [_narrow(scheduler, x.args[0], value)]
    else:
        return None
    same = tuple(arg for arg in args if arg is not None)
    if len(same) != len(args):
        return None
    made = scheduler.builder.value(x.op, same, x.shape, DType.bf16, x.data)
    made.home = value.home
    return made


def lines(scheduler: Scheduler, value: Value, pair: tuple[Value, Value], target: Storage, fresh: str) -> list[str]:
    """The product of a pair of bf16 tiles, into `target`."""
    a, b = pair
    mark = len(scheduler.out)
    left, right = _operand(scheduler, a, value, 0), _operand(scheduler, b, value, 1)
    if left.column.constant != 1:
        left = _copied(scheduler, a, value)
    depth = combine("min", left.columns, right.rows)
    panels = Storage(
        scheduler.builder.fresh("pairs"),
        (combine("//", right.columns + PANEL - 1, poly(PANEL)), b.shape[0] + 1, poly(PANEL)),
        DType.bf16,
    )
    scheduler.declare_storage(panels)
    packing = (to_c(depth), to_c(right.columns), right.pointer(), to_c(right.row), to_c(right.column), panels.name)
    scheduler.out.append(f"pack_pairs({', '.join(packing)});")
    sizes = (to_c(left.rows), to_c(right.columns), to_c(depth))
    places = (left.pointer(), to_c(left.row), panels.name, target.name, to_c(target.extents[-1]), fresh)
    scheduler.out.append(f"gemm_pairs({', '.join((*sizes, *places))});")
    found = scheduler.out[mark:]
    del scheduler.out[mark:]
    return found


def _operand(scheduler: Scheduler, x: Value, value: Value, axis: int) -> View:
    """The operand as it lies in memory, if all of the tile's rows (of B: columns) do; else a copy."""
    from kernelwright.compiler.backends.cpp.product import view

    found = view(scheduler, x, x.dtype)
    if found is None or (found.rows, found.columns)[axis] != x.shape[axis]:
        return _copied(scheduler, x, value)
    return found


def _copied(scheduler: Scheduler, x: Value, value: Value) -> View:
    """The operand computed into a tile of bf16."""
    from kernelwright.compiler.backends.cpp.product import View

    copy = scheduler.builder.value("reshape", (x,), x.shape, x.dtype)
    copy.home = value.home
    scheduler.make(copy)
    storage = copy.storage
    assert storage is not None
    name = f"&{storage.name}" if storage.scalar else storage.name
    return View(name, poly(0), storage.extents[-1], poly(1), storage, x.shape[0], x.shape[1], poly(0))
