// cub's device-wide algorithms: host code that calls them runs, and each call is told as a library's, since no kernel of the file did
// that work. The first call of each pair asks for the size of the scratch memory.
#pragma once
#include "../cuda_runtime.h"
#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

extern "C" void kw_library_call(const char* name);

namespace cub {
namespace kw_device {
// Whether this call does the work; one with no scratch memory only asks how much is needed
inline bool begins(void* scratch, size_t& bytes, const char* name) {
  if (!scratch) return bytes = 256, false;
  kw_library_call(name);
  return true;
}
template <typename I> using value_of = typename std::iterator_traits<I>::value_type;
template <typename In, typename Out, typename Op, typename T> void reduce(In in, Out out, size_t n, Op op, T start) {
  for (size_t i = 0; i < n; ++i) start = op(start, T(in[i]));
  *out = start;
}
template <typename In, typename Out, typename Op, typename T> void scan(In in, Out out, size_t n, Op op, T start, bool exclusive, bool has_start) {
  for (size_t i = 0; i < n; ++i) {
    const T now = T(in[i]);
    const T sum = has_start || i ? op(start, now) : now;
    out[i] = exclusive ? start : sum;
    start = sum;
  }
}
template <typename K, typename V> void sort(const K* keys, K* keys_out, const V* values, V* values_out, size_t n, bool descending) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return descending ? keys[b] < keys[a] : keys[a] < keys[b]; });
  std::vector<K> sorted(n);
  std::vector<V> carried(values ? n : 0);
  for (size_t i = 0; i < n; ++i) {
    sorted[i] = keys[order[i]];
    if (values) carried[i] = values[order[i]];
  }
  std::copy(sorted.begin(), sorted.end(), keys_out);
  std::copy(carried.begin(), carried.end(), values_out);
}
}  // namespace kw_device

template <typename T> struct DoubleBuffer {
  T* d_buffers[2];
  int selector = 0;
  DoubleBuffer() : d_buffers{nullptr, nullptr} {}
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

struct DeviceReduce {
  template <typename In, typename Out, typename N, typename Op, typename T>
  static cudaError_t Reduce(void* scratch, size_t& bytes, In in, Out out, N n, Op op, T start, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceReduce::Reduce")) kw_device::reduce(in, out, n, op, start);
    return cudaSuccess;
  }
  template <typename In, typename Out, typename N> static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, N n, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceReduce::Sum")) kw_device::reduce(in, out, n, cub::Sum(), kw_device::value_of<In>(0));
    return cudaSuccess;
  }
  template <typename In, typename Out, typename N> static cudaError_t Max(void* scratch, size_t& bytes, In in, Out out, N n, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceReduce::Max")) kw_device::reduce(in, out, n, cub::Max(), kw_device::value_of<In>(in[0]));
    return cudaSuccess;
  }
  template <typename In, typename Out, typename N> static cudaError_t Min(void* scratch, size_t& bytes, In in, Out out, N n, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceReduce::Min")) kw_device::reduce(in, out, n, cub::Min(), kw_device::value_of<In>(in[0]));
    return cudaSuccess;
  }
  template <typename In, typename Out, typename N> static cudaError_t ArgMax(void* scratch, size_t& bytes, In in, Out out, N n, cudaStream_t = 0, bool = false) {
    if (!kw_device::begins(scratch, bytes, "cub::DeviceReduce::ArgMax")) return cudaSuccess;
    const auto best = std::max_element(in, in + n);
    out->key = int(best - in);
    out->value = *best;
    return cudaSuccess;
  }
  template <typename In, typename Out, typename N> static cudaError_t ArgMin(void* scratch, size_t& bytes, In in, Out out, N n, cudaStream_t = 0, bool = false) {
    if (!kw_device::begins(scratch, bytes, "cub::DeviceReduce::ArgMin")) return cudaSuccess;
    const auto best = std::min_element(in, in + n);
    out->key = int(best - in);
    out->value = *best;
    return cudaSuccess;
  }
};

