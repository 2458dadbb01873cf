// Warp matrix operations: each lane holds its share of a tile's elements; which ones is unspecified on the device too.
#pragma once
#include "cuda_runtime.h"

namespace nvcuda { namespace wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision { struct tf32; }
namespace detail {
template <typename T> struct Element { typedef T Type; };
template <> struct Element<precision::tf32> { typedef float Type; };
template <typename Use, int M, int N, int K> struct Shape { static constexpr int rows = M, columns = N; };
template <int M, int N, int K> struct Shape<matrix_a, M, N, K> { static constexpr int rows = M, columns = K; };
template <int M, int N, int K> struct Shape<matrix_b, M, N, K> { static constexpr int rows = K, columns = N; };
}
template <typename Use, int M, int N, int K, typename T, typename Layout = void> struct fragment {
  typedef typename detail::Element<T>::Type E;
  typedef E element_type;
  typedef E storage_element_type;
  static constexpr int rows = detail::Shape<Use, M, N, K>::rows, columns = detail::Shape<Use, M, N, K>::columns;
  static constexpr int num_elements = rows * columns / 32;
  static constexpr int num_storage_elements = num_elements;
  E x[num_elements];
};
template <typename F, typename V> inline void fill_fragment(F& f, V v) { for (int k = 0; k < F::num_elements; ++k) f.x[k] = typename F::E(v); }
template <typename F, typename T> inline void load_at(F& f, const T* p, unsigned ld, bool by_rows) {
  for (int k = 0; k < F::num_elements; ++k) {
    const int e = kw_lane() * F::num_elements + k, r = e / F::columns, c = e % F::columns;
    f.x[k] = p[by_rows ? r * ld + c : c * ld + r];
  }
}
template <typename U, int M, int N, int K, typename T, typename E> inline void load_matrix_sync(fragment<U, M, N, K, T, row_major>& f, const E* p, unsigned ld) { kw_sync_warp(0, ~0u); load_at(f, p, ld, true); }
template <typename U, int M, int N, int K, typename T, typename E> inline void load_matrix_sync(fragment<U, M, N, K, T, col_major>& f, const E* p, unsigned ld) { kw_sync_warp(0, ~0u); load_at(f, p, ld, false); }
template <int M, int N, int K, typename T, typename E> inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const E* p, unsigned ld, layout_t l) { kw_sync_warp(0, ~0u); load_at(f, p, ld, l == mem_row_major); }
template <int M, int N, int K, typename T, typename E> inline void store_matrix_sync(E* p, const fragment<accumulator, M, N, K, T>& f, unsigned ld, layout_t l) {
  typedef fragment<accumulator, M, N, K, T> F;
  for (int k = 0; k < F::num_elements; ++k) {
    const int e = kw_lane() * F::num_elements + k, r = e / F::columns, c = e % F::columns;
    p[l == mem_row_major ? r * ld + c : c * ld + r] = f.x[k];
  }
  kw_sync_warp(0, ~0u);
}
inline float __float_to_tf32(float x) { return kw::bits_float((kw::float_bits(x) + 0x0fffu + (kw::float_bits(x) >> 13 & 1u)) & 0xffffe000u); }
template <int M, int N, int K, typename A, typename B, typename C, typename D, typename LA, typename LB>
inline void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, A, LA>& a, const fragment<matrix_b, M, N, K, B, LB>& b,
                     const fragment<accumulator, M, N, K, C>& c) {
  typedef fragment<matrix_a, M, N, K, A, LA> FA;
  typedef fragment<matrix_b, M, N, K, B, LB> FB;
  // every lane sees all shares, then computes its own part of the result
  typename FA::E left[M * K];
  typename FB::E right[K * N];
  static_assert(sizeof(a.x) <= 256 && sizeof(b.x) <= 256, "a lane's share fits an exchange");
  KwExchange e = kw_exchange(0, ~0u, a.x, sizeof(a.x));
  for (int k = 0; k < 32; ++k) __builtin_memcpy(left + k * FA::num_elements, e.slots[k], sizeof(a.x));
  e = kw_exchange(0, ~0u, b.x, sizeof(b.x));
  for (int k = 0; k < 32; ++k) __builtin_memcpy(right + k * FB::num_elements, e.slots[k], sizeof(b.x));
  for (int k = 0; k < c.num_elements; ++k) {
    const int at = kw_lane() * c.num_elements + k, r = at / N, col = at % N;
    double sum = 0;
    for (int p = 0; p < K; ++p) sum += double(float(left[r * K + p])) * double(float(right[p * N + col]));
    d.x[k] = D(float(sum + double(float(c.x[k]))));
  }
}
} }  // namespace nvcuda::wmma
