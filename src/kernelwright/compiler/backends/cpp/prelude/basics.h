// == min_of
template <typename T> FUNCTION T min_of(T a, T b) { return b < a ? b : a; }
// == max_of
template <typename T> FUNCTION T max_of(T a, T b) { return a < b ? b : a; }
// == floor_div
FUNCTION int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
// == floor_mod
FUNCTION int64_t floor_mod(int64_t a, int64_t b) { const int64_t r = a % b; return r + (r != 0 && (r < 0) != (b < 0) ? b : 0); }
// == nan_max
// NaN if either is NaN, as torch.maximum
template <typename T> FUNCTION T nan_max(T a, T b) { const T m = b > a ? b : a; return b != b ? b : m; }
// == nan_min
// NaN if either is NaN, as torch.minimum
template <typename T> FUNCTION T nan_min(T a, T b) { const T m = b < a ? b : a; return b != b ? b : m; }
// == sign_of
template <typename T> FUNCTION T sign_of(T x) { return T(x > 0) - T(x < 0); }
// == floordiv_of
FUNCTION float floordiv_of(float a, float b) { return b == 0 ? a / b : std::floor((a - mod_of(a, b)) / b + 0.5f); }
FUNCTION double floordiv_of(double a, double b) { return b == 0 ? a / b : std::floor((a - mod_of(a, b)) / b + 0.5); }
template <typename T> FUNCTION T floordiv_of(T a, T b) {
  const T d = b == 0 ? T(1) : b;  // a division by zero has no result, but must not stop the program
  return a / d - (a % d != 0 && (a % d < 0) != (d < 0));
}
// == mod_of
// The remainder has the sign of the divisor, as in Python
FUNCTION float mod_of(float a, float b) { const float r = std::fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
FUNCTION double mod_of(double a, double b) { const double r = std::fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
template <typename T> FUNCTION T mod_of(T a, T b) {
  const T d = b == 0 ? T(1) : b, r = a % d;
  return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}
// == fmod_of
FUNCTION float fmod_of(float a, float b) { return std::fmod(a, b); }
FUNCTION double fmod_of(double a, double b) { return std::fmod(a, b); }
template <typename T> FUNCTION T fmod_of(T a, T b) { return a % (b == 0 ? T(1) : b); }
// == stream
// Copies a strip to memory past the caches: an output larger than they are is not read before it is written
template <typename T> FUNCTION void stream(T* to, const T* from, int64_t count) {
  int64_t at = 0;
#if defined(__AVX__)
  typedef float Whole __attribute__((vector_size(32)));
  typedef float Any __attribute__((vector_size(32), aligned(1), may_alias));
  constexpr int64_t step = 32 / sizeof(T);
  for (; at < count && uintptr_t(to + at) % 32; ++at) to[at] = from[at];
  for (; at + step <= count; at += step) {
    const Whole line = *(const Any*)(from + at);
#if defined(__clang__)
    __builtin_nontemporal_store(line, (Whole*)(to + at));
#else
    __builtin_ia32_movntps256((float*)(to + at), line);
#endif
  }
#endif
  for (; at < count; ++at) to[at] = from[at];
}
// == streams_end
// What was streamed is seen by other threads from here on
FUNCTION void streams_end() {
#if defined(__AVX__)
  __builtin_ia32_sfence();
#endif
}
// == scratch
// A buffer of this thread that grows as needed; each kept tile of a kernel has a slot of its own.
template <typename T, int slot> static T* scratch(int64_t count) {
  static thread_local void* memory = nullptr;
  static thread_local int64_t capacity = 0;
  const int64_t bytes = (count * int64_t(sizeof(T)) + 127) / 64 * 64;
  if (bytes > capacity) {
    std::free(memory);
    memory = std::aligned_alloc(64, bytes);
    capacity = bytes;
  }
  return static_cast<T*>(memory);
}
// == atomic_add
template <typename T> FUNCTION void atomic_add(T* at, T x) {
#pragma omp atomic
  *at += x;
}
// == atomic_max
template <typename T> FUNCTION void atomic_max(T* at, T x) {
  T old, next;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  do next = (x > old) | (x != x) ? x : old;
  while (!__atomic_compare_exchange(at, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
// == atomic_min
template <typename T> FUNCTION void atomic_min(T* at, T x) {
  T old, next;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  do next = (x < old) | (x != x) ? x : old;
  while (!__atomic_compare_exchange(at, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
// == atomic_add_f16
FUNCTION void atomic_add_f16(uint16_t* at, float x) {
  uint16_t old = __atomic_load_n(at, __ATOMIC_RELAXED), next;
  do next = to_f16(from_f16(old) + x);
  while (!__atomic_compare_exchange_n(at, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
// == atomic_add_bf16
FUNCTION void atomic_add_bf16(uint16_t* at, float x) {
  uint16_t old = __atomic_load_n(at, __ATOMIC_RELAXED), next;
  do next = to_bf16(from_bf16(old) + x);
  while (!__atomic_compare_exchange_n(at, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
// == RunningSum
struct RunningSum {
  static constexpr double start = 0.0;
  static constexpr bool any_order = true;
  typedef double Wide;
  template <typename T> static inline __attribute__((always_inline)) T step(T a, T b) { return a + b; }
};
// == RunningProduct
struct RunningProduct {
  static constexpr double start = 1.0;
  static constexpr bool any_order = false;  // many factors together may overflow where 0 stands before them
  typedef double Wide;
  template <typename T> static inline __attribute__((always_inline)) T step(T a, T b) { return a * b; }
};
// == RunningMaximum
struct RunningMaximum {
  static constexpr double start = -INFINITY;
  static constexpr bool any_order = true;
  typedef float Wide;
  template <typename T> static inline __attribute__((always_inline)) T step(T a, T b) { return nan_max(a, b); }
};
// == RunningMinimum
struct RunningMinimum {
  static constexpr double start = INFINITY;
  static constexpr bool any_order = true;
  typedef float Wide;
  template <typename T> static inline __attribute__((always_inline)) T step(T a, T b) { return nan_min(a, b); }
};
// == Four
// Four floats, and four of what they are scanned in
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
template <typename W> struct FourOf { typedef W type __attribute__((vector_size(4 * sizeof(W)))); };
template <typename W> FUNCTION typename FourOf<W>::type widened(Four x) {
#if defined(__AVX__) && !defined(__clang__)  // one instruction, where the general way takes three
  if constexpr (sizeof(W) == 8) return __builtin_ia32_cvtps2pd256(x);
#endif
  return __builtin_convertvector(x, typename FourOf<W>::type);
}
// == turn
// Rows of a 4 x 4 block become its columns
FUNCTION void turn(Four& a, Four& b, Four& c, Four& d) {
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(AB, CD, 0, 1, 4, 5), d = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}
// == turn_block
// A square block: rows become columns. Eight rows of eight where registers hold eight floats, else four of four
#if defined(__AVX__)
typedef float Line __attribute__((vector_size(32), aligned(4), may_alias));
FUNCTION void turn_block(Line* x) {
  Line y[8], z[8];
#pragma GCC unroll 4
  for (int k = 0; k < 8; k += 2) {
    y[k] = __builtin_shufflevector(x[k], x[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    y[k + 1] = __builtin_shufflevector(x[k], x[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int k = 0; k < 8; k += 4) {
    z[k] = __builtin_shufflevector(y[k], y[k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    z[k + 1] = __builtin_shufflevector(y[k], y[k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    z[k + 2] = __builtin_shufflevector(y[k + 1], y[k + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    z[k + 3] = __builtin_shufflevector(y[k + 1], y[k + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    x[k] = __builtin_shufflevector(z[k], z[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    x[k + 4] = __builtin_shufflevector(z[k], z[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
#else
typedef Four Line;
FUNCTION void turn_block(Line* x) { turn(x[0], x[1], x[2], x[3]); }
#endif
constexpr int64_t BLOCK = sizeof(Line) / sizeof(float);
// == transpose_copy
// to[r][c] = from[c][r], in blocks that read and write whole lines
template <typename T> FUNCTION void transpose_copy(const T* from, int64_t pitch, T* to, int64_t to_pitch, int64_t rows, int64_t columns) {
  int64_t c = 0;
  if constexpr (sizeof(T) == sizeof(float))
    for (; c + BLOCK <= columns; c += BLOCK) {
      int64_t r = 0;
      for (; r + BLOCK <= rows; r += BLOCK) {
        Line block[BLOCK];
#pragma GCC unroll 8
        for (int k = 0; k < BLOCK; ++k) block[k] = *(const Line*)(from + (c + k) * pitch + r);
        turn_block(block);
#pragma GCC unroll 8
        for (int k = 0; k < BLOCK; ++k) *(Line*)(to + (r + k) * to_pitch + c) = block[k];
      }
      for (; r < rows; ++r)
        for (int k = 0; k < BLOCK; ++k) to[r * to_pitch + c + k] = from[(c + k) * pitch + r];
    }
  for (; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[r * to_pitch + c] = from[c * pitch + r];
}
// == running_quarters
// Scans a piece whose length divides by 16 as four quarters side by side, one in each lane: where a quarter begins is known from
// the totals of those before it, and no lane waits for another. `back`: from the end to the beginning
template <typename Op, bool exclusive, bool back> FUNCTION double running_quarters(float* piece, int64_t count, double carry) {
  typedef typename Op::Wide Wide;
  typedef typename FourOf<Wide>::type Wides;
  const int64_t quarter = count / 4, next = back ? -quarter : quarter;
  float* const first = piece + (back ? 3 * quarter : 0);
  const Wide none = Wide(Op::start);
  Wides total[3] = {{none, none, none, none}, {none, none, none, none}, {none, none, none, none}};
  for (int64_t at = 0; at < quarter; at += 4)
    for (int k = 0; k < 3; ++k) total[k] = Op::step(total[k], widened<Wide>(*(const Four*)(first + k * next + at)));
  Wides now = {Wide(carry), none, none, none};
  for (int k = 0; k < 3; ++k) {
    const Wides t = total[k];
    now[k + 1] = Op::step(now[k], Op::step(Op::step(Wide(t[0]), Wide(t[1])), Op::step(Wide(t[2]), Wide(t[3]))));
  }
  for (int64_t done = 0; done < quarter; done += 4) {
    float *p = first + (back ? quarter - 4 - done : done), *q = p + next, *r = q + next, *s = r + next;
    Four column[4] = {*(const Four*)p, *(const Four*)q, *(const Four*)r, *(const Four*)s};
    turn(column[0], column[1], column[2], column[3]);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      Four& x = column[back ? 3 - k : k];
      const Wides after = Op::step(now, widened<Wide>(x));
      x = __builtin_convertvector(exclusive ? now : after, Four);
      now = after;
    }
    turn(column[0], column[1], column[2], column[3]);
    *(Four*)p = column[0], *(Four*)q = column[1], *(Four*)r = column[2], *(Four*)s = column[3];
  }
  return now[3];
}
// == running
// Scans a piece of a row in place and returns what the next piece goes on from. Four doubles at a time are scanned among
// themselves in two steps; only their total is added to the carry, so that one quad need not wait for the one before.
// `back`: from the end of the piece to its beginning
template <typename Op, bool exclusive, bool back = false, typename T>
FUNCTION double running(T* piece, int64_t count, double carry) {
  int64_t done = 0;
  if constexpr (sizeof(T) == 4 && Op::any_order)
    if (count >= 64) {
      done = count / 16 * 16;
      carry = running_quarters<Op, exclusive, back>(piece + (back ? count - done : 0), done, carry);
    }
  typedef double Quad __attribute__((vector_size(32)));
  typedef T Part __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
  const Quad start = {Op::start, Op::start, Op::start, Op::start};
  Quad before = {carry, carry, carry, carry};
  for (; done + 4 <= count; done += 4) {
    T* const at = piece + (back ? count - 4 - done : done);
#if defined(__AVX__) && !defined(__clang__)  // one instruction, where the general way takes three
    Quad x;
    if constexpr (sizeof(T) == 4) x = __builtin_ia32_cvtps2pd256(*(const Part*)at);
    else x = *(const Part*)at;
#else
    Quad x = __builtin_convertvector(*(const Part*)at, Quad);
#endif
    if constexpr (back) x = __builtin_shufflevector(x, x, 3, 2, 1, 0);
    x = Op::step(__builtin_shufflevector(start, x, 0, 4, 5, 6), x);
    x = Op::step(__builtin_shufflevector(start, x, 0, 1, 4, 5), x);
    Quad made = Op::step(before, exclusive ? Quad(__builtin_shufflevector(start, x, 0, 4, 5, 6)) : x);
    if constexpr (back) made = __builtin_shufflevector(made, made, 3, 2, 1, 0);
    *(Part*)at = __builtin_convertvector(made, Part);
    before = Op::step(before, __builtin_shufflevector(x, x, 3, 3, 3, 3));
  }
  carry = before[0];
  for (; done < count; ++done) {
    T& x = piece[back ? count - 1 - done : done];
    const double after = Op::step(carry, double(x));
    x = T(exclusive ? carry : after);
    carry = after;
  }
  return carry;
}
// == sort_key
// Unsigned numbers in the order of the floats; -0 counts as 0, NaN as the largest
FUNCTION uint32_t sort_key(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x + 0.0f);
  const uint32_t key = bits ^ (uint32_t(int32_t(bits) >> 31) | 0x80000000u);
  return x != x ? 0xffffffffu : key;
}
FUNCTION uint32_t sort_key(int32_t x) { return uint32_t(x) ^ 0x80000000u; }
// == sort_keys
#include <algorithm>
// Sorts by the upper halves, from the lowest byte to the highest; keys that share a byte skip its pass
static void sort_keys(uint64_t* keys, uint64_t* spare, int64_t count) {
  if (count < 64) {
    std::sort(keys, keys + count);
    return;
  }
  uint64_t* const result = keys;
  static thread_local int64_t counts[4][256];
  for (auto& row : counts) for (auto& n : row) n = 0;
  for (int64_t k = 0; k < count; ++k)
    for (int byte = 0; byte < 4; ++byte) ++counts[byte][keys[k] >> (32 + 8 * byte) & 255];
  for (int byte = 0; byte < 4; ++byte) {
    int64_t* starts = counts[byte];
    if (starts[keys[0] >> (32 + 8 * byte) & 255] == count) continue;
    int64_t before = 0;
    for (int value = 0; value < 256; ++value) {
      const int64_t own = starts[value];
      starts[value] = before;
      before += own;
    }
    for (int64_t k = 0; k < count; ++k) spare[starts[keys[k] >> (32 + 8 * byte) & 255]++] = keys[k];
    std::swap(keys, spare);
  }
  if (keys != result) std::copy(keys, keys + count, result);
}
// == select_keys
#include <algorithm>
// The `wanted` smallest keys with their positions, in order. What does not beat the last of them is skipped, 32 at a time.
template <int64_t wanted> static void select_keys(const uint32_t* keys, int64_t count, uint64_t* first) {
  int64_t held = 0;
  uint64_t limit = ~uint64_t(0);
  for (int64_t start = 0; start < count; start += 32) {
    const int64_t stop = start + 32 < count ? start + 32 : count;
    const uint32_t last = uint32_t(limit >> 32);
    uint32_t any = held < wanted;
    if (stop - start == 32)
      for (int k = 0; k < 32; ++k) any |= keys[start + k] < last;
    else
      any = 1;
    if (!any) continue;
    for (int64_t k = start; k < stop; ++k) {
      const uint64_t key = uint64_t(keys[k]) << 32 | uint64_t(k);
      first[held] = key;
      held += key < limit;
    }
    if (held > 2 * wanted + 8 || (held > wanted && limit == ~uint64_t(0))) {
      std::nth_element(first, first + wanted - 1, first + held);
      limit = first[wanted - 1];
      held = wanted;
    }
  }
  std::sort(first, first + held);
}
