// cub's block and warp collectives: the same interface, plain algorithms over the storage that the caller gives. As on the device, a
// reduction's result is the first thread's alone, and storage that is used again without a barrier between is a race (and reported).
#pragma once
#include "../cuda_runtime.h"

namespace cub {

struct NullType {};
struct Sum { template <typename A, typename B> __device__ auto operator()(const A& a, const B& b) const { return a + b; } };
struct Difference { template <typename A, typename B> __device__ auto operator()(const A& a, const B& b) const { return a - b; } };
struct Max { template <typename T> __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
struct Min { template <typename T> __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
struct Equality { template <typename T> __device__ bool operator()(const T& a, const T& b) const { return a == b; } };
struct Inequality { template <typename T> __device__ bool operator()(const T& a, const T& b) const { return !(a == b); } };
template <typename K, typename V> struct KeyValuePair {
  typedef K Key;
  typedef V Value;
  K key;
  V value;
  KeyValuePair() {}
  KeyValuePair(const K& k, const V& v) : key(k), value(v) {}
};
// The larger value; of equal ones, the smaller key
struct ArgMax { template <typename P> __device__ P operator()(const P& a, const P& b) const { return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a; } };
struct ArgMin { template <typename P> __device__ P operator()(const P& a, const P& b) const { return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a; } };

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE };

// Memory for values whatever their constructors: shared memory is never constructed
template <typename T, int N> struct Slots {
  struct alignas(alignof(T)) Bytes { unsigned char raw[sizeof(T)]; };
  Bytes slots[N];
  void put(int at, const T& v) { *(T*)&slots[at] = v; }
  T get(int at) const { return *(const T*)&slots[at]; }
};

template <typename T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0> struct BlockReduce {
  static constexpr int threads = X * Y * Z;
  typedef Slots<T, threads> TempStorage;
  TempStorage& storage;
  explicit BlockReduce(TempStorage& s) : storage(s) {}
  template <typename F> T Reduce(T v, F combine, int valid) {
    const int rank = kw_rank();
    storage.put(rank, v);
    kw_sync(0, 0, 0);
    if (rank) return v;
    for (int k = 1; k < threads && k < valid; ++k) v = combine(v, storage.get(k));
    return v;
  }
  template <typename F> T Reduce(T v, F combine) { return Reduce(v, combine, threads); }
  template <int N, typename F> T Reduce(T (&items)[N], F combine) {
    T v = items[0];
    for (int k = 1; k < N; ++k) v = combine(v, items[k]);
    return Reduce(v, combine, threads);
  }
  T Sum(T v) { return Reduce(v, cub::Sum()); }
  T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
  template <int N> T Sum(T (&items)[N]) { return Reduce(items, cub::Sum()); }
};

// Scans of one warp through shuffles
template <typename T, int W = 32, int = 0> struct WarpScan {
  struct TempStorage { char unused; };
  explicit WarpScan(TempStorage&) {}
  template <typename F> void InclusiveScan(T v, T& out, F combine) {
    const int lane = kw_lane() % W;
    for (int d = 1; d < W; d *= 2) {
      const T other = kw::shfl_up(0, mask(), v, d, W);
      if (lane >= d) v = combine(other, v);
    }
    out = v;
  }
  template <typename F> void InclusiveScan(T v, T& out, F combine, T& all) { InclusiveScan(v, out, combine); all = kw::shfl(0, mask(), out, W - 1, W); }
  template <typename F> void ExclusiveScan(T v, T& out, T first, F combine) {
    T all;
    InclusiveScan(v, all, combine);
    const T before = kw::shfl_up(0, mask(), all, 1, W);
    out = kw_lane() % W ? combine(first, before) : first;
  }
  void InclusiveSum(T v, T& out) { InclusiveScan(v, out, cub::Sum()); }
  void InclusiveSum(T v, T& out, T& all) { InclusiveScan(v, out, cub::Sum(), all); }
  void ExclusiveSum(T v, T& out) { ExclusiveScan(v, out, T(0), cub::Sum()); }
  void ExclusiveSum(T v, T& out, T& all) { ExclusiveSum(v, out); all = kw::shfl(0, mask(), T(out + v), W - 1, W); }
  T Broadcast(T v, unsigned from) { return kw::shfl(0, mask(), v, from, W); }
  static uint32_t mask() { return W == 32 ? ~0u : ((1u << W) - 1) << (kw_lane() & ~(W - 1)); }
};

template <typename T, int W = 32, int = 0> struct WarpReduce {
  struct TempStorage { char unused; };
  explicit WarpReduce(TempStorage&) {}
  template <typename F> T Reduce(T v, F combine, int valid) {
    const int lane = kw_lane() % W;
    for (int d = W / 2; d > 0; d /= 2) {
      const T other = kw::shfl_down(0, WarpScan<T, W>::mask(), v, d, W);
      if (lane + d < valid && lane < d) v = combine(v, other);
    }
    return v;
  }
  template <typename F> T Reduce(T v, F combine) { return Reduce(v, combine, W); }
  T Sum(T v) { return Reduce(v, cub::Sum()); }
  T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
  T Max(T v) { return Reduce(v, cub::Max()); }
  T Min(T v) { return Reduce(v, cub::Min()); }
};

template <typename T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0> struct BlockScan {
  static constexpr int threads = X * Y * Z;
  typedef Slots<T, threads> TempStorage;
  TempStorage& storage;
  explicit BlockScan(TempStorage& s) : storage(s) {}
  // Everything before this thread, and everything: `some` is false for the first thread
  template <typename F> T before(T v, F combine, bool& some, T& all) {
    const int rank = kw_rank();
    storage.put(rank, v);
    kw_sync(0, 0, 0);
    T sum = storage.get(0), mine = sum;
    for (int k = 1; k < threads; ++k) {
      if (k == rank) mine = sum;
      sum = combine(sum, storage.get(k));
    }
    some = rank > 0;
    all = sum;
    return mine;
  }
  template <int N, typename F> void InclusiveScan(T (&in)[N], T (&out)[N], F combine, T& all) {
    T own = in[0];
    for (int k = 1; k < N; ++k) own = combine(own, in[k]);
    bool some;
    T sum = before(own, combine, some, all);
    for (int k = 0; k < N; ++k) { sum = some ? combine(sum, in[k]) : in[k]; some = true; out[k] = sum; }
  }
  template <int N, typename F> void ExclusiveScan(T (&in)[N], T (&out)[N], T first, F combine, T& all) {
    T own = in[0];
    for (int k = 1; k < N; ++k) own = combine(own, in[k]);
    bool some;
    const T earlier = before(own, combine, some, all);
    T sum = some ? combine(first, earlier) : first;
    for (int k = 0; k < N; ++k) { const T v = in[k]; out[k] = sum; sum = combine(sum, v); }
  }
  template <int N, typename F> void InclusiveScan(T (&in)[N], T (&out)[N], F combine) { T all; InclusiveScan(in, out, combine, all); }
  template <int N, typename F> void ExclusiveScan(T (&in)[N], T (&out)[N], T first, F combine) { T all; ExclusiveScan(in, out, first, combine, all); }
  template <int N> void InclusiveSum(T (&in)[N], T (&out)[N]) { InclusiveScan(in, out, cub::Sum()); }
  template <int N> void InclusiveSum(T (&in)[N], T (&out)[N], T& all) { InclusiveScan(in, out, cub::Sum(), all); }
  template <int N> void ExclusiveSum(T (&in)[N], T (&out)[N]) { ExclusiveScan(in, out, T(0), cub::Sum()); }
  template <int N> void ExclusiveSum(T (&in)[N], T (&out)[N], T& all) { ExclusiveScan(in, out, T(0), cub::Sum(), all); }
  template <typename F> void InclusiveScan(T v, T& out, F combine, T& all) { T in[1] = {v}, to[1]; InclusiveScan(in, to, combine, all); out = to[0]; }
  template <typename F> void InclusiveScan(T v, T& out, F combine) { T all; InclusiveScan(v, out, combine, all); }
  template <typename F> void ExclusiveScan(T v, T& out, T first, F combine, T& all) { T in[1] = {v}, to[1]; ExclusiveScan(in, to, first, combine, all); out = to[0]; }
  template <typename F> void ExclusiveScan(T v, T& out, T first, F combine) { T all; ExclusiveScan(v, out, first, combine, all); }
  void InclusiveSum(T v, T& out) { InclusiveScan(v, out, cub::Sum()); }
  void InclusiveSum(T v, T& out, T& all) { InclusiveScan(v, out, cub::Sum(), all); }
  void ExclusiveSum(T v, T& out) { ExclusiveScan(v, out, T(0), cub::Sum()); }
  void ExclusiveSum(T v, T& out, T& all) { ExclusiveScan(v, out, T(0), cub::Sum(), all); }
};

template <typename T, int X, int N, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int = 0> struct BlockLoad {
  struct TempStorage { char unused; };
  BlockLoad() {}
  explicit BlockLoad(TempStorage&) {}
  static int at(int k) { return A == BLOCK_LOAD_STRIPED ? k * X * Y * Z + kw_rank() : kw_rank() * N + k; }
  template <typename I> void Load(I from, T (&items)[N]) { for (int k = 0; k < N; ++k) items[k] = from[at(k)]; }
  template <typename I> void Load(I from, T (&items)[N], int valid) { for (int k = 0; k < N; ++k) if (at(k) < valid) items[k] = from[at(k)]; }
  template <typename I, typename D> void Load(I from, T (&items)[N], int valid, D other) { for (int k = 0; k < N; ++k) items[k] = at(k) < valid ? T(from[at(k)]) : T(other); }
};

template <typename T, int X, int N, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int = 0> struct BlockStore {
  struct TempStorage { char unused; };
  BlockStore() {}
  explicit BlockStore(TempStorage&) {}
  static int at(int k) { return A == BLOCK_STORE_STRIPED ? k * X * Y * Z + kw_rank() : kw_rank() * N + k; }
  template <typename I> void Store(I to, T (&items)[N]) { for (int k = 0; k < N; ++k) to[at(k)] = items[k]; }
  template <typename I> void Store(I to, T (&items)[N], int valid) { for (int k = 0; k < N; ++k) if (at(k) < valid) to[at(k)] = items[k]; }
};

// A stable sort of the block's keys, blocked; values travel with them
template <typename K, int X, int N, typename V = NullType, int = 4, bool = true, BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int Y = 1, int Z = 1>
struct BlockRadixSort {
  static constexpr int threads = X * Y * Z, count = threads * N;
  struct TempStorage { Slots<K, count> keys; Slots<V, count> values; };
  TempStorage& storage;
  explicit BlockRadixSort(TempStorage& s) : storage(s) {}
  template <typename F> void sort(K (&keys)[N], V* values, bool striped, F before) {
    const int rank = kw_rank();
    for (int k = 0; k < N; ++k) { storage.keys.put(rank * N + k, keys[k]); if (values) storage.values.put(rank * N + k, values[k]); }
    kw_sync(0, 0, 0);
    int places[N];
    for (int k = 0; k < N; ++k) {  // how many come before each of mine
      places[k] = 0;
      const int me = rank * N + k;
      for (int j = 0; j < count; ++j) { const K other = storage.keys.get(j); places[k] += before(other, keys[k]) || (j < me && !before(keys[k], other)); }
    }
    kw_sync(0, 0, 0);
    for (int k = 0; k < N; ++k) { storage.keys.put(places[k], keys[k]); if (values) storage.values.put(places[k], values[k]); }
    kw_sync(0, 0, 0);
    for (int k = 0; k < N; ++k) {
      const int from = striped ? k * threads + rank : rank * N + k;
      keys[k] = storage.keys.get(from);
      if (values) values[k] = storage.values.get(from);
    }
  }
  void Sort(K (&keys)[N], int = 0, int = sizeof(K) * 8) { sort(keys, nullptr, false, [](K a, K b) { return a < b; }); }
  void SortDescending(K (&keys)[N], int = 0, int = sizeof(K) * 8) { sort(keys, nullptr, false, [](K a, K b) { return b < a; }); }
  void Sort(K (&keys)[N], V (&values)[N], int = 0, int = sizeof(K) * 8) { sort(keys, values, false, [](K a, K b) { return a < b; }); }
  void SortDescending(K (&keys)[N], V (&values)[N], int = 0, int = sizeof(K) * 8) { sort(keys, values, false, [](K a, K b) { return b < a; }); }
  void SortBlockedToStriped(K (&keys)[N], int = 0, int = sizeof(K) * 8) { sort(keys, nullptr, true, [](K a, K b) { return a < b; }); }
  void SortDescendingBlockedToStriped(K (&keys)[N], int = 0, int = sizeof(K) * 8) { sort(keys, nullptr, true, [](K a, K b) { return b < a; }); }
  void SortBlockedToStriped(K (&keys)[N], V (&values)[N], int = 0, int = sizeof(K) * 8) { sort(keys, values, true, [](K a, K b) { return a < b; }); }
  void SortDescendingBlockedToStriped(K (&keys)[N], V (&values)[N], int = 0, int = sizeof(K) * 8) { sort(keys, values, true, [](K a, K b) { return b < a; }); }
};
template <typename T> __host__ __device__ inline T DivideAndRoundUp(T a, T b) { return (a + b - 1) / b; }
}  // namespace cub
#include "device.cuh"
