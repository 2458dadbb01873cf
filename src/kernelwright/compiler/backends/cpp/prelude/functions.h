// == exp_of
// e^x; at most 1 ulp (float), 1 ulp (double)
template <typename F> FUNCTION F exp_of(F x) {
  x = at_least(at_most(x, 89.0f), -104.0f);
  const F shifted = x * 0x1.715476p+0f + 0x1.8p23f, n = shifted - 0x1.8p23f;
  const F r = x - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
  F q = F{} + 0x1.6dbd12p-10f;
  q = q * r + 0x1.124148p-7f;
  q = q * r + 0x1.555454p-5f;
  q = q * r + 0x1.555486p-3f;
  q = q * r + 0x1p-1f;
  const F e = (q * r + 1.0f) * r + 1.0f;
  // the sum's last bits are k = x / log(2); in two steps, because 2^k alone may overflow or be subnormal
  const auto k = bits_of(shifted), h = k >> 1;
  return e * from_bits((h << 23) + 0x3f800000) * from_bits(((k - h) << 23) + 0x3f800000);
}
#if defined(__AVX512F__) && !defined(__clang__)
// 2^(k/16) is looked up in a register and a short polynomial does the rest: two thirds of the steps; at most 1.5 ulp
FUNCTION Vector exp_of(Vector x) {
  const Vector roots = {0x1p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
    0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f, 0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
  x = at_least(at_most(x, 89.0f), -104.0f);
  const Vector shifted = x * 0x1.715476p+0f + 0x1.8p19f, n = shifted - 0x1.8p19f;  // n in sixteenths
  const Vector r = x - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
  const Vector root = looked_up(roots, bits_of(shifted));
  const Vector rest = ((0x1.5556p-3f * r + 0.5f) * r + 1.0f) * r;
  return scaled_by(root * rest + root, n);
}
#endif
FUNCTION double exp_of(double x) {
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  const double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52;
  const int64_t k = __builtin_bit_cast(int64_t, shifted) - 0x4338000000000000;
  const double n = shifted - 0x1.8p52;
  const double r = x - n * 0x1.62e42fefa0000p-1 - n * 0x1.cf79abc9e3b3ap-40;
  double q = 0x1.af8b6c357078fp-26;
  q = q * r + 0x1.28b45593fc245p-22;
  q = q * r + 0x1.71dddc106588ep-19;
  q = q * r + 0x1.a0199246012d7p-16;
  q = q * r + 0x1.a01a01bc8f198p-13;
  q = q * r + 0x1.6c16c18735bd7p-10;
  q = q * r + 0x1.111111110d144p-7;
  q = q * r + 0x1.555555554f936p-5;
  q = q * r + 0x1.5555555555562p-3;
  q = q * r + 0x1.000000000000dp-1;
  const double e = (q * r * r + r) + 1.0;
  // halving by a shift that vectorises: 64-bit arithmetic shifts do not exist before AVX-512
  const int64_t h = int64_t(uint64_t(k + 4096) >> 1) - 2048;
  return e * __builtin_bit_cast(double, (h + 1023) << 52) * __builtin_bit_cast(double, (k - h + 1023) << 52);
}
// == expm1_of
// e^x - 1 without cancellation; at most 3 ulp
template <typename F> FUNCTION F expm1_of(F x) {
  const F y = at_least(at_most(x, 89.0f), -18.0f);
  const F shifted = y * 0x1.715476p+0f + 0x1.8p23f, n = shifted - 0x1.8p23f;
  const F r = y - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
  F q = F{} + 0x1.a1bfdep-13f;
  q = q * r + 0x1.6d9e2ap-10f;
  q = q * r + 0x1.111078p-7f;
  q = q * r + 0x1.555478p-5f;
  q = q * r + 0x1.555556p-3f;
  q = q * r + 0x1p-1f;
  const F e = q * r * r + r;
  const F power = from_bits((bits_of(shifted) << 23) + 0x3f000000);  // 2^(k-1), doubled at the end: 2^128 overflows
  return ((e * power) + (power - 0.5f)) * 2.0f;
}
FUNCTION double expm1_of(double x) {
  const double y = x < -40.0 ? -40.0 : (x > 710.0 ? 710.0 : x);
  const double shifted = y * 0x1.71547652b82fep+0 + 0x1.8p52;
  const int64_t k = __builtin_bit_cast(int64_t, shifted) - 0x4338000000000000;
  const double n = shifted - 0x1.8p52;
  const double r = y - n * 0x1.62e42fefa0000p-1 - n * 0x1.cf79abc9e3b3ap-40;
  double q = 0x1.af8b6c357078fp-26;
  q = q * r + 0x1.28b45593fc245p-22;
  q = q * r + 0x1.71dddc106588ep-19;
  q = q * r + 0x1.a0199246012d7p-16;
  q = q * r + 0x1.a01a01bc8f198p-13;
  q = q * r + 0x1.6c16c18735bd7p-10;
  q = q * r + 0x1.111111110d144p-7;
  q = q * r + 0x1.555555554f936p-5;
  q = q * r + 0x1.5555555555562p-3;
  q = q * r + 0x1.000000000000dp-1;
  const double e = q * r * r + r;
  const double power = __builtin_bit_cast(double, (k - 1 + 1023) << 52);
  return ((e * power) + (power - 0.5)) * 2.0;
}
// == exp2_of
FUNCTION float exp2_of(float x) { return float(exp_of(double(x) * 0x1.62e42fefa39efp-1)); }
FUNCTION double exp2_of(double x) { return std::exp2(x); }
// == log_of
// Natural logarithm; at most 1 ulp (float), 2 ulp (double)
template <typename F> FUNCTION F log_of(F x) {
  const auto tiny = x < 0x1p-126f;
  const F scaled = tiny ? x * 0x1p23f : x;
  const auto shifted = bits_of(scaled) - 0x3f3504f3;  // mantissa from sqrt(1/2) to sqrt(2)
  const F n = floats_of(shifted >> 23) - (tiny ? 23.0f : F{});
  const F f = from_bits((shifted & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const F s = f / (f + 2.0f), z = s * s;
  F g = F{} + 0x1.ddf65ep-3f;
  g = g * z + 0x1.245b8p-2f;
  g = g * z + 0x1.9999eep-2f;
  g = g * z + 0x1.555556p-1f;
  // log(1 + f) = f - f*f/2 + s*(f*f/2 + z*g)
  const F half = 0.5f * f * f;
  F y = n * 0x1.62e3p-1f + (f - (half - (s * (half + z * g) + n * 0x1.2fefa2p-17f)));
  y = x == INFINITY ? x : y;
  y = x == 0.0f ? -INFINITY : y;
  return (x < 0.0f) | (x != x) ? NAN : y;
}
#if defined(__AVX512F__) && !defined(__clang__)
// x = m * 2^n with m between 3/4 and 3/2; m's inverse, cut short, is looked up in a register, and what is left is near 1: no division
FUNCTION Vector log_of(Vector x) {
  const Vector inverse = {0x1p+0f, 0x1.d4p-1f, 0x1.bap-1f, 0x1.a4p-1f, 0x1.9p-1f, 0x1.7ep-1f, 0x1.6cp-1f, 0x1.5cp-1f,
    0x1.4ep+0f, 0x1.41p+0f, 0x1.35p+0f, 0x1.2ap+0f, 0x1.1fp+0f, 0x1.16p+0f, 0x1.0dp+0f, 0x1p+0f};
  const Vector whole = {0.0f, 0x1.700d3p-4f, 0x1.2d161p-3f, 0x1.95a5aep-3f, 0x1.f991c6p-3f, 0x1.2bef08p-2f, 0x1.5d5bdep-2f, 0x1.8b639ap-2f,
    -0x1.1058cp-2f, -0x1.cf6354p-3f, -0x1.815c0ap-3f, -0x1.371fc2p-3f, -0x1.d4313ep-4f, -0x1.51b074p-4f, -0x1.95c83p-5f, 0.0f};
  const Vector m = __builtin_ia32_getmantps512_mask(x, 11, x, -1, 4);  // 8: NaN below zero; 3: from 3/4 to 3/2
  const Vector n = __builtin_ia32_getexpps512_mask(x, x, -1, 4) - __builtin_ia32_getexpps512_mask(m, m, -1, 4);
  const Wholes k = bits_of(m) >> 19;
  const Vector r = m * looked_up(inverse, k) - 1.0f;
  const Vector z = r * r, q = (0x1.9b35ecp-3f * r - 0x1.00d6aep-2f) * z + (0x1.555514p-2f * r - 0x1.ffffcap-2f);
  const Vector y = n * 0x1.62e43p-1f + (looked_up(whole, k) + (q * z + r));
  return x == INFINITY ? x : y;
}
#endif
FUNCTION double log_of(double x) {
  const bool tiny = x < 0x1p-1022;
  const double scaled = tiny ? x * 0x1p54 : x;
  const int64_t shifted = __builtin_bit_cast(int64_t, scaled) - 0x3fe6a09e667f3bcd;
  // the exponent as a double without a 64-bit conversion, which vectorises only with AVX-512
  const uint64_t e = uint64_t(shifted + (int64_t(1) << 62)) >> 52;
  const double n = __builtin_bit_cast(double, e | 0x4330000000000000) - 0x1p52 - 1024.0 - (tiny ? 54.0 : 0.0);
  const double f = __builtin_bit_cast(double, (shifted & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1.0;
  const double s = f / (f + 2.0), z = s * s;
  double g = 0x1.0c2eb356bd8c0p-3;
  g = g * z + 0x1.0fba682bb04e6p-3;
  g = g * z + 0x1.3b1c5dede50eap-3;
  g = g * z + 0x1.745cf8422004cp-3;
  g = g * z + 0x1.c71c720334a51p-3;
  g = g * z + 0x1.2492492475b9ap-2;
  g = g * z + 0x1.9999999999a3fp-2;
  g = g * z + 0x1.5555555555555p-1;
  const double half = 0.5 * f * f;
  double y = n * 0x1.62e42feep-1 + (f - (half - (s * (half + z * g) + n * 0x1.a39ef35793c76p-33)));
  y = x == INFINITY ? x : y;
  y = x == 0.0 ? -INFINITY : y;
  return (x < 0.0) | (x != x) ? double(NAN) : y;
}
// == log2_of
FUNCTION float log2_of(float x) { return float(log_of(double(x)) * 0x1.71547652b82fep+0); }
FUNCTION double log2_of(double x) { return std::log2(x); }
// == log10_of
FUNCTION float log10_of(float x) { return float(log_of(double(x)) * 0x1.bcb7b1526e50ep-2); }
FUNCTION double log10_of(double x) { return std::log10(x); }
// == log1p_of
// log(1 + x), what 1 + x rounds away added back
template <typename F> FUNCTION F log1p_of(F x) {
  const F u = 1.0f + x, lost = x - (u - 1.0f), whole = log_of(u);
  return (u == INFINITY) | (u == 0.0f) ? whole : whole + lost / u;
}
// == log1p_exp_of
// log(1 + e^x) without overflow; at most 2.5 ulp. 1 + e^-|x| lies between 1 and 2: no exponent to take apart
template <typename F> FUNCTION F log1p_exp_of(F x) {
  const F t = exp_of(-fabs_of(x)), s = t / (2.0f + t), z = s * s;
  F p = F{} + 0x1.1ece06p-3f;
  p = p * z + 0x1.1ebf46p-3f;
  p = p * z + 0x1.99d1ep-3f;
  p = p * z + 0x1.555502p-2f;
  return at_least(x, 0.0f) + 2.0f * (s * z * p + s);
}
FUNCTION double log1p_exp_of(double x) { return (x > 0.0 ? x : 0.0) + log1p_of(exp_of(-std::fabs(x))); }
// == tanh_of
// At most 1.5 ulp (float): gelu's 1 + tanh(y) magnifies each of them where they cancel; 3 ulp (double)
template <typename F> FUNCTION F tanh_of(F x) {
  const F a = fabs_of(x), z = a * a;
  F p = F{} + 0x1.0e9e76p-9f;  // |x| < 0.65: a polynomial
  p = p * z - 0x1.092848p-7f;
  p = p * z + 0x1.62fb3ap-6f;
  p = p * z - 0x1.b9e18ep-5f;
  p = p * z + 0x1.111026p-3f;
  p = p * z - 0x1.555552p-2f;
  const F small = a + a * (z * p);
  const F large = 1.0f - 2.0f / (exp_of(a + a) + 1.0f);
  return with_sign(a < 0.65f ? small : large, x);
}
#if defined(__AVX512F__) && !defined(__clang__)
// One of twelve polynomials, two an octave, whose coefficients are looked up in registers: half the steps; at most 1.5 ulp
FUNCTION Vector tanh_of(Vector x) {
  const Vector middle = {0x1.4p+1f, 0x1.cp+1f, 0x1.4p+2f, 0x1.cp+2f, 0x1.18p+3f, 0.0f, 0.0f, 0.0f,
    0.0f, 0.0f, 0x1.4p-2f, 0x1.cp-2f, 0x1.4p-1f, 0x1.cp-1f, 0x1.4p+0f, 0x1.cp+0f};
  const Vector c0 = {0x1.f92582p-1f, 0x1.ff112cp-1f, 0x1.fff41ap-1f, 0x1.ffffc8p-1f, 0x1.fffffep-1f, 0.0f, 0.0f, 0.0f,
    0.0f, 0.0f, 0x1.35f98ap-2f, 0x1.a5729ep-2f, 0x1.1bf47ep-1f, 0x1.68665p-1f, 0x1.b2523cp-1f, 0x1.e1fbfap-1f};
  const Vector c1 = {0x1.b3b058p-6f, 0x1.dd3a36p-9f, 0x1.7d643cp-13f, 0x1.bf1cd6p-19f, 0x1.af7fe6p-24f, 0.0f, 0.0f, 0.0f,
    0.0f, 0x1p+0f, 0x1.d11574p-1f, 0x1.a945bap-1f, 0x1.6284c4p-1f, 0x1.02500ap-1f, 0x1.1f250cp-2f, 0x1.d22c94p-4f};
  const Vector c2 = {-0x1.adda3p-6f, -0x1.dc5a6ap-9f, -0x1.7d19aep-13f, -0x1.becfap-19f, -0x1.af7358p-24f, 0.0f, 0.0f, 0.0f,
    0.0f, -0x1.327484p-20f, -0x1.19922p-2f, -0x1.5e0f0ap-2f, -0x1.893b5cp-2f, -0x1.6ba7ccp-2f, -0x1.e72912p-3f, -0x1.b6d848p-4f};
  const Vector c3 = {0x1.16d038p-6f, 0x1.3c1c14p-9f, 0x1.f25e54p-14f, 0x1.2428b6p-19f, 0x1.1dfda8p-24f, 0.0f, 0.0f, 0.0f,
    0.0f, -0x1.554464p-2f, -0x1.c1a4bp-3f, -0x1.16e21p-3f, -0x1.244142p-6f, 0x1.4f12bp-4f, 0x1.bbb43p-4f, 0x1.01c10cp-4f};
  const Vector c4 = {-0x1.07d1e4p-7f, -0x1.39e95p-10f, -0x1.f4f184p-15f, -0x1.25c308p-20f, -0x1.1e749ep-25f, 0.0f, 0.0f, 0.0f,
    0.0f, -0x1.3ab1cap-10f, 0x1.43d2fcp-3f, 0x1.5c2712p-3f, 0x1.1a6ccp-3f, 0x1.f20d48p-5f, -0x1.9c7748p-7f, -0x1.816cap-6f};
  const Vector c5 = {0x1.7a789cp-9f, 0x1.01192cp-11f, 0x1.dddd9p-16f, 0x1.18b7f4p-21f, 0x1.f90edep-27f, 0.0f, 0.0f, 0.0f,
    0.0f, 0x1.2530dep-3f, 0x1.74c91ep-5f, -0x1.86b7c6p-8f, -0x1.bd1e14p-5f, -0x1.df9e98p-5f, -0x1.429df8p-6f, 0x1.c86a82p-9f};
  const Vector c6 = {-0x1.6e119ap-11f, -0x1.49c652p-13f, -0x1.36aabcp-17f, -0x1.6db884p-23f, -0x1.4c4c6ep-28f, 0.0f, 0.0f, 0.0f,
    0.0f, -0x1.2fe35cp-5f, -0x1.286d48p-4f, -0x1.f9896ep-5f, -0x1.8ef098p-6f, 0x1.a6714p-7f, 0x1.ef79dp-7f, 0x1.12ac16p-9f};
  const Vector a = at_most(fabs_of(x), 9.5f);  // from there on it is 1
  const Wholes k = bits_of(at_least(a, 0.1875f)) >> 22;
  const Vector v = a - looked_up(middle, k);
  Vector q = looked_up(c6, k) * v + looked_up(c5, k);
  q = q * v + looked_up(c4, k);
  q = q * v + looked_up(c3, k);
  q = q * v + looked_up(c2, k);
  q = q * v + looked_up(c1, k);
  q = q * v + looked_up(c0, k);
  return with_sign(q, x);
}
#endif
FUNCTION double tanh_of(double x) {
  const double t = expm1_of(-2.0 * std::fabs(x));
  return std::copysign(-t / (2.0 + t), x);
}
// == tanh_plus_one_of
// 1 + tanh(x), the factor of gelu's approximation: one exponential, and nothing cancels in the tail
template <typename T> FUNCTION T tanh_plus_one_of(T x) { return 2.0f / (1.0f + exp_of(-2.0f * x)); }
// == sigmoid_of
template <typename F> FUNCTION F sigmoid_of(F x) { return 1.0f / (1.0f + exp_of(-x)); }
// == erf_of
// At most 3 ulp (float); double is the C library's
template <typename F> FUNCTION F erf_of(F x) {
  const F a = fabs_of(x), z = a * a;
  F p = F{} - 0x1.395c52p-11f;  // |x| < 0.92: a polynomial
  p = p * z + 0x1.4716b4p-8f;
  p = p * z - 0x1.b686eap-6f;
  p = p * z + 0x1.ce1a46p-4f;
  p = p * z - 0x1.8126e6p-2f;
  p = p * z + 0x1.06eba6p-3f;
  const F small = a + a * p;
  const F b = at_most(a, 4.0f);  // beyond: 1 - exp(-b * h(b)); the exponential needs no care for range here
  F h = F{} + 0x1.82a68ep-17f;
  h = h * b - 0x1.557aacp-12f;
  h = h * b + 0x1.dee8e2p-9f;
  h = h * b - 0x1.85b332p-6f;
  h = h * b + 0x1.b3410cp-4f;
  h = h * b + 0x1.453088p-1f;
  h = h * b + 0x1.20ef5ap+0f;
  const F y = -b * h, shifted = y * 0x1.715476p+0f + 0x1.8p23f, n = shifted - 0x1.8p23f;
  const F r = y - n * 0x1.62e430p-1f;
  F q = F{} + 0x1.6dbd12p-10f;
  q = q * r + 0x1.124148p-7f;
  q = q * r + 0x1.555454p-5f;
  q = q * r + 0x1.555486p-3f;
  q = q * r + 0x1p-1f;
  const F e = (q * r + 1.0f) * r + 1.0f;
  const F power = from_bits((bits_of(shifted) << 23) + 0x3f800000);
  const F large = 1.0f - e * power;  // NaN stays NaN
  return with_sign(a < 0.921875f ? small : large, x);
}
FUNCTION double erf_of(double x) { return std::erf(x); }
// == erf_plus_one_of
// 1 + erf(x), the factor of gelu, within 1.2e-7: erfc(|x|) = exp(-b * h(b)), and nothing cancels in the tail
template <typename F> FUNCTION F erf_plus_one_of(F x) {
  const F a = fabs_of(x), b = at_most(a, 4.0f);
  const F z = b * b;  // two short chains instead of a long one
  F even = F{} - 0x1.d7ced6p-17f, odd = F{} + 0x1.6c3b2ep-21f;
  even = even * z - 0x1.3ff1acp-11f;
  odd = odd * z + 0x1.068edcp-13f;
  even = even * z - 0x1.d773acp-18f;
  odd = odd * z + 0x1.9a99fp-10f;
  even = even * z + 0x1.a5279ep-4f;
  odd = odd * z - 0x1.3bafcap-6f;
  even = even * z + 0x1.20dd7cp+0f;
  odd = odd * z + 0x1.45f206p-1f;
  const F h = odd * b + even;
  const F y = -b * h, shifted = y * 0x1.715476p+0f + 0x1.8p23f, n = shifted - 0x1.8p23f;
  const F r = y - n * 0x1.62e430p-1f;
  F q = F{} + 0x1.6dbd12p-10f;
  q = q * r + 0x1.124148p-7f;
  q = q * r + 0x1.555454p-5f;
  q = q * r + 0x1.555486p-3f;
  q = q * r + 0x1p-1f;
  const F e = (q * r + 1.0f) * r + 1.0f;
  const F tail = a >= 4.0f ? F{} : e * from_bits((bits_of(shifted) << 23) + 0x3f800000);
  return x < 0.0f ? tail : 2.0f - tail;
}
#if defined(__AVX512F__) && !defined(__clang__)
// erfc(|x|) from one of sixteen polynomials, whose coefficients are looked up in registers; within 1.2e-7
FUNCTION Vector erf_plus_one_of(Vector x) {
  const Vector c0 = {0x1.b8287ap-1f, 0x1.311796p-1f, 0x1.81cd24p-2f, 0x1.ba36dap-3f, 0x1.c9296cp-4f, 0x1.a8973ap-5f, 0x1.612d88p-6f, 0x1.067844p-7f,
    0x1.5bde74p-9f, 0x1.9a7c3ep-11f, 0x1.aeb468p-13f, 0x1.916fc8p-15f, 0x1.4c14c4p-17f, 0x1.e74a66p-20f, 0x1.3ce8d4p-22f, 0x1.6d338ep-25f};
  const Vector c1 = {-0x1.1c62fap-2f, -0x1.f5f0cep-3f, -0x1.86e96ap-3f, -0x1.0cab62p-3f, -0x1.45e99cp-4f, -0x1.5ce596p-5f, -0x1.499d48p-6f, -0x1.12ceb4p-7f,
    -0x1.94624ep-9f, -0x1.06918cp-10f, -0x1.2ce89ap-12f, -0x1.305394p-14f, -0x1.0f9e24p-16f, -0x1.abe0bap-19f, -0x1.296a92p-21f, -0x1.6ce1eep-24f};
  const Vector c2 = {0x1.1c615ap-7f, 0x1.7872cep-6f, 0x1.e8a248p-6f, 0x1.d62b8cp-6f, 0x1.6ea75ep-6f, 0x1.dfbd44p-7f, 0x1.0bd0d4p-7f, 0x1.01a26p-8f,
    0x1.ada76cp-10f, 0x1.37c944p-11f, 0x1.8ae6eep-13f, 0x1.b5630cp-15f, 0x1.a84582p-17f, 0x1.68d9fap-19f, 0x1.0d594cp-21f, 0x1.61243ap-24f};
  const Vector c3 = {0x1.6f5452p-8f, 0x1.e1066p-9f, 0x1.c8144cp-11f, -0x1.7c9acap-10f, -0x1.4cb31ep-9f, -0x1.4374f2p-9f, -0x1.d664p-10f, -0x1.143dd2p-10f,
    -0x1.0ea5p-11f, -0x1.c1ebeep-13f, -0x1.407e2ep-14f, -0x1.89dc9ep-16f, -0x1.a369a6p-18f, -0x1.84430cp-20f, -0x1.393866p-22f, -0x1.b9395cp-25f};
  const Vector c4 = {-0x1.17421p-12f, -0x1.52c462p-11f, -0x1.67692ep-11f, -0x1.cb60cp-12f, -0x1.d03d74p-14f, 0x1.eb3da6p-14f, 0x1.9488p-13f, 0x1.596662p-13f,
    0x1.b095fep-14f, 0x1.b0bb94p-15f, 0x1.664806p-16f, 0x1.f44fb2p-18f, 0x1.29e952p-19f, 0x1.30cdf2p-21f, 0x1.0d4d7p-23f, 0x1.9c79b8p-26f};
  const Vector c5 = {-0x1.a86e9cp-14f, -0x1.737c84p-15f, 0x1.bbd308p-16f, 0x1.11895ap-14f, 0x1.f48534p-15f, 0x1.f5fb8ep-16f, 0x1.2ac038p-19f, -0x1.73d36ap-17f,
    -0x1.980332p-17f, -0x1.11f1f6p-17f, -0x1.1576f8p-18f, -0x1.c45e12p-20f, -0x1.31c624p-21f, -0x1.5c7ff8p-23f, -0x1.525af6p-25f, -0x1.19cf1p-27f};
  const Vector a = fabs_of(x), u = at_most(a, 0x1.fffffep+1f) * 4.0f - 0.5f;
  const Vector shifted = u + 0x1.8p23f, v = u - (shifted - 0x1.8p23f);  // from the middle of its quarter
  const Wholes k = bits_of(shifted);
  Vector q = looked_up(c5, k) * v + looked_up(c4, k);
  q = q * v + looked_up(c3, k);
  q = q * v + looked_up(c2, k);
  q = q * v + looked_up(c1, k);
  q = q * v + looked_up(c0, k);
  const Vector tail = a >= 4.0f ? Vector{} : q;
  return x < 0.0f ? tail : 2.0f - tail;
}
#endif
FUNCTION double erf_plus_one_of(double x) { return 1.0 + std::erf(x); }
// == erfc_of
template <typename T> FUNCTION T erfc_of(T x) { return std::erfc(x); }
// == sin_of
template <typename T> FUNCTION T sin_of(T x) { return std::sin(x); }
// == cos_of
template <typename T> FUNCTION T cos_of(T x) { return std::cos(x); }
// == tan_of
template <typename T> FUNCTION T tan_of(T x) { return std::tan(x); }
// == asin_of
template <typename T> FUNCTION T asin_of(T x) { return std::asin(x); }
// == acos_of
template <typename T> FUNCTION T acos_of(T x) { return std::acos(x); }
// == atan_of
template <typename T> FUNCTION T atan_of(T x) { return std::atan(x); }
// == sinh_of
template <typename T> FUNCTION T sinh_of(T x) { return std::sinh(x); }
// == cosh_of
template <typename T> FUNCTION T cosh_of(T x) { return std::cosh(x); }
// == asinh_of
template <typename T> FUNCTION T asinh_of(T x) { return std::asinh(x); }
// == acosh_of
template <typename T> FUNCTION T acosh_of(T x) { return std::acosh(x); }
// == atanh_of
template <typename T> FUNCTION T atanh_of(T x) { return std::atanh(x); }
// == lgamma_of
template <typename T> FUNCTION T lgamma_of(T x) { int sign; return sizeof(T) == 4 ? lgammaf_r(x, &sign) : lgamma_r(x, &sign); }
// == erfinv_of
// A start from the tail's logarithm, then two steps of Halley's method in double
FUNCTION double erfinv_of(double x) {
  if (!(std::fabs(x) < 1.0)) return std::fabs(x) == 1.0 ? std::copysign(double(INFINITY), x) : double(NAN);
  const double w = std::log1p(-x * x), v = 2.0 / (3.14159265358979323846 * 0.147) + 0.5 * w;
  double y = std::copysign(std::sqrt(std::sqrt(v * v - w / 0.147) - v), x);
  for (int k = 0; k < 3; ++k) {
    const double wrong = std::fabs(x) > 0.5 ? (1.0 - std::fabs(x) - std::erfc(std::fabs(y))) * std::copysign(1.0, x) : std::erf(y) - x;
    const double step = wrong / (1.12837916709551257390 * std::exp(-y * y));
    y -= step / (1.0 + y * step);
  }
  return y;
}
FUNCTION float erfinv_of(float x) { return float(erfinv_of(double(x))); }
// == pow_of
// float through double, which vectorises; the special cases are those of C
FUNCTION float pow_of(float x, float y) {
  const double magnitude = exp_of(double(y) * log_of(std::fabs(double(x))));
  const float half = y * 0.5f, whole = std::rint(y);
  const bool odd = (whole == y) & (std::rint(half) != half);
  float r = float(magnitude);
  const bool below = (x < 0.0f) | ((x == 0.0f) & (std::copysign(1.0f, x) < 0.0f));
  const bool real = (whole == y) | (x == 0.0f) | (x == -INFINITY);
  const float mirrored = odd ? -r : (real ? r : NAN);
  r = below ? mirrored : r;
  r = (std::fabs(x) == 1.0f) & (std::fabs(y) == INFINITY) ? 1.0f : r;
  return (x == 1.0f) | (y == 0.0f) ? 1.0f : r;
}
FUNCTION double pow_of(double x, double y) { return std::pow(x, y); }
template <typename T> FUNCTION T pow_of(T x, T n) {
  if (n < 0) return x == 1 ? T(1) : (x == T(-1) ? T(n % 2 ? -1 : 1) : T(0));
  T r = 1;
  for (; n > 0; n /= 2, x *= x) r *= n % 2 ? x : T(1);
  return r;
}
// == logaddexp_of
// log(e^a + e^b)
template <typename T> FUNCTION T logaddexp_of(T a, T b) {
  const T high = nan_max(a, b), low = nan_min(a, b);
  const T sum = high + log1p_of(exp_of(low - high));
  return std::fabs(high) == T(INFINITY) ? high : sum;
}
