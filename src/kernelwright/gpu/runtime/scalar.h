// The semantics of instructions on one lane. `lanes.h` and `lanes.cpp` apply them to vectors.
#pragma once
#include <math.h>
#include <string.h>
#include "machine.h"

template <class To, class From> KW_INLINE To kw_bits(From x) { To y; static_assert(sizeof(To) == sizeof(From)); memcpy(&y, &x, sizeof y); return y; }
KW_INLINE float as_f32(uint32_t x) { return kw_bits<float>(x); }
KW_INLINE double as_f64(uint64_t x) { return kw_bits<double>(x); }
KW_INLINE uint32_t bits_of(float x) { return kw_bits<uint32_t>(x); }
KW_INLINE uint64_t bits_of(double x) { return kw_bits<uint64_t>(x); }

// Half precision, in software where the processor's own conversion is not at hand.
KW_INLINE float half_to_float(uint16_t h) {
#ifdef __F16C__
    return (float)kw_bits<_Float16>(h);
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, f = h & 1023;
    if (e == 31) return as_f32(sign | 0x7f800000 | f << 13);
    if (!e) return as_f32(sign | bits_of((float)f * 0x1p-24f));
    return as_f32(sign | (e + 112) << 23 | f << 13);
#endif
}
// Rounds a double to a format of `p` bits (with the hidden one), smallest exponent `emin`; the result is exact in double.
// Modes: 0 nearest even, 1 to zero, 2 down, 3 up.
KW_INLINE double round_to(double x, int p, int emin, int mode) {
    if (!(x == x) || isinf(x) || x == 0) return x;
    int e;
    frexp(x, &e);
    int q = (e - 1 < emin ? emin : e - 1) - (p - 1);
    double scaled = ldexp(x, -q), whole;
    switch (mode) {
        case 0: whole = nearbyint(scaled); break;
        case 1: whole = trunc(scaled); break;
        case 2: whole = floor(scaled); break;
        default: whole = ceil(scaled);
    }
    return copysign(ldexp(whole, q), x);
}
static inline uint16_t half_of(double x, int mode) {
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (!(x == x)) return 0x7fff;
    double r = fabs(round_to(x, 11, -14, mode));
    if (r > 65504.0) {
        bool inf = isinf(x) || mode == 0 || (mode == 2 && sign) || (mode == 3 && !sign);
        return sign | (inf ? 0x7c00 : 0x7bff);
    }
    if (r < 0x1p-14) return sign | (uint16_t)(r * 0x1p24);
    int e;
    double f = frexp(r, &e);
    return sign | (uint16_t)((e + 14) << 10) | (uint16_t)(ldexp(f, 11) - 1024);
}
KW_INLINE uint16_t float_to_half(float x) {
#ifdef __F16C__
    return x == x ? kw_bits<uint16_t>((_Float16)x) : 0x7fff;
#else
    return half_of(x, 0);
#endif
}
KW_INLINE float bf16_to_float(uint16_t h) { return as_f32((uint32_t)h << 16); }
KW_INLINE uint16_t float_to_bf16(float x) {
    uint32_t u = bits_of(x);
    return x == x ? (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16) : 0x7fff;
}
static inline uint16_t bf16_of(float x, int mode) {
    if (!(x == x)) return 0x7fff;
    if (mode == 0) return float_to_bf16(x);
    uint32_t u = bits_of(x), low = u & 0xffff, sign = u >> 31;
    u >>= 16;
    if (low && (u & 0x7f80) != 0x7f80 && ((mode == 2 && sign) || (mode == 3 && !sign))) u++;
    return (uint16_t)u;
}
// tf32: rna (nearest, ties away) is what compilers ask for; the low 13 bits come out as zero.
KW_INLINE uint32_t float_to_tf32(uint32_t u) { return (u & 0x7f800000) == 0x7f800000 ? u : (u + 0x1000) & 0xffffe000u; }
KW_INLINE uint32_t float_to_tf32_rn(uint32_t u) {
    return (u & 0x7f800000) == 0x7f800000 ? u : (u + 0xfff + ((u >> 13) & 1)) & 0xffffe000u;
}
static inline uint8_t float_to_e4m3(float x) {
    uint8_t sign = signbit(x) ? 0x80 : 0;
    if (!(x == x)) return 0x7f;
    double r = fabs(round_to(x, 4, -6, 0));
    if (r > 448) return sign | 0x7e;
    if (r < 0x1p-6) return sign | (uint8_t)(r * 0x1p9);
    int e;
    double f = frexp(r, &e);
    return sign | (uint8_t)((e + 6) << 3) | (uint8_t)(ldexp(f, 4) - 8);
}
static inline uint8_t float_to_e5m2(float x) {
    uint8_t sign = signbit(x) ? 0x80 : 0;
    if (!(x == x)) return 0x7f;
    double r = fabs(round_to(x, 3, -14, 0));
    if (r > 57344) return sign | 0x7b;
    if (r < 0x1p-14) return sign | (uint8_t)(r * 0x1p16);
    int e;
    double f = frexp(r, &e);
    return sign | (uint8_t)((e + 14) << 2) | (uint8_t)(ldexp(f, 3) - 4);
}
KW_INLINE float e4m3_to_float(uint8_t b) {
    int e = (b >> 3) & 15, f = b & 7;
    float v = (b & 0x7f) == 0x7f ? NAN : e ? ldexpf(8 + f, e - 10) : ldexpf(f, -9);
    return b & 0x80 ? -v : v;
}
KW_INLINE float e5m2_to_float(uint8_t b) { return half_to_float((uint16_t)(b << 8)); }
KW_INLINE uint32_t e4m3x2_f32(uint32_t a, uint32_t b) { return float_to_e4m3(as_f32(a)) << 8 | float_to_e4m3(as_f32(b)); }
KW_INLINE uint32_t e5m2x2_f32(uint32_t a, uint32_t b) { return float_to_e5m2(as_f32(a)) << 8 | float_to_e5m2(as_f32(b)); }
KW_INLINE uint32_t e4m3x2_f16x2(uint32_t a) { return float_to_e4m3(half_to_float(a >> 16)) << 8 | float_to_e4m3(half_to_float(a)); }
KW_INLINE uint32_t e5m2x2_f16x2(uint32_t a) { return float_to_e5m2(half_to_float(a >> 16)) << 8 | float_to_e5m2(half_to_float(a)); }
KW_INLINE uint32_t f16x2_e4m3x2(uint32_t a) { return (uint32_t)float_to_half(e4m3_to_float(a >> 8)) << 16 | float_to_half(e4m3_to_float(a)); }
KW_INLINE uint32_t f16x2_e5m2x2(uint32_t a) { return (uint32_t)(a >> 8 & 0xff) << 24 | (a & 0xff) << 8; }

