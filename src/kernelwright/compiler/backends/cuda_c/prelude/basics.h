// == min_of
template <typename T> HOST_FUNCTION T min_of(T a, T b) { return b < a ? b : a; }
// == max_of
template <typename T> HOST_FUNCTION T max_of(T a, T b) { return a < b ? b : a; }
// == floor_div
HOST_FUNCTION int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
// == floor_mod
HOST_FUNCTION int64_t floor_mod(int64_t a, int64_t b) { const int64_t r = a % b; return r + (r != 0 && (r < 0) != (b < 0) ? b : 0); }
// == nan_max
// NaN if either is NaN, as torch.maximum
template <typename T> FUNCTION T nan_max(T a, T b) { const T m = b > a ? b : a; return b != b ? b : (a != a ? a : m); }
// == nan_min
template <typename T> FUNCTION T nan_min(T a, T b) { const T m = b < a ? b : a; return b != b ? b : (a != a ? a : m); }
// == sign_of
template <typename T> FUNCTION T sign_of(T x) { return T(x > 0) - T(x < 0); }
// == floordiv_of
FUNCTION float floordiv_of(float a, float b) { return b == 0 ? a / b : floorf((a - mod_of(a, b)) / b + 0.5f); }
FUNCTION double floordiv_of(double a, double b) { return b == 0 ? a / b : floor((a - mod_of(a, b)) / b + 0.5); }
template <typename T> FUNCTION T floordiv_of(T a, T b) {
  const T d = b == 0 ? T(1) : b;  // a division by zero has no result, but must not stop the program
  return a / d - (a % d != 0 && (a % d < 0) != (d < 0));
}
// == mod_of
// The remainder has the sign of the divisor, as in Python
FUNCTION float mod_of(float a, float b) { const float r = fmodf(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
FUNCTION double mod_of(double a, double b) { const double r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
template <typename T> FUNCTION T mod_of(T a, T b) {
  const T d = b == 0 ? T(1) : b, r = a % d;
  return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}
// == fmod_of
FUNCTION float fmod_of(float a, float b) { return fmodf(a, b); }
FUNCTION double fmod_of(double a, double b) { return fmod(a, b); }
template <typename T> FUNCTION T fmod_of(T a, T b) { return a % (b == 0 ? T(1) : b); }
// == from_bf16
FUNCTION float from_bf16(uint16_t h) { return __bfloat162float(__ushort_as_bfloat16(h)); }
// == to_bf16
FUNCTION uint16_t to_bf16(float x) { return __bfloat16_as_ushort(__float2bfloat16(x)); }
// == round_bf16
FUNCTION float round_bf16(float x) { return __bfloat162float(__float2bfloat16(x)); }
// == from_f16
FUNCTION float from_f16(uint16_t h) { return __half2float(__ushort_as_half(h)); }
// == to_f16
FUNCTION uint16_t to_f16(float x) { return __half_as_ushort(__float2half(x)); }
// == round_f16
FUNCTION float round_f16(float x) { return __half2float(__float2half(x)); }
// == swap_lanes
// The value of the lane whose number differs in the bits of `distance`
template <typename T> FUNCTION T swap_lanes(T v, int distance) { return __shfl_xor_sync(0xffffffffu, v, distance); }
FUNCTION bool swap_lanes(bool v, int distance) { return __shfl_xor_sync(0xffffffffu, int(v), distance) != 0; }
FUNCTION int8_t swap_lanes(int8_t v, int distance) { return int8_t(__shfl_xor_sync(0xffffffffu, int(v), distance)); }
FUNCTION uint8_t swap_lanes(uint8_t v, int distance) { return uint8_t(__shfl_xor_sync(0xffffffffu, int(v), distance)); }
FUNCTION int16_t swap_lanes(int16_t v, int distance) { return int16_t(__shfl_xor_sync(0xffffffffu, int(v), distance)); }
// == atomic_add
template <typename T> FUNCTION void atomic_add(T* at, T x) { atomicAdd(at, x); }
FUNCTION void atomic_add(int64_t* at, int64_t x) { atomicAdd((unsigned long long*)at, (unsigned long long)x); }
// == atomic_max
template <typename T> FUNCTION void atomic_max(T* at, T x) {
  // by compare and swap, since floats and NaN have no instruction
  typedef typename Bits<sizeof(T)>::Type B;
  B old = *(volatile B*)at;
  for (;;) {
    const T now = __builtin_bit_cast(T, old);
    if (!(x > now || x != x)) return;
    const B seen = atomicCAS((B*)at, old, __builtin_bit_cast(B, x));
    if (seen == old) return;
    old = seen;
  }
}
// == atomic_min
template <typename T> FUNCTION void atomic_min(T* at, T x) {
  typedef typename Bits<sizeof(T)>::Type B;
  B old = *(volatile B*)at;
  for (;;) {
    const T now = __builtin_bit_cast(T, old);
    if (!(x < now || x != x)) return;
    const B seen = atomicCAS((B*)at, old, __builtin_bit_cast(B, x));
    if (seen == old) return;
    old = seen;
  }
}
// == Bits
template <int bytes> struct Bits { typedef unsigned int Type; };
template <> struct Bits<8> { typedef unsigned long long Type; };
// == atomic_add_f16
FUNCTION void atomic_add_f16(uint16_t* at, float x) { atomicAdd((__half*)at, __float2half(x)); }
// == atomic_add_bf16
FUNCTION void atomic_add_bf16(uint16_t* at, float x) { atomicAdd((__nv_bfloat16*)at, __float2bfloat16(x)); }
// == exp_of
FUNCTION float exp_of(float x) { return expf(x); }
FUNCTION double exp_of(double x) { return exp(x); }
// == sigmoid_of
template <typename T> FUNCTION T sigmoid_of(T x) { return T(1) / (T(1) + exp_of(-x)); }
// == pow_of
FUNCTION float pow_of(float x, float y) { return powf(x, y); }
FUNCTION double pow_of(double x, double y) { return pow(x, y); }
template <typename T> FUNCTION T pow_of(T x, T n) {
  if (n < 0) return x == 1 ? T(1) : (x == T(-1) ? T(n % 2 ? -1 : 1) : T(0));
  T r = 1;
  for (; n > 0; n /= 2, x *= x) r *= n % 2 ? x : T(1);
  return r;
}
// == log1p_exp_of
// log(1 + e^x) without overflow
template <typename T> FUNCTION T log1p_exp_of(T x) { return x > T(0) ? x + log1p_of(exp_of(-x)) : log1p_of(exp_of(x)); }
// == tanh_plus_one_of
// 1 + tanh(x), the factor of gelu's approximation: nothing cancels in the tail
template <typename T> FUNCTION T tanh_plus_one_of(T x) { return T(2) / (T(1) + exp_of(T(-2) * x)); }
// == erf_plus_one_of
// 1 + erf(x) without cancellation
template <typename T> FUNCTION T erf_plus_one_of(T x) { return erfc_of(-x); }
// == logaddexp_of
// log(e^a + e^b)
template <typename T> FUNCTION T logaddexp_of(T a, T b) {
  const T high = nan_max(a, b), low = nan_min(a, b);
  const T sum = high + log1p_of(exp_of(low - high));
  return (high == T(INFINITY) || high == -T(INFINITY)) ? high : sum;
}
