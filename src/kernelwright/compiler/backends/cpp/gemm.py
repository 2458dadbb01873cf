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

from kernelwright.sketch.nodes import DType

ELEMENT = {DType.f32: "float", DType.f64: "double", DType.i32: "int32_t", DType.i64: "int64_t"}
"""Accumulator dtypes the micro-kernel is instantiated for; operands of other dtypes are converted while they are copied."""

_PRELUDE = r"""
#include <type_traits>
// ---- matrix products: C[m, n] (+)= A[m, k] * B[k, n] on tiles, accumulators in registers
#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64, BLOCK_ROWS = 6, BLOCK_VECTORS = 4;  // 24 of 32 registers accumulate
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32, BLOCK_ROWS = 6, BLOCK_VECTORS = 2;  // 12 of 16
#elif defined(__aarch64__)
constexpr int VECTOR_BYTES = 16, BLOCK_ROWS = 6, BLOCK_VECTORS = 4;  // 24 of 32
#else
constexpr int VECTOR_BYTES = 16, BLOCK_ROWS = 4, BLOCK_VECTORS = 2;
#endif
template <typename T> constexpr int LANES = VECTOR_BYTES / sizeof(T);
template <typename T> constexpr int PANEL = 64 / sizeof(T);  // B is packed in panels as wide as a cache line
template <typename T> struct VectorOf {
  typedef T type __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <typename T> constexpr inline long panel_of(long j, long b_panel) { return j / PANEL<T> * b_panel + j % PANEL<T>; }

struct Step { long count, a, b; };  // one loop of the contraction and how far A and B move in it

// A contraction that is one loop.
struct Straight {
  long count, a_step, b_step;
  long a(long i) const { return i * a_step; }
  long b(long i) const { return i * b_step; }
};

// A nest of loops, as a list of places: short loops inside each other would cost more than the sums they hold.
struct Listed {
  long count;
  const int* places;  // where in A and where in B, in turn
  long a(long i) const { return places[2 * i]; }
  long b(long i) const { return places[2 * i + 1]; }
};

// Memory that is wanted soon, fetched beside the sums: what lies at element i of `count` rows at step i.
template <typename T> struct Fetched {
  const T* place;
  long apart, count;
  void fetch(long i) const {
    for (long c = 0; c < count; c++) __builtin_prefetch(place + c * apart + i, 0, 2);
  }
};
template <typename T> struct Ahead {
  Fetched<T> rows, columns;
  void fetch(long i) const { rows.fetch(i), columns.fetch(i); }
};
struct Nothing {};

template <typename T, int ROWS, int VECTORS, typename Walk, typename Soon = Nothing>
__attribute__((always_inline)) inline void gemm_registers(
    Walk walk, const T* a, long a_row, const T* b, long b_panel, T* c, long c_row, bool fresh, Soon soon = {}) {
  typedef typename VectorOf<T>::type V;
  V sum[ROWS][VECTORS];
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < VECTORS; v++) sum[r][v] = V{};
  if (!fresh)  // C is wanted at the end only: it arrives meanwhile
    for (int r = 0; r < ROWS; r++)
      for (int e = 0; e < VECTORS * LANES<T>; e += PANEL<T>) __builtin_prefetch(c + r * c_row + e, 1);
  const auto add = [&](long i) __attribute__((always_inline)) {
    const T* pa = a + walk.a(i);
    const T* pb = b + walk.b(i);
    V row[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) row[v] = *(const V*)(pb + panel_of<T>(v * LANES<T>, b_panel));
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      const T scale = pa[r * a_row];
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; v++) sum[r][v] += scale * row[v];
    }
  };
  long i = 0;
  if constexpr (!std::is_same_v<Soon, Nothing>)
    for (; i + PANEL<T> <= walk.count; i += PANEL<T>) {
      soon.fetch(i);
#pragma GCC unroll @UNROLL@
      for (long e = i; e < i + PANEL<T>; e++) add(e);
    }
#pragma GCC unroll @UNROLL@
  for (; i < walk.count; i++) add(i);
  if (!fresh)
    for (int r = 0; r < ROWS; r++)
      for (int v = 0; v < VECTORS; v++) sum[r][v] += *(const V*)(c + r * c_row + v * LANES<T>);
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < VECTORS; v++) *(V*)(c + r * c_row + v * LANES<T>) = sum[r][v];
}

// The rows that are left over when m is no multiple of ROWS.
template <typename T, int ROWS, int VECTORS, typename Walk>
__attribute__((always_inline)) inline void gemm_rest(
    long rows, Walk walk, const T* a, long a_row, const T* b, long b_panel, T* c, long c_row, bool fresh) {
  if constexpr (ROWS > 0) {
    if (rows == ROWS) gemm_registers<T, ROWS, VECTORS>(walk, a, a_row, b, b_panel, c, c_row, fresh);
    else gemm_rest<T, ROWS - 1, VECTORS>(rows, walk, a, a_row, b, b_panel, c, c_row, fresh);
  }
}

// Columns in strips of VECTORS vectors: a strip of B (cache level 1) stays while all rows of A pass by (cache level 2), in blocks
// that lie `a_block` apart. Returns the column after the last whole strip.
template <typename T, int ROWS, int VECTORS, typename Walk>
__attribute__((always_inline)) inline long gemm_strips(
    long m, long j, long n, Walk walk, const T* a, long a_row, long a_block, const T* b, long b_panel, T* c, long c_row,
    bool fresh) {
  constexpr int WIDE = VECTORS * LANES<T>;
  const long whole = m / ROWS * ROWS;
  for (; j + WIDE <= n; j += WIDE) {
    const T* strip = b + panel_of<T>(j, b_panel);
    for (long i = 0; i < whole; i += ROWS)
      gemm_registers<T, ROWS, VECTORS>(
          walk, a + i / ROWS * a_block, a_row, strip, b_panel, c + i * c_row + j, c_row, fresh);
    gemm_rest<T, ROWS - 1, VECTORS>(
        m % ROWS, walk, a + whole / ROWS * a_block, a_row, strip, b_panel, c + whole * c_row + j, c_row, fresh);
  }
  return j;
}

template <typename T, typename Walk>
__attribute__((noinline)) void gemm_block(
    long m, long n, Walk walk, const T* a, long a_row, long a_block, const T* b, long b_panel, T* c, long c_row, bool fresh) {
  constexpr int FEW = BLOCK_ROWS / 3;
  const long end = (n + LANES<T> - 1) / LANES<T> * LANES<T>;
  long j = 0;
  if (m <= FEW)  // few rows: wider strips keep enough sums in flight
    j = gemm_strips<T, FEW, 3 * BLOCK_VECTORS>(m, j, end, walk, a, a_row, a_block, b, b_panel, c, c_row, fresh);
  j = gemm_strips<T, BLOCK_ROWS, BLOCK_VECTORS>(m, j, end, walk, a, a_row, a_block, b, b_panel, c, c_row, fresh);
  if constexpr (BLOCK_VECTORS > 3)
    j = gemm_strips<T, BLOCK_ROWS, 3>(m, j, end, walk, a, a_row, a_block, b, b_panel, c, c_row, fresh);
  if constexpr (BLOCK_VECTORS > 2)
    j = gemm_strips<T, BLOCK_ROWS, 2>(m, j, end, walk, a, a_row, a_block, b, b_panel, c, c_row, fresh);
  gemm_strips<T, BLOCK_ROWS, 1>(m, j, end, walk, a, a_row, a_block, b, b_panel, c, c_row, fresh);
}

// The operand that all of the other passes by should be the smaller one: where B is packed and no larger than A, a few rows of A
// (cache level 1, read from memory just once) meet all of B (cache level 2).
template <typename T, typename Walk>
inline void gemm_rows(
    long m, long n, Walk walk, const T* a, long a_row, long a_block, const T* b, long b_panel, T* c, long c_row, bool fresh) {
  const long rows = b_panel != PANEL<T> && n <= m ? BLOCK_ROWS : m;
  for (long i = 0; i < m; i += rows)
    gemm_block<T>(
        m - i < rows ? m - i : rows, n, walk, a + i / BLOCK_ROWS * a_block, a_row, a_block, b, b_panel, c + i * c_row, c_row,
        fresh);
}

template <typename T>
inline void gemm_tile(
    long m, long n, Step step, const T* a, long a_row, long a_block, const T* b, long b_panel, T* c, long c_row, bool fresh) {
  gemm_rows<T>(m, n, Straight{step.count, step.a, step.b}, a, a_row, a_block, b, b_panel, c, c_row, fresh);
}

// A contraction whose places the caller has listed; a block of registers takes so many of them at a time that they stay in the first cache.
template <typename T>
inline void gemm_tile(
    long m, long n, Listed walk, const T* a, long a_row, long a_block, const T* b, long b_panel, T* c, long c_row, bool fresh) {
  constexpr long MOST = 1024;
  long first = 0;
  do {
    const long count = walk.count - first < MOST ? walk.count - first : MOST;
    gemm_rows<T>(m, n, Listed{count, walk.places + 2 * first}, a, a_row, a_block, b, b_panel, c, c_row, fresh && first == 0);
    first += count;
  } while (first < walk.count);
}

template <typename T>
inline void gemm_tile(
    long m, long n, Step outer, Step middle, Step inner, const T* a, long a_row, long a_block, const T* b, long b_panel,
    T* c, long c_row, bool fresh) {
  constexpr int MOST = 1024;
  int places[2 * MOST];
  int count = 0;
  for (long o = 0; o < outer.count; o++)
    for (long p = 0; p < middle.count; p++)
      for (long i = 0; i < inner.count; i++) {
        places[2 * count] = o * outer.a + p * middle.a + i * inner.a;
        places[2 * count + 1] = o * outer.b + p * middle.b + i * inner.b;
        if (++count == MOST) {
          gemm_rows<T>(m, n, Listed{count, places}, a, a_row, a_block, b, b_panel, c, c_row, fresh);
          count = 0;
          fresh = false;
        }
      }
  if (count || fresh) gemm_rows<T>(m, n, Listed{count, places}, a, a_row, a_block, b, b_panel, c, c_row, fresh);
}
"""

