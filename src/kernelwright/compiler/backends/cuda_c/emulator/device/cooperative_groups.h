// Cooperative groups: blocks, tiles of a warp, lanes that happen to be together.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {
struct thread_block {
  void sync() const { kw_sync(0, 0, 0); }
  unsigned thread_rank() const { return kw_rank(); }
  unsigned size() const { return kw_blockDim_x() * kw_blockDim_y() * kw_blockDim_z(); }
  unsigned num_threads() const { return size(); }
  dim3 group_index() const { return dim3(kw_blockIdx_x(), kw_blockIdx_y(), kw_blockIdx_z()); }
  dim3 thread_index() const { return dim3(kw_threadIdx_x(), kw_threadIdx_y(), kw_threadIdx_z()); }
  dim3 group_dim() const { return dim3(kw_blockDim_x(), kw_blockDim_y(), kw_blockDim_z()); }
  dim3 dim_threads() const { return group_dim(); }
};
inline thread_block this_thread_block() { return {}; }

// Lanes of one warp that act together: `mask` names them
struct LaneGroup {
  uint32_t mask;
  unsigned rank_, size_;
  void sync() const { kw_sync_warp(0, mask); }
  unsigned thread_rank() const { return rank_; }
  unsigned size() const { return size_; }
  unsigned num_threads() const { return size_; }
  int lane_of(unsigned rank) const {  // the rank's lane in the warp
    uint32_t m = mask;
    while (rank--) m &= m - 1;
    return m ? __builtin_ctz(m) : -1;
  }
  template <typename T> T shfl(T v, unsigned from) const { return kw::exchange(0, mask, v, lane_of(from % size_)); }
  template <typename T> T shfl_down(T v, unsigned d) const { return kw::exchange(0, mask, v, rank_ + d < size_ ? lane_of(rank_ + d) : kw_lane()); }
  template <typename T> T shfl_up(T v, unsigned d) const { return kw::exchange(0, mask, v, rank_ >= d ? lane_of(rank_ - d) : kw_lane()); }
  template <typename T> T shfl_xor(T v, unsigned b) const { return kw::exchange(0, mask, v, (rank_ ^ b) < size_ ? lane_of(rank_ ^ b) : kw_lane()); }
  int any(int p) const { return kw::any(0, mask, p); }
  int all(int p) const { return kw::all(0, mask, p); }
  unsigned ballot(int p) const {
    const uint32_t votes = kw::ballot(0, mask, p);
    unsigned result = 0;
    for (unsigned k = 0; k < size_; ++k) result |= (votes >> lane_of(k) & 1u) << k;
    return result;
  }
  template <typename T> unsigned match_any(T v) const {
    const uint32_t same = kw::match_any(0, mask, v);
    unsigned result = 0;
    for (unsigned k = 0; k < size_; ++k) result |= (same >> lane_of(k) & 1u) << k;
    return result;
  }
};
template <unsigned N, typename P = thread_block> struct thread_block_tile : LaneGroup {
  static_assert(N <= 32, "tiles wider than a warp are not emulated");
  thread_block_tile() {
    const unsigned lane = kw_lane();
    this->mask = N == 32 ? ~0u : ((1u << N) - 1) << (lane & ~(N - 1));
    this->rank_ = lane % N;
    this->size_ = N;
  }
  unsigned meta_group_rank() const { return kw_rank() / N; }
  unsigned meta_group_size() const { return (kw_blockDim_x() * kw_blockDim_y() * kw_blockDim_z() + N - 1) / N; }
};
struct coalesced_group : LaneGroup {};
inline coalesced_group coalesced_threads() {
  coalesced_group g;
  g.mask = kw_active_mask(0);
  g.rank_ = __builtin_popcount(g.mask & ((1u << kw_lane()) - 1));
  g.size_ = __builtin_popcount(g.mask);
  return g;
}
template <unsigned N, typename G> inline thread_block_tile<N, G> tiled_partition(const G&) { return {}; }
template <typename G> inline LaneGroup tiled_partition(const G&, unsigned n) {
  const unsigned lane = kw_lane();
  return {n == 32 ? ~0u : ((1u << n) - 1) << (lane & ~(n - 1)), lane % n, n};
}
struct thread_group : LaneGroup {};
struct grid_group {
  void sync(int line = __builtin_LINE()) const { kw_sync_grid(line); }
  unsigned long long thread_rank() const {
    const unsigned long long block = kw_blockIdx_x() + (unsigned long long)kw_gridDim_x() * (kw_blockIdx_y() + (unsigned long long)kw_gridDim_y() * kw_blockIdx_z());
    return block * kw_blockDim_x() * kw_blockDim_y() * kw_blockDim_z() + kw_rank();
  }
  unsigned long long size() const { return (unsigned long long)kw_gridDim_x() * kw_gridDim_y() * kw_gridDim_z() * kw_blockDim_x() * kw_blockDim_y() * kw_blockDim_z(); }
  unsigned long long num_threads() const { return size(); }
  unsigned long long num_blocks() const { return (unsigned long long)kw_gridDim_x() * kw_gridDim_y() * kw_gridDim_z(); }
  unsigned long long block_rank() const { return thread_rank() / (kw_blockDim_x() * kw_blockDim_y() * kw_blockDim_z()); }
  bool is_valid() const { return true; }
};
inline grid_group this_grid() { return {}; }
template <typename G> inline void sync(const G& g) { g.sync(); }
template <typename T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename G, typename T, typename F> inline T reduce(const G& g, T v, F f) { return kw::reduce(0, g.mask, v, f); }
template <typename G, typename T, typename F> inline T inclusive_scan(const G& g, T v, F f) {
  for (unsigned d = 1; d < g.size(); d *= 2) { const T other = g.shfl_up(v, d); if (g.thread_rank() >= d) v = f(other, v); }
  return v;
}
template <typename G, typename T> inline T inclusive_scan(const G& g, T v) { return inclusive_scan(g, v, plus<T>()); }
template <typename G, typename T> inline T exclusive_scan(const G& g, T v) { const T all = inclusive_scan(g, v); return all - v; }
template <typename G, typename T> inline void memcpy_async(const G& g, T* to, const T* from, size_t bytes) {
  for (size_t k = g.thread_rank(); k < bytes / sizeof(T); k += g.size()) to[k] = from[k];
}
template <typename G> inline void wait(const G& g) { g.sync(); }
}  // namespace cooperative_groups
