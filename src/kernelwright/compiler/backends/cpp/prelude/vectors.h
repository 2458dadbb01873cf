// == Vector
// As many floats as a register holds; arithmetic and comparisons work on all of them
#if defined(__AVX512F__)
typedef float Vector __attribute__((vector_size(64)));
typedef int32_t Wholes __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef float Vector __attribute__((vector_size(32)));
typedef int32_t Wholes __attribute__((vector_size(32)));
#else
typedef float Vector __attribute__((vector_size(16)));
typedef int32_t Wholes __attribute__((vector_size(16)));
#endif
constexpr int64_t WIDE = sizeof(Vector) / sizeof(float);
typedef float Loose __attribute__((vector_size(sizeof(Vector)), aligned(4), may_alias));
FUNCTION Vector splat(float x) { return x - Vector{}; }
FUNCTION Vector load_vector(const float* from) { return *(const Loose*)from; }
FUNCTION void store_vector(float* to, Vector x) { *(Loose*)to = x; }
// == stream_vector
// To an aligned place in memory, past the caches: an output larger than they are is not read before it is written
FUNCTION void stream_vector(float* to, Vector x) {
#if defined(__clang__)
  __builtin_nontemporal_store(x, (Vector*)to);
#elif defined(__AVX512F__)
  __builtin_ia32_movntps512(to, x);
#elif defined(__AVX__)
  __builtin_ia32_movntps256(to, x);
#else
  store_vector(to, x);
#endif
}
// == bits_of
FUNCTION int32_t bits_of(float x) { return __builtin_bit_cast(int32_t, x); }
FUNCTION Wholes bits_of(Vector x) { return (Wholes)x; }
// == from_bits
FUNCTION float from_bits(int32_t x) { return __builtin_bit_cast(float, x); }
FUNCTION Vector from_bits(Wholes x) { return (Vector)x; }
// == floats_of
FUNCTION float floats_of(int32_t x) { return float(x); }
FUNCTION Vector floats_of(Wholes x) { return __builtin_convertvector(x, Vector); }
// == at_most
// The smaller of x and a limit; NaN stays NaN
FUNCTION float at_most(float x, float limit) { return x > limit ? limit : x; }
FUNCTION Vector at_most(Vector x, float limit) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_minps512_mask(splat(limit), x, x, -1, 4);
#elif defined(__AVX__) && !defined(__clang__)
  return __builtin_ia32_minps256(splat(limit), x);
#else
  return x > limit ? limit : x;
#endif
}
// == at_least
FUNCTION float at_least(float x, float limit) { return x < limit ? limit : x; }
FUNCTION Vector at_least(Vector x, float limit) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_maxps512_mask(splat(limit), x, x, -1, 4);
#elif defined(__AVX__) && !defined(__clang__)
  return __builtin_ia32_maxps256(splat(limit), x);
#else
  return x < limit ? limit : x;
#endif
}
// == fabs_of
FUNCTION float fabs_of(float x) { return std::fabs(x); }
FUNCTION Vector fabs_of(Vector x) { return (Vector)((Wholes)x & 0x7fffffff); }
// == with_sign
// |x| with the sign of another
FUNCTION float with_sign(float x, float of) { return std::copysign(x, of); }
FUNCTION Vector with_sign(Vector x, Vector of) { return (Vector)(((Wholes)x & 0x7fffffff) | ((Wholes)of & INT32_MIN)); }
// == sqrt_of
FUNCTION Vector sqrt_of(Vector x) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_sqrtps512_mask(x, x, -1, 4);  // 4: rounds as everywhere
#elif defined(__AVX__) && !defined(__clang__)
  return __builtin_ia32_sqrtps256(x);
#else
  for (int lane = 0; lane < WIDE; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
#endif
}
// == vector_max
// NaN if either is NaN, in three instructions
FUNCTION Vector vector_max(Vector a, Vector b) {
#if defined(__AVX512F__) && !defined(__clang__)
  const Vector m = __builtin_ia32_maxps512_mask(b, a, a, -1, 4);
#elif defined(__AVX__) && !defined(__clang__)
  const Vector m = __builtin_ia32_maxps256(b, a);
#else
  const Vector m = b > a ? b : a;
#endif
  return b != b ? b : m;
}
// == vector_min
FUNCTION Vector vector_min(Vector a, Vector b) {
#if defined(__AVX512F__) && !defined(__clang__)
  const Vector m = __builtin_ia32_minps512_mask(b, a, a, -1, 4);
#elif defined(__AVX__) && !defined(__clang__)
  const Vector m = __builtin_ia32_minps256(b, a);
#else
  const Vector m = b < a ? b : a;
#endif
  return b != b ? b : m;
}
// == looked_up
// Each lane's entry of a table of sixteen, by the last four bits of its index
#if defined(__AVX512F__) && !defined(__clang__)
FUNCTION Vector looked_up(Vector table, Wholes at) { return __builtin_shuffle(table, at); }
#endif
// == scaled_by
// x * 2^floor(n), also where 2^n itself would overflow
#if defined(__AVX512F__) && !defined(__clang__)
FUNCTION Vector scaled_by(Vector x, Vector n) { return __builtin_ia32_scalefps512_mask(x, n, x, -1, 4); }
#endif