struct DeviceSegmentedReduce {
  template <typename In, typename Out, typename B, typename E, typename Op, typename T>
  static cudaError_t Reduce(void* scratch, size_t& bytes, In in, Out out, int segments, B begins, E ends, Op op, T start, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceSegmentedReduce::Reduce"))
      for (int s = 0; s < segments; ++s) kw_device::reduce(in + begins[s], out + s, ends[s] - begins[s], op, start);
    return cudaSuccess;
  }
  template <typename In, typename Out, typename B, typename E>
  static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, int segments, B begins, E ends, cudaStream_t = 0, bool = false) {
    return Reduce(scratch, bytes, in, out, segments, begins, ends, cub::Sum(), kw_device::value_of<In>(0));
  }
  template <typename In, typename Out, typename B, typename E>
  static cudaError_t Max(void* scratch, size_t& bytes, In in, Out out, int segments, B begins, E ends, cudaStream_t = 0, bool = false) {
    return Reduce(scratch, bytes, in, out, segments, begins, ends, cub::Max(), std::numeric_limits<kw_device::value_of<In>>::lowest());
  }
  template <typename In, typename Out, typename B, typename E>
  static cudaError_t Min(void* scratch, size_t& bytes, In in, Out out, int segments, B begins, E ends, cudaStream_t = 0, bool = false) {
    return Reduce(scratch, bytes, in, out, segments, begins, ends, cub::Min(), std::numeric_limits<kw_device::value_of<In>>::max());
  }
};

struct DeviceScan {
  template <typename In, typename Out, typename N> static cudaError_t InclusiveSum(void* scratch, size_t& bytes, In in, Out out, N n, cudaStream_t = 0, bool = false) {
    return InclusiveScan(scratch, bytes, in, out, cub::Sum(), n);
  }
  template <typename In, typename Out, typename N> static cudaError_t ExclusiveSum(void* scratch, size_t& bytes, In in, Out out, N n, cudaStream_t = 0, bool = false) {
    return ExclusiveScan(scratch, bytes, in, out, cub::Sum(), kw_device::value_of<In>(0), n);
  }
  template <typename In, typename Out, typename Op, typename N>
  static cudaError_t InclusiveScan(void* scratch, size_t& bytes, In in, Out out, Op op, N n, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceScan::InclusiveScan")) kw_device::scan(in, out, n, op, kw_device::value_of<In>(), false, false);
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Op, typename T, typename N>
  static cudaError_t ExclusiveScan(void* scratch, size_t& bytes, In in, Out out, Op op, T start, N n, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceScan::ExclusiveScan")) kw_device::scan(in, out, n, op, kw_device::value_of<In>(start), true, true);
    return cudaSuccess;
  }
};

struct DeviceRadixSort {
  template <typename K, typename N>
  static cudaError_t SortKeys(void* scratch, size_t& bytes, const K* in, K* out, N n, int = 0, int = 0, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceRadixSort::SortKeys")) kw_device::sort<K, char>(in, out, nullptr, nullptr, n, false);
    return cudaSuccess;
  }
  template <typename K, typename N>
  static cudaError_t SortKeysDescending(void* scratch, size_t& bytes, const K* in, K* out, N n, int = 0, int = 0, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceRadixSort::SortKeysDescending")) kw_device::sort<K, char>(in, out, nullptr, nullptr, n, true);
    return cudaSuccess;
  }
  template <typename K, typename V, typename N>
  static cudaError_t SortPairs(void* scratch, size_t& bytes, const K* in, K* out, const V* values, V* values_out, N n, int = 0, int = 0, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceRadixSort::SortPairs")) kw_device::sort(in, out, values, values_out, n, false);
    return cudaSuccess;
  }
  template <typename K, typename V, typename N>
  static cudaError_t SortPairsDescending(void* scratch, size_t& bytes, const K* in, K* out, const V* values, V* values_out, N n, int = 0, int = 0, cudaStream_t = 0, bool = false) {
    if (kw_device::begins(scratch, bytes, "cub::DeviceRadixSort::SortPairsDescending")) kw_device::sort(in, out, values, values_out, n, true);
    return cudaSuccess;
  }
};
}  // namespace cub
