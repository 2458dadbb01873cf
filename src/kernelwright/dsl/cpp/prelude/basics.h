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
