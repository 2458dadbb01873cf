// == floor_div
FUNCTION long floor_div(long a, long b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
// == floor_mod
FUNCTION long floor_mod(long a, long b) { const long r = a % b; return r + (r != 0 && (r < 0) != (b < 0) ? b : 0); }
// == from_bf16
FUNCTION float from_bf16(ushort h) { return as_float((uint)h << 16); }
// == to_bf16
// To the nearest, ties to even; NaN stays NaN
FUNCTION ushort to_bf16(float x) {
  const uint bits = as_uint(x);
  return x != x ? (ushort)0x7fc0 : (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
// == round_bf16
FUNCTION float round_bf16(float x) { return from_bf16(to_bf16(x)); }
// == from_f16
FUNCTION float from_f16(ushort h) { return vload_half(0, (const half*)&h); }
// == to_f16
FUNCTION ushort to_f16(float x) {
  ushort h;
  vstore_half_rte(x, 0, (half*)&h);
  return h;
}
// == round_f16
FUNCTION float round_f16(float x) { return from_f16(to_f16(x)); }
// == swap_word
FUNCTION uint swap_word(volatile __global uint* at, uint old, uint made) { return atomic_cmpxchg(at, old, made); }
FUNCTION ulong swap_word(volatile __global ulong* at, ulong old, ulong made) { return atom_cmpxchg(at, old, made); }
// == put_add
FUNCTION void put_add(volatile __global int* at, int x) { atomic_add(at, x); }
FUNCTION void put_add(volatile __global long* at, long x) { atom_add(at, x); }
FUNCTION void put_add(volatile __global float* at, float x) {
  volatile __global uint* const word = (volatile __global uint*)at;
  uint old = *word, seen;
  while ((seen = swap_word(word, old, as_uint(as_float(old) + x))) != old) old = seen;
}
FUNCTION void put_add(volatile __global double* at, double x) {
  volatile __global ulong* const word = (volatile __global ulong*)at;
  ulong old = *word, seen;
  while ((seen = swap_word(word, old, as_ulong(as_double(old) + x))) != old) old = seen;
}
// == swap_half
// Replaces 16 bits of the 32-bit word that holds them; gives what they were
FUNCTION ushort swap_half(volatile __global ushort* at, ushort old, ushort made) {
  const size_t address = (size_t)at;
  const int shift = (address & 2) ? 16 : 0;
  volatile __global uint* const word = (volatile __global uint*)(address & ~(size_t)3);
  const uint rest = *word & ~(0xffffu << shift);
  const uint seen = atomic_cmpxchg(word, rest | ((uint)old << shift), rest | ((uint)made << shift));
  // another work-item may have changed the word's other half: then nothing was replaced, and the caller tries again
  if (seen != (rest | ((uint)old << shift)) && (ushort)(seen >> shift) == old) return ~old;
  return (ushort)(seen >> shift);
}
// == put_add_f16
FUNCTION void put_add_f16(volatile __global ushort* at, float x) {
  for (;;) {
    const ushort old = *at;
    if (swap_half(at, old, to_f16(from_f16(old) + x)) == old) return;
  }
}
// == put_add_bf16
FUNCTION void put_add_bf16(volatile __global ushort* at, float x) {
  for (;;) {
    const ushort old = *at;
    if (swap_half(at, old, to_bf16(from_bf16(old) + x)) == old) return;
  }
}
// == erfinv_of
// A start from the tail's logarithm, then steps of Halley's method in double
FUNCTION double erfinv_of(double x) {
  if (!(fabs(x) < 1.0)) return fabs(x) == 1.0 ? copysign((double)INFINITY, x) : (double)NAN;
  const double w = log1p(-x * x), v = 2.0 / (3.14159265358979323846 * 0.147) + 0.5 * w;
  double y = copysign(sqrt(sqrt(v * v - w / 0.147) - v), x);
  for (int k = 0; k < 3; ++k) {
    const double wrong = fabs(x) > 0.5 ? (1.0 - fabs(x) - erfc(fabs(y))) * copysign(1.0, x) : erf(y) - x;
    const double step_ = wrong / (1.12837916709551257390 * exp(-y * y));
    y -= step_ / (1.0 + y * step_);
  }
  return y;
}
FUNCTION float erfinv_of(float x) { return (float)erfinv_of((double)x); }
