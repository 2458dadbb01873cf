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
