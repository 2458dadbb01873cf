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