// Integers.
KW_INLINE uint32_t div_u32(uint32_t a, uint32_t b) { return b ? a / b : ~0u; }
KW_INLINE uint32_t rem_u32(uint32_t a, uint32_t b) { return b ? a % b : a; }
KW_INLINE uint32_t div_s32(uint32_t a, uint32_t b) { return b ? (uint32_t)((int64_t)(int32_t)a / (int32_t)b) : ~0u; }
KW_INLINE uint32_t rem_s32(uint32_t a, uint32_t b) { return b ? (uint32_t)((int64_t)(int32_t)a % (int32_t)b) : a; }
KW_INLINE uint64_t div_u64(uint64_t a, uint64_t b) { return b ? a / b : ~0ull; }
KW_INLINE uint64_t rem_u64(uint64_t a, uint64_t b) { return b ? a % b : a; }
KW_INLINE uint64_t div_s64(uint64_t a, uint64_t b) { return !b ? ~0ull : b == ~0ull ? -a : (uint64_t)((int64_t)a / (int64_t)b); }
KW_INLINE uint64_t rem_s64(uint64_t a, uint64_t b) { return !b ? a : b == ~0ull ? 0 : (uint64_t)((int64_t)a % (int64_t)b); }
KW_INLINE uint16_t div_u16(uint16_t a, uint16_t b) { return b ? a / b : 0xffff; }
KW_INLINE uint16_t rem_u16(uint16_t a, uint16_t b) { return b ? a % b : a; }
KW_INLINE uint16_t div_s16(uint16_t a, uint16_t b) { return b ? (uint16_t)((int16_t)a / (int16_t)b) : 0xffff; }
KW_INLINE uint16_t rem_s16(uint16_t a, uint16_t b) { return b ? (uint16_t)((int16_t)a % (int16_t)b) : a; }
KW_INLINE uint64_t mulhi_u64(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
KW_INLINE uint64_t mulhi_s64(uint64_t a, uint64_t b) { return (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64); }
KW_INLINE uint32_t mulhi_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
KW_INLINE uint32_t mulhi_s32(uint32_t a, uint32_t b) { return (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32); }
KW_INLINE uint16_t mulhi_u16(uint16_t a, uint16_t b) { return (uint16_t)((uint32_t)a * b >> 16); }
KW_INLINE uint16_t mulhi_s16(uint16_t a, uint16_t b) { return (uint16_t)((int32_t)(int16_t)a * (int16_t)b >> 16); }
KW_INLINE uint32_t mul24_u32(uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); }
KW_INLINE uint32_t mul24_s32(uint32_t a, uint32_t b) { return (uint32_t)((int32_t)(a << 8) >> 8) * (uint32_t)((int32_t)(b << 8) >> 8); }
KW_INLINE uint32_t mul24hi_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 16); }
KW_INLINE uint32_t mul24hi_s32(uint32_t a, uint32_t b) { return (uint32_t)((int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8) >> 16); }
KW_INLINE uint32_t sad_u32(uint32_t a, uint32_t b, uint32_t c) { return c + (a < b ? b - a : a - b); }
KW_INLINE uint32_t sad_s32(uint32_t a, uint32_t b, uint32_t c) { return c + ((int32_t)a < (int32_t)b ? b - a : a - b); }
KW_INLINE uint32_t popc_32(uint32_t a) { return (uint32_t)__builtin_popcount(a); }
KW_INLINE uint64_t popc_64(uint64_t a) { return (uint64_t)__builtin_popcountll(a); }
KW_INLINE uint32_t clz_32(uint32_t a) { return a ? (uint32_t)__builtin_clz(a) : 32; }
KW_INLINE uint64_t clz_64(uint64_t a) { return a ? (uint64_t)__builtin_clzll(a) : 64; }
KW_INLINE uint32_t bfind_u32(uint32_t a) { return a ? 31 - (uint32_t)__builtin_clz(a) : ~0u; }
KW_INLINE uint32_t bfind_s32(uint32_t a) { return bfind_u32(a ^ (uint32_t)((int32_t)a >> 31)); }
KW_INLINE uint64_t bfind_u64(uint64_t a) { return a ? 63 - (uint64_t)__builtin_clzll(a) : 0xffffffffull; }
KW_INLINE uint64_t bfind_s64(uint64_t a) { return bfind_u64(a ^ (uint64_t)((int64_t)a >> 63)); }
KW_INLINE uint32_t bfindshift_u32(uint32_t a) { return a ? (uint32_t)__builtin_clz(a) : ~0u; }
KW_INLINE uint32_t bfindshift_s32(uint32_t a) { return bfindshift_u32(a ^ (uint32_t)((int32_t)a >> 31)); }
KW_INLINE uint32_t brev_32(uint32_t a) {
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(a);
}
KW_INLINE uint64_t brev_64(uint64_t a) { return (uint64_t)brev_32((uint32_t)a) << 32 | brev_32((uint32_t)(a >> 32)); }
KW_INLINE uint32_t bfe_u32(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t p = b & 255, n = c & 255;
    if (p > 31 || !n) return 0;
    return a >> p & (n > 31 ? ~0u : (1u << n) - 1);
}
KW_INLINE uint32_t bfe_s32(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t p = b & 255, n = c & 255;
    if (!n) return 0;
    uint32_t top = p + n - 1 > 31 ? 31 : p + n - 1;
    uint32_t sign = a >> top & 1, x = p > 31 ? 0 : a >> p & (n > 31 ? ~0u : (1u << n) - 1);
    uint32_t got = p > 31 ? 0 : (32 - p < n ? 32 - p : n);
    return sign && got < 32 ? x | ~0u << got : x;
}
KW_INLINE uint64_t bfe_u64(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t p = b & 255, n = c & 255;
    if (p > 63 || !n) return 0;
    return a >> p & (n > 63 ? ~0ull : (1ull << n) - 1);
}
KW_INLINE uint64_t bfe_s64(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t p = b & 255, n = c & 255;
    if (!n) return 0;
    uint64_t top = p + n - 1 > 63 ? 63 : p + n - 1;
    uint64_t sign = a >> top & 1, x = p > 63 ? 0 : a >> p & (n > 63 ? ~0ull : (1ull << n) - 1);
    uint64_t got = p > 63 ? 0 : (64 - p < n ? 64 - p : n);
    return sign && got < 64 ? x | ~0ull << got : x;
}
KW_INLINE uint32_t bfi_32(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    uint32_t p = c & 255, n = d & 255;
    if (p > 31 || !n) return b;
    uint32_t m = (n > 31 ? ~0u : (1u << n) - 1) << p;
    return (b & ~m) | (a << p & m);
}
KW_INLINE uint64_t bfi_64(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    uint64_t p = c & 255, n = d & 255;
    if (p > 63 || !n) return b;
    uint64_t m = (n > 63 ? ~0ull : (1ull << n) - 1) << p;
    return (b & ~m) | (a << p & m);
}
KW_INLINE uint32_t bmsk_clamp(uint32_t a, uint32_t b) {
    uint64_t m = (b > 31 ? 0xffffffffull : (1ull << b) - 1);
    return a > 31 ? 0 : (uint32_t)(m << a);
}
KW_INLINE uint32_t bmsk_wrap(uint32_t a, uint32_t b) { return (uint32_t)(((1ull << (b & 31)) - 1) << (a & 31)); }
KW_INLINE uint32_t szext_clamp_s32(uint32_t a, uint32_t b) { return b > 31 ? a : !b ? 0 : (uint32_t)((int32_t)(a << (32 - b)) >> (32 - b)); }
KW_INLINE uint32_t szext_clamp_u32(uint32_t a, uint32_t b) { return b > 31 ? a : a & ((1u << b) - 1); }
KW_INLINE uint32_t prmt_32(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t s = c >> (4 * i) & 15, byte = (uint32_t)(both >> (8 * (s & 7))) & 255;
        if (s & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}
KW_INLINE uint32_t shfl_wrap(uint32_t a, uint32_t b, uint32_t c) { return (uint32_t)(((uint64_t)b << 32 | a) << (c & 31) >> 32); }
KW_INLINE uint32_t shfr_wrap(uint32_t a, uint32_t b, uint32_t c) { return (uint32_t)(((uint64_t)b << 32 | a) >> (c & 31)); }
KW_INLINE uint32_t shfl_clamp(uint32_t a, uint32_t b, uint32_t c) { return c > 31 ? a : shfl_wrap(a, b, c); }
KW_INLINE uint32_t shfr_clamp(uint32_t a, uint32_t b, uint32_t c) { return c > 31 ? b : shfr_wrap(a, b, c); }
// Two halves of a with two bytes of b, its lower or its upper ones.
#define KW_DP2A(signs, half, byte) \
    KW_INLINE uint32_t dp2a_lo_##signs(uint32_t a, uint32_t b, uint32_t c) { for (int i = 0; i < 2; i++) c += (uint32_t)((half)(a >> 16 * i) * (int32_t)(byte)(b >> 8 * i)); return c; } \
    KW_INLINE uint32_t dp2a_hi_##signs(uint32_t a, uint32_t b, uint32_t c) { return dp2a_lo_##signs(a, b >> 16, c); }
KW_DP2A(ss, int16_t, int8_t)
KW_DP2A(su, int16_t, uint8_t)
KW_DP2A(us, uint16_t, int8_t)
KW_DP2A(uu, uint16_t, uint8_t)
KW_INLINE uint32_t dp4a_ss(uint32_t a, uint32_t b, uint32_t c) { for (int i = 0; i < 4; i++) c += (uint32_t)((int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i)); return c; }
KW_INLINE uint32_t dp4a_su(uint32_t a, uint32_t b, uint32_t c) { for (int i = 0; i < 4; i++) c += (uint32_t)((int8_t)(a >> 8 * i) * (int)(uint8_t)(b >> 8 * i)); return c; }
KW_INLINE uint32_t dp4a_us(uint32_t a, uint32_t b, uint32_t c) { return dp4a_su(b, a, c); }
KW_INLINE uint32_t dp4a_uu(uint32_t a, uint32_t b, uint32_t c) { for (int i = 0; i < 4; i++) c += (uint32_t)(uint8_t)(a >> 8 * i) * (uint8_t)(b >> 8 * i); return c; }
KW_INLINE uint32_t addsat_s32(uint32_t a, uint32_t b) { int32_t r; return __builtin_add_overflow((int32_t)a, (int32_t)b, &r) ? ((int32_t)a < 0 ? 0x80000000u : 0x7fffffffu) : (uint32_t)r; }
KW_INLINE uint32_t subsat_s32(uint32_t a, uint32_t b) { int32_t r; return __builtin_sub_overflow((int32_t)a, (int32_t)b, &r) ? ((int32_t)a < 0 ? 0x80000000u : 0x7fffffffu) : (uint32_t)r; }

// Floats whose rounding is not to nearest. A double holds a product of two floats; a sum is corrected by its exact error.
static inline float round_f32(double x, double error, int mode) {  // x + error is the exact value, |error| below half an ulp of x
    float f = (float)x;
    double left = (x - (double)f) + error;
    if (left == 0 || !(f == f) || isinf(f)) {
        if (isinf(f) && !isinf(x)) {
            bool down = (mode == 1) || (mode == 2 && f > 0) || (mode == 3 && f < 0);
            return down ? copysignf(0x1.fffffep127f, f) : f;
        }
        return f;
    }
    if (mode == 1) { if ((left > 0) != (f > 0 || (f == 0 && left > 0))) f = nextafterf(f, 0); }
    else if (mode == 2) { if (left < 0) f = nextafterf(f, -INFINITY); }
    else if (mode == 3) { if (left > 0) f = nextafterf(f, INFINITY); }
    return f;
}
static inline float add_round(float a, float b, int mode) {
    if (mode == 0) return a + b;
    double x = (double)a + b, t = x - a, e = (a - (x - t)) + (b - t);
    if (x == 0 && e == 0 && mode == 2 && (a != 0 || signbit(a) != signbit(b))) return -0.0f;
    return round_f32(x, isfinite(x) ? e : 0, mode);
}
static inline float mul_round(float a, float b, int mode) { return mode == 0 ? a * b : round_f32((double)a * b, 0, mode); }
static inline float fma_round(float a, float b, float c, int mode) {
    if (mode == 0) return fmaf(a, b, c);
    double p = (double)a * b, x = p + c, t = x - p, e = (p - (x - t)) + (c - t);
    return round_f32(x, isfinite(x) ? e : 0, mode);
}
static inline float div_round(float a, float b, int mode) {
    float q = a / b;
    if (mode == 0 || !isfinite(q) || !isfinite(b) || b == 0) return q;
    double left = fma(-(double)q, (double)b, (double)a) / b;
    return left == 0 ? q : round_f32((double)q, left, mode);
}
static inline float sqrt_round(float a, int mode) {
    float q = sqrtf(a);
    if (mode == 0 || !isfinite(q) || q == 0) return q;
    double left = fma(-(double)q, (double)q, (double)a);
    return left == 0 ? q : round_f32((double)q, left / (2.0 * q), mode);
}

// Conversions of floats to integers: clamped, NaN to zero (PTX); mode 0 nearest even, 1 to zero, 2 down, 3 up.
KW_INLINE double to_whole(double x, int mode) { return mode == 0 ? nearbyint(x) : mode == 1 ? trunc(x) : mode == 2 ? floor(x) : ceil(x); }
template <class T> KW_INLINE T to_integer(double x, int mode, double low, double high, T least, T most) {
    if (!(x == x)) return 0;
    x = to_whole(x, mode);
    return x <= low ? least : x >= high ? most : (T)x;
}
KW_INLINE uint32_t f64_s32(double x, int mode) { return (uint32_t)to_integer<int32_t>(x, mode, -0x1p31, 0x1p31 - 1, INT32_MIN, INT32_MAX); }
KW_INLINE uint32_t f64_u32(double x, int mode) { return to_integer<uint32_t>(x, mode, 0, 0x1p32 - 1, 0, UINT32_MAX); }
KW_INLINE uint64_t f64_s64(double x, int mode) { return !(x == x) ? 0x8000000000000000ull : (uint64_t)to_integer<int64_t>(x, mode, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX); }
KW_INLINE uint64_t f64_u64(double x, int mode) { return !(x == x) ? 0x8000000000000000ull : to_integer<uint64_t>(x, mode, 0, 0x1p64, 0, UINT64_MAX); }
