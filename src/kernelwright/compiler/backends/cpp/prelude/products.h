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
