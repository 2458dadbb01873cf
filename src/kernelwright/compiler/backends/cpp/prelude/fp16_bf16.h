// == from_bf16
FUNCTION float from_bf16(uint16_t h) { return __builtin_bit_cast(float, uint32_t(h) << 16); }
// == to_bf16
// To nearest, ties to even; NaN stays NaN
FUNCTION uint16_t to_bf16(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  const uint32_t r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return uint16_t(x != x ? 0x7fc0u : r);
}
// == round_bf16
FUNCTION float round_bf16(float x) { return from_bf16(to_bf16(x)); }
// == from_f16
// The exponent is moved by a multiplication, which also handles subnormal numbers
FUNCTION float from_f16(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, bits = uint32_t(h & 0x7fff) << 13;
  const float scaled = __builtin_bit_cast(float, bits) * 0x1p112f;
  const uint32_t special = (bits & 0x0f800000) == 0x0f800000 ? 0x7f800000u : 0u;  // infinity and NaN
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | special | sign);
}
// == to_f16
// To nearest, ties to even: adding a number whose last place is the result's last place rounds as asked
FUNCTION uint16_t to_f16(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  const uint32_t least = a < 0x38800000u ? 0x38800000u : a;                            // 2^-14: below, results are subnormal
  const float magic = __builtin_bit_cast(float, (least & 0x7f800000u) + 0x06800000u);  // 2^13 times its power of two
  const float rounded = (__builtin_bit_cast(float, a) + magic) - magic;
  const uint32_t normal = __builtin_bit_cast(uint32_t, rounded * 0x1p-112f) >> 13;
  const uint32_t big = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return uint16_t(sign | (a >= 0x477ff000u ? big : normal));
}
// == round_f16
FUNCTION float round_f16(float x) { return from_f16(to_f16(x)); }