PACKING = r"""
#include <utility>
// A in blocks of as many rows as the registers hold, [ceil(m / BLOCK_ROWS)][k][BLOCK_ROWS], from memory that is contiguous along m.
// Eight lines of it at a time, however far apart they lie, fit a set of the first cache (pitch 4 KiB: 0.17 against 0.67 ns an
// element). Whole vectors are copied; what they hold beyond a block's rows is overwritten next.
template <typename T>
inline void pack_blocks(long m, long k, const T* a, long a_step, T* blocks) {
  constexpr int R = BLOCK_ROWS, GROUP = 8, WIDE_ROWS = R <= 4 ? 4 : R <= 8 ? 8 : 16;
  typedef T V __attribute__((vector_size(WIDE_ROWS * sizeof(T)), aligned(sizeof(T)), may_alias));
  for (long first = 0; first < k; first += GROUP) {
    const long end = first + GROUP < k ? first + GROUP : k;
    for (long i = 0; i < m; i += R) {
      const long rows = m - i < R ? m - i : R;
      T* block = blocks + i * k;
      long x = first;
      if (i + WIDE_ROWS <= m)
        for (; x < end - (end == k); x++) *(V*)(block + x * R) = *(const V*)(a + x * a_step + i);
      for (; x < end; x++)
        for (int r = 0; r < R; r++) block[x * R + r] = r < rows ? a[x * a_step + i + r] : T(0);
    }
  }
}

// Panels of B from memory that is contiguous along n; a few at a time, because more of them, a power of two apart, meet in one set
// of the first cache.
template <typename T>
inline void pack_rows(long k, long n, const T* b, long b_row, T* panels) {
  constexpr int P = PANEL<T>, GROUP = 4;
  long p = 0;
  for (; p + GROUP * P <= n; p += GROUP * P)
    for (long i = 0; i < k; i++)
#pragma GCC unroll 4
      for (int g = 0; g < GROUP; g++)
        for (int e = 0; e < P; e++) panels[(p + g * P) * k + i * P + e] = b[i * b_row + p + g * P + e];
  for (; p < n; p += P) {
    const long width = n - p < P ? n - p : P;
    for (long i = 0; i < k; i++)
      for (int e = 0; e < P; e++) panels[p * k + i * P + e] = e < width ? b[i * b_row + p + e] : T(0);
  }
}

// Two half vectors as one.
template <typename V, typename Half, int... E>
__attribute__((always_inline)) inline V joined(Half low, Half high, std::integer_sequence<int, E...>) {
  return __builtin_shufflevector(low, high, E...);
}

// Of each half of two vectors the first (PART 0) or last (PART 1) elements, in turn.
template <int PART, typename V, int... E>
__attribute__((always_inline)) inline V interleaved(V low, V high, std::integer_sequence<int, E...>) {
  constexpr int L = sizeof...(E), H = L / 2;
  return __builtin_shufflevector(low, high, (E / H * H + PART * (H / 2) + E % H / 2 + E % 2 * L)...);
}

// Panels of B from memory that is contiguous along k: squares are transposed in registers. Halves of columns that lie half a square apart
// are loaded side by side, so that the loads do the widest of the exchanges (Zen 4: 0.11 against 0.16 ns an element). Wider squares than
// eight floats a side take more shuffles than they save loads, and sixteen columns may meet in one set of the first cache.
template <typename T>
inline void pack_columns(long k, long n, const T* b, long b_column, T* panels) {
  constexpr int L = LANES<T> < int(32 / sizeof(T)) ? LANES<T> : 32 / sizeof(T), H = L / 2;
  typedef T V __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
  typedef T Half __attribute__((vector_size(H * sizeof(T)), aligned(sizeof(T)), may_alias));
  constexpr auto elements = std::make_integer_sequence<int, L>();
  for (long p = 0; p < n; p += PANEL<T>)
    for (long s = p; s < p + PANEL<T>; s += L) {
      T* out = panels + p * k + (s - p);
      long i = 0;
      if (s + L <= n)
        for (; i + H <= k; i += H) {
          const T* in = b + s * b_column + i;
          V x[H];
#pragma GCC unroll 8
          for (int r = 0; r < H; r++)
            x[r] = joined<V>(*(const Half*)(in + r * b_column), *(const Half*)(in + (r + H) * b_column), elements);
#pragma GCC unroll 4
          for (int rounds = H; rounds > 1; rounds /= 2) {  // halves of two columns interleaved, as often as that exchanges all
            V y[H];
#pragma GCC unroll 8
            for (int r = 0; r < H / 2; r++) {
              y[2 * r] = interleaved<0>(x[r], x[r + H / 2], elements);
              y[2 * r + 1] = interleaved<1>(x[r], x[r + H / 2], elements);
            }
#pragma GCC unroll 8
            for (int r = 0; r < H; r++) x[r] = y[r];
          }
#pragma GCC unroll 8
          for (int r = 0; r < H; r++) *(V*)(out + (i + r) * PANEL<T>) = x[r];
        }
      for (; i < k; i++)
        for (int r = 0; r < L; r++) out[i * PANEL<T> + r] = s + r < n ? b[(s + r) * b_column + i] : T(0);
    }
}

// A product with a B that is contiguous along k: a strip of it is packed right before all rows of A use it. The next strip and the next
// rows of A are fetched to the second cache beside the sums. (Packing the next strip beside the sums was tried, and was no faster.)
template <typename T>
__attribute__((noinline)) void gemm_packing(
    long m, long n, Step step, const T* a, long a_row, long a_block, const T* b, long b_column, T* panels, T* c, long c_row,
    bool fresh) {
  constexpr long WIDE = BLOCK_VECTORS * LANES<T> < PANEL<T> ? PANEL<T> : BLOCK_VECTORS * LANES<T>, R = BLOCK_ROWS;
  const long b_panel = step.count * PANEL<T>, calls = m / R;
  const Straight walk{step.count, step.a, PANEL<T>};
  for (long j = 0; j < n; j += WIDE) {
    const long wide = n - j < WIDE ? n - j : WIDE, next = n - j - wide < WIDE ? n - j - wide : WIDE;
    pack_columns<T>(step.count, wide, b + j * b_column, b_column, panels);
    if (!calls || wide < BLOCK_VECTORS * LANES<T> || WIDE > BLOCK_VECTORS * LANES<T>) {
      gemm_block<T>(m, wide, walk, a, a_row, a_block, panels, b_panel, c + j, c_row, fresh);
      continue;
    }
    const long share = (next + calls - 1) / calls;
    for (long i = 0; i < calls; i++) {
      const long first = i * share < next ? i * share : next;
      const Fetched<T> rows{a + (i + 1) * a_block, a_row, j == 0 && step.a == 1 && i + 1 < calls ? R : 0};
      const Fetched<T> columns{b + (j + WIDE + first) * b_column, b_column, next - first < share ? next - first : share};
      const Ahead<T> soon{rows, columns};
      gemm_registers<T, R, BLOCK_VECTORS>(
          walk, a + i * a_block, a_row, panels, b_panel, c + i * R * c_row + j, c_row, fresh, soon);
    }
    gemm_rest<T, R - 1, BLOCK_VECTORS>(
        m % R, walk, a + calls * a_block, a_row, panels, b_panel, c + calls * R * c_row + j, c_row, fresh);
  }
}
"""


def prelude(registers: int = 0, unroll: int = 4) -> str:
    """The micro-kernel. `registers` is another block than the machine's own, in hundreds of rows and ones of vectors; the vectors must
    be a power of two, so that a strip never ends inside a panel of B."""
    text = _PRELUDE.replace("@UNROLL@", str(unroll))
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
