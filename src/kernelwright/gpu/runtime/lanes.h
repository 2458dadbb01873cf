// Instructions on vectors of lanes, and the same names on scalars for values that are equal in all lanes. What is hot is
// inline, with AVX-512 where it is there; the rest is a call of `lanes.cpp`.
#pragma once
#include "scalar.h"
#ifdef __AVX512F__
#include <immintrin.h>
#define KW512 1
#endif

typedef uint32_t u32h __attribute__((vector_size(32)));
typedef int32_t i32h __attribute__((vector_size(32)));
typedef uint16_t u16h __attribute__((vector_size(32)));
typedef int16_t i16h __attribute__((vector_size(32)));
typedef float f32h __attribute__((vector_size(32)));

KW_INLINE u16 b16(uint16_t x) { return (u16){} + x; }
KW_INLINE u32 b32(uint32_t x) { return (u32){} + x; }
KW_INLINE u64 b64(uint64_t x) { return (u64){} + x; }

// Halves of a vector, widened; two vectors, narrowed to one.
KW_INLINE u32h low_half(u32 x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7); }
KW_INLINE u32h high_half(u32 x) { return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15); }
KW_INLINE u16h low_half(u16 x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
KW_INLINE u16h high_half(u16 x) { return __builtin_shufflevector(x, x, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31); }
KW_INLINE u64 zx64l(u32 x) { return __builtin_convertvector(low_half(x), u64); }
KW_INLINE u64 zx64h(u32 x) { return __builtin_convertvector(high_half(x), u64); }
KW_INLINE u64 sx64l(u32 x) { return (u64)__builtin_convertvector((i32h)low_half(x), i64); }
KW_INLINE u64 sx64h(u32 x) { return (u64)__builtin_convertvector((i32h)high_half(x), i64); }
KW_INLINE u32 zx32l(u16 x) { return __builtin_convertvector(low_half(x), u32); }
KW_INLINE u32 zx32h(u16 x) { return __builtin_convertvector(high_half(x), u32); }
KW_INLINE u32 sx32l(u16 x) { return (u32)__builtin_convertvector((i16h)low_half(x), i32); }
KW_INLINE u32 sx32h(u16 x) { return (u32)__builtin_convertvector((i16h)high_half(x), i32); }
KW_INLINE u32 join(u32h a, u32h b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
KW_INLINE u32 tr32(u64 a, u64 b) { return join(__builtin_convertvector(a, u32h), __builtin_convertvector(b, u32h)); }
KW_INLINE u16 tr16(u32 a, u32 b) {
    u16h x = __builtin_convertvector(a, u16h), y = __builtin_convertvector(b, u16h);
    return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                   29, 30, 31);
}

// Select by the low bits of a mask.
#ifdef KW512
KW_INLINE u32 sel(uint32_t m, u32 a, u32 b) { return (u32)_mm512_mask_blend_epi32((__mmask16)m, (__m512i)b, (__m512i)a); }
KW_INLINE u64 sel(uint32_t m, u64 a, u64 b) { return (u64)_mm512_mask_blend_epi64((__mmask8)m, (__m512i)b, (__m512i)a); }
KW_INLINE u16 sel(uint32_t m, u16 a, u16 b) { return (u16)_mm512_mask_blend_epi16((__mmask32)m, (__m512i)b, (__m512i)a); }
#else
KW_INLINE u32 sel(uint32_t m, u32 a, u32 b) {
    const u32 bit = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    u32 t = (u32)((b32(m) & bit) != 0);
    return (a & t) | (b & ~t);
}
KW_INLINE u64 sel(uint32_t m, u64 a, u64 b) {
    const u64 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    u64 t = (u64)((b64(m) & bit) != 0);
    return (a & t) | (b & ~t);
}
KW_INLINE u16 sel(uint32_t m, u16 a, u16 b) {
    u16 r;
    for (int i = 0; i < 32; i++) r[i] = m >> i & 1 ? a[i] : b[i];
    return r;
}
#endif
KW_INLINE uint16_t sel(uint32_t m, uint16_t a, uint16_t b) { return m ? a : b; }
KW_INLINE uint32_t sel(uint32_t m, uint32_t a, uint32_t b) { return m ? a : b; }
KW_INLINE uint64_t sel(uint32_t m, uint64_t a, uint64_t b) { return m ? a : b; }

// Comparisons: a mask of 32 lanes out of all vectors of both sides; all or no bits for scalars.
#ifdef KW512
#define KW_CMP_I(name, op, P)                                                                                                              \
    KW_INLINE uint32_t name##_u32(u32 a, u32 b, u32 c, u32 d) { return (uint32_t)_mm512_cmp_epu32_mask((__m512i)a, (__m512i)c, P) | (uint32_t)_mm512_cmp_epu32_mask((__m512i)b, (__m512i)d, P) << 16; } \
    KW_INLINE uint32_t name##_s32(u32 a, u32 b, u32 c, u32 d) { return (uint32_t)_mm512_cmp_epi32_mask((__m512i)a, (__m512i)c, P) | (uint32_t)_mm512_cmp_epi32_mask((__m512i)b, (__m512i)d, P) << 16; } \
    KW_INLINE uint32_t name##_u16(u16 a, u16 b) { return _mm512_cmp_epu16_mask((__m512i)a, (__m512i)b, P); }                               \
    KW_INLINE uint32_t name##_s16(u16 a, u16 b) { return _mm512_cmp_epi16_mask((__m512i)a, (__m512i)b, P); }                               \
    KW_INLINE uint32_t name##_u64(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { return (uint32_t)_mm512_cmp_epu64_mask((__m512i)a, (__m512i)e, P) | (uint32_t)_mm512_cmp_epu64_mask((__m512i)b, (__m512i)f, P) << 8 | (uint32_t)_mm512_cmp_epu64_mask((__m512i)c, (__m512i)g, P) << 16 | (uint32_t)_mm512_cmp_epu64_mask((__m512i)d, (__m512i)h, P) << 24; } \
    KW_INLINE uint32_t name##_s64(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { return (uint32_t)_mm512_cmp_epi64_mask((__m512i)a, (__m512i)e, P) | (uint32_t)_mm512_cmp_epi64_mask((__m512i)b, (__m512i)f, P) << 8 | (uint32_t)_mm512_cmp_epi64_mask((__m512i)c, (__m512i)g, P) << 16 | (uint32_t)_mm512_cmp_epi64_mask((__m512i)d, (__m512i)h, P) << 24; }
#define KW_CMP_F(name, expression, P)                                                                                                      \
    KW_INLINE uint32_t name##_f32(u32 a, u32 b, u32 c, u32 d) { return (uint32_t)_mm512_cmp_ps_mask((__m512)a, (__m512)c, P) | (uint32_t)_mm512_cmp_ps_mask((__m512)b, (__m512)d, P) << 16; } \
    KW_INLINE uint32_t name##_f64(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { return (uint32_t)_mm512_cmp_pd_mask((__m512d)a, (__m512d)e, P) | (uint32_t)_mm512_cmp_pd_mask((__m512d)b, (__m512d)f, P) << 8 | (uint32_t)_mm512_cmp_pd_mask((__m512d)c, (__m512d)g, P) << 16 | (uint32_t)_mm512_cmp_pd_mask((__m512d)d, (__m512d)h, P) << 24; }
#else
#define KW_CMP_I(name, op, P)                                                                                                              \
    KW_INLINE uint32_t name##_u32(u32 a, u32 b, u32 c, u32 d) { uint32_t r = 0; for (int i = 0; i < 16; i++) r |= (uint32_t)(a[i] op c[i]) << i | (uint32_t)(b[i] op d[i]) << (i + 16); return r; } \
    KW_INLINE uint32_t name##_s32(u32 a, u32 b, u32 c, u32 d) { uint32_t r = 0; for (int i = 0; i < 16; i++) r |= (uint32_t)((int32_t)a[i] op (int32_t)c[i]) << i | (uint32_t)((int32_t)b[i] op (int32_t)d[i]) << (i + 16); return r; } \
    KW_INLINE uint32_t name##_u16(u16 a, u16 b) { uint32_t r = 0; for (int i = 0; i < 32; i++) r |= (uint32_t)(a[i] op b[i]) << i; return r; } \
    KW_INLINE uint32_t name##_s16(u16 a, u16 b) { uint32_t r = 0; for (int i = 0; i < 32; i++) r |= (uint32_t)((int16_t)a[i] op (int16_t)b[i]) << i; return r; } \
    KW_INLINE uint32_t name##_u64(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { uint32_t r = 0; for (int i = 0; i < 8; i++) r |= (uint32_t)(a[i] op e[i]) << i | (uint32_t)(b[i] op f[i]) << (i + 8) | (uint32_t)(c[i] op g[i]) << (i + 16) | (uint32_t)(d[i] op h[i]) << (i + 24); return r; } \
    KW_INLINE uint32_t name##_s64(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { uint32_t r = 0; for (int i = 0; i < 8; i++) r |= (uint32_t)((int64_t)a[i] op (int64_t)e[i]) << i | (uint32_t)((int64_t)b[i] op (int64_t)f[i]) << (i + 8) | (uint32_t)((int64_t)c[i] op (int64_t)g[i]) << (i + 16) | (uint32_t)((int64_t)d[i] op (int64_t)h[i]) << (i + 24); return r; }
#define KW_CMP_F(name, expression, P)                                                                                                      \
    KW_INLINE uint32_t name##_f32(u32 a, u32 b, u32 c, u32 d) { uint32_t r = 0; for (int i = 0; i < 32; i++) { float x = as_f32(i < 16 ? a[i & 15] : b[i & 15]), y = as_f32(i < 16 ? c[i & 15] : d[i & 15]); r |= (uint32_t)(expression) << i; } return r; } \
    KW_INLINE uint32_t name##_f64(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { u64 l[4] = {a, b, c, d}, m[4] = {e, f, g, h}; uint32_t r = 0; for (int i = 0; i < 32; i++) { double x = as_f64(l[i >> 3][i & 7]), y = as_f64(m[i >> 3][i & 7]); r |= (uint32_t)(expression) << i; } return r; }
#endif
#define KW_CMP_SI(name, op)                                                                                                                \
    KW_INLINE uint32_t name##_u16(uint16_t a, uint16_t b) { return a op b ? ~0u : 0; }                                                     \
    KW_INLINE uint32_t name##_s16(uint16_t a, uint16_t b) { return (int16_t)a op (int16_t)b ? ~0u : 0; }                                   \
    KW_INLINE uint32_t name##_u32(uint32_t a, uint32_t b) { return a op b ? ~0u : 0; }                                                     \
    KW_INLINE uint32_t name##_s32(uint32_t a, uint32_t b) { return (int32_t)a op (int32_t)b ? ~0u : 0; }                                   \
    KW_INLINE uint32_t name##_u64(uint64_t a, uint64_t b) { return a op b ? ~0u : 0; }                                                     \
    KW_INLINE uint32_t name##_s64(uint64_t a, uint64_t b) { return (int64_t)a op (int64_t)b ? ~0u : 0; }
#define KW_CMP_SF(name, expression)                                                                                                        \
    KW_INLINE uint32_t name##_f32(uint32_t a, uint32_t b) { float x = as_f32(a), y = as_f32(b); return (expression) ? ~0u : 0; }           \
    KW_INLINE uint32_t name##_f64(uint64_t a, uint64_t b) { double x = as_f64(a), y = as_f64(b); return (expression) ? ~0u : 0; }
#define KW_FOR_INT_COMPARES(X) X(eq, ==, 0) X(ne, !=, 4) X(lt, <, 1) X(le, <=, 2) X(gt, >, 6) X(ge, >=, 5)
#define KW_FOR_FLOAT_COMPARES(X)                                                                                                           \
    X(eq, x == y, 0) X(ne, x < y || x > y, 12) X(lt, x < y, 17) X(le, x <= y, 18) X(gt, x > y, 30) X(ge, x >= y, 29)                       \
    X(equ, !(x < y || x > y), 8) X(neu, x != y, 4) X(ltu, !(x >= y), 25) X(leu, !(x > y), 26) X(gtu, !(x <= y), 22) X(geu, !(x < y), 21)    \
    X(num, x == x && y == y, 7) X(nan, x != x || y != y, 3)
#define KW_X(name, op, P) KW_CMP_I(name, op, P) KW_CMP_SI(name, op)
KW_FOR_INT_COMPARES(KW_X)
#undef KW_X
#define KW_X(name, e, P) KW_CMP_F(name, e, P) KW_CMP_SF(name, e)
KW_FOR_FLOAT_COMPARES(KW_X)
#undef KW_X

// Integer arithmetic. Shifts by the width or more give zero (or the sign).
#define KW_BOTH(U, S, name, args, call, expression) KW_INLINE U name args(U) { return (U)(expression); } KW_INLINE S name args(S) { return (S)(expression); }
#define KW_A2(T) (T a, T b)
#define KW_A1(T) (T a)
#define KW_A3(T) (T a, T b, T c)
#define KW_INT(w)                                                                                                                          \
    KW_BOTH(u##w, uint##w##_t, add_##w, KW_A2, , a + b)                                                                                    \
    KW_BOTH(u##w, uint##w##_t, sub_##w, KW_A2, , a - b)                                                                                    \
    KW_BOTH(u##w, uint##w##_t, mul_##w, KW_A2, , a * b)                                                                                    \
    KW_BOTH(u##w, uint##w##_t, and_##w, KW_A2, , a & b)                                                                                    \
    KW_BOTH(u##w, uint##w##_t, or_##w, KW_A2, , a | b)                                                                                     \
    KW_BOTH(u##w, uint##w##_t, xor_##w, KW_A2, , a ^ b)                                                                                    \
    KW_BOTH(u##w, uint##w##_t, not_##w, KW_A1, , ~a)                                                                                       \
    KW_BOTH(u##w, uint##w##_t, neg_##w, KW_A1, , -a)                                                                                       \
    KW_INLINE u##w cnot_##w(u##w a) { return (u##w)(a == 0) & 1; }                                                                         \
    KW_INLINE uint##w##_t cnot_##w(uint##w##_t a) { return !a; }                                                                           \
    KW_INLINE uint##w##_t abs_##w(uint##w##_t a) { return (int##w##_t)a < 0 ? -a : a; }                                                    \
    KW_INLINE u##w abs_##w(u##w a) { u##w s = (u##w)((i##w)a >> (w - 1)); return (a ^ s) - s; }                                            \
    KW_INLINE uint##w##_t min_u##w(uint##w##_t a, uint##w##_t b) { return a < b ? a : b; }                                                 \
    KW_INLINE uint##w##_t max_u##w(uint##w##_t a, uint##w##_t b) { return a > b ? a : b; }                                                 \
    KW_INLINE uint##w##_t min_s##w(uint##w##_t a, uint##w##_t b) { return (int##w##_t)a < (int##w##_t)b ? a : b; }                         \
    KW_INLINE uint##w##_t max_s##w(uint##w##_t a, uint##w##_t b) { return (int##w##_t)a > (int##w##_t)b ? a : b; }                         \
    KW_INLINE u##w min_u##w(u##w a, u##w b) { return a < b ? a : b; }                                                                      \
    KW_INLINE u##w max_u##w(u##w a, u##w b) { return a > b ? a : b; }                                                                      \
    KW_INLINE u##w min_s##w(u##w a, u##w b) { return (i##w)a < (i##w)b ? a : b; }                                                          \
    KW_INLINE u##w max_s##w(u##w a, u##w b) { return (i##w)a > (i##w)b ? a : b; }                                                          \
    KW_INLINE uint##w##_t shl_##w(uint##w##_t a, uint32_t b) { return b < w ? (uint##w##_t)(a << b) : 0; }                                 \
    KW_INLINE uint##w##_t shr_u##w(uint##w##_t a, uint32_t b) { return b < w ? (uint##w##_t)(a >> b) : 0; }                                \
    KW_INLINE uint##w##_t shr_s##w(uint##w##_t a, uint32_t b) { return (uint##w##_t)((int##w##_t)a >> (b < w ? b : w - 1)); }              \
    KW_INLINE u##w shli_##w(u##w a, int b) { return a << b; }                                                                              \
    KW_INLINE u##w shri_u##w(u##w a, int b) { return a >> b; }                                                                             \
    KW_INLINE u##w shri_s##w(u##w a, int b) { return (u##w)((i##w)a >> b); }                                                               \
    KW_INLINE uint##w##_t shli_##w(uint##w##_t a, int b) { return (uint##w##_t)(a << b); }                                                 \
    KW_INLINE uint##w##_t shri_u##w(uint##w##_t a, int b) { return (uint##w##_t)(a >> b); }                                                \
    KW_INLINE uint##w##_t shri_s##w(uint##w##_t a, int b) { return (uint##w##_t)((int##w##_t)a >> b); }                                    \
    KW_INLINE u##w shl_##w(u##w a, u##w b) { return (a << (b & (w - 1))) & (u##w)(b < w); }                                                \
    KW_INLINE u##w shr_u##w(u##w a, u##w b) { return (a >> (b & (w - 1))) & (u##w)(b < w); }                                               \
    KW_INLINE u##w shr_s##w(u##w a, u##w b) { return (u##w)((i##w)a >> (i##w)(b < w ? b : (b - b + (w - 1)))); }
KW_INT(16) KW_INT(32) KW_INT(64)
KW_INLINE uint64_t mulwide_u32(uint32_t a, uint32_t b) { return (uint64_t)a * b; }
KW_INLINE uint64_t mulwide_s32(uint32_t a, uint32_t b) { return (uint64_t)((int64_t)(int32_t)a * (int32_t)b); }
KW_INLINE uint32_t mulwide_u16(uint16_t a, uint16_t b) { return (uint32_t)a * b; }
KW_INLINE uint32_t mulwide_s16(uint16_t a, uint16_t b) { return (uint32_t)((int32_t)(int16_t)a * (int16_t)b); }
// Products of 64-bit lanes whose upper halves are only a sign or zero.
#ifdef KW512
KW_INLINE u64 mul64_u32(u64 a, u64 b) { return (u64)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
KW_INLINE u64 mul64_s32(u64 a, u64 b) { return (u64)_mm512_mul_epi32((__m512i)a, (__m512i)b); }
#else
KW_INLINE u64 mul64_u32(u64 a, u64 b) { return a * b; }
KW_INLINE u64 mul64_s32(u64 a, u64 b) { return a * b; }
#endif
#define KW_LOP3(T) KW_INLINE T lop3(T a, T b, T c, int table) {                                                                            \
    T r = a ^ a;                                                                                                                           \
    if (table & 1) r |= ~a & ~b & ~c; if (table & 2) r |= ~a & ~b & c; if (table & 4) r |= ~a & b & ~c; if (table & 8) r |= ~a & b & c;    \
    if (table & 16) r |= a & ~b & ~c; if (table & 32) r |= a & ~b & c; if (table & 64) r |= a & b & ~c; if (table & 128) r |= a & b & c;   \
    return r; }
KW_LOP3(uint32_t)
#ifdef KW512
#define lop3_32(a, b, c, table) lop3v<table>(a, b, c)
template <int T> KW_INLINE u32 lop3v(u32 a, u32 b, u32 c) { return (u32)_mm512_ternarylogic_epi32((__m512i)a, (__m512i)b, (__m512i)c, T); }
template <int T> KW_INLINE uint32_t lop3v(uint32_t a, uint32_t b, uint32_t c) { return lop3(a, b, c, T); }
#else
KW_LOP3(u32)
#define lop3_32(a, b, c, table) lop3(a, b, c, table)
#endif

// Floats, on bits.
#define KW_FLOAT2(name, op)                                                                                                                \
    KW_INLINE u32 name##_f32(u32 a, u32 b) { return (u32)((f32)a op (f32)b); }                                                             \
    KW_INLINE uint32_t name##_f32(uint32_t a, uint32_t b) { return bits_of(as_f32(a) op as_f32(b)); }                                      \
    KW_INLINE u64 name##_f64(u64 a, u64 b) { return (u64)((f64)a op (f64)b); }                                                             \
    KW_INLINE uint64_t name##_f64(uint64_t a, uint64_t b) { return bits_of(as_f64(a) op as_f64(b)); }
KW_FLOAT2(add, +) KW_FLOAT2(sub, -) KW_FLOAT2(mul, *) KW_FLOAT2(div, /)
KW_INLINE uint32_t fma_f32(uint32_t a, uint32_t b, uint32_t c) { return bits_of(__builtin_fmaf(as_f32(a), as_f32(b), as_f32(c))); }
KW_INLINE uint64_t fma_f64(uint64_t a, uint64_t b, uint64_t c) { return bits_of(__builtin_fma(as_f64(a), as_f64(b), as_f64(c))); }
KW_BOTH(u32, uint32_t, abs_f32, KW_A1, , a & 0x7fffffffu)
KW_BOTH(u32, uint32_t, neg_f32, KW_A1, , a ^ 0x80000000u)
KW_BOTH(u64, uint64_t, abs_f64, KW_A1, , a & 0x7fffffffffffffffull)
KW_BOTH(u64, uint64_t, neg_f64, KW_A1, , a ^ 0x8000000000000000ull)
KW_BOTH(u32, uint32_t, copysign_f32, KW_A2, , (b & 0x7fffffffu) | (a & 0x80000000u))
KW_BOTH(u64, uint64_t, copysign_f64, KW_A2, , (b & 0x7fffffffffffffffull) | (a & 0x8000000000000000ull))
KW_INLINE float min_one(float x, float y) { return x != x ? y : y != y ? x : x == y ? (signbit(x) ? x : y) : x < y ? x : y; }
KW_INLINE float max_one(float x, float y) { return x != x ? y : y != y ? x : x == y ? (signbit(x) ? y : x) : x > y ? x : y; }
KW_INLINE double min_one(double x, double y) { return x != x ? y : y != y ? x : x == y ? (signbit(x) ? x : y) : x < y ? x : y; }
KW_INLINE double max_one(double x, double y) { return x != x ? y : y != y ? x : x == y ? (signbit(x) ? y : x) : x > y ? x : y; }
KW_INLINE uint32_t min_f32(uint32_t a, uint32_t b) { return bits_of(min_one(as_f32(a), as_f32(b))); }
KW_INLINE uint32_t max_f32(uint32_t a, uint32_t b) { return bits_of(max_one(as_f32(a), as_f32(b))); }
KW_INLINE uint64_t min_f64(uint64_t a, uint64_t b) { return bits_of(min_one(as_f64(a), as_f64(b))); }
KW_INLINE uint64_t max_f64(uint64_t a, uint64_t b) { return bits_of(max_one(as_f64(a), as_f64(b))); }
KW_INLINE uint32_t ftz(uint32_t a) { return a & 0x7f800000u ? a : a & 0x80000000u; }
KW_INLINE uint32_t sqrt_f32(uint32_t a) { return bits_of(sqrtf(as_f32(a))); }
KW_INLINE uint64_t sqrt_f64(uint64_t a) { return bits_of(sqrt(as_f64(a))); }
KW_INLINE uint32_t sat_f32(uint32_t a) { float x = as_f32(a); return x > 0 ? (x < 1 ? a : 0x3f800000u) : 0; }
KW_INLINE uint64_t sat_f64(uint64_t a) { double x = as_f64(a); return x > 0 ? (x < 1 ? a : bits_of(1.0)) : 0; }
KW_INLINE uint32_t f32_s32(uint32_t a) { return bits_of((float)(int32_t)a); }
KW_INLINE uint32_t f32_u32(uint32_t a) { return bits_of((float)a); }
KW_INLINE u32 f32_s32(u32 a) { return (u32)__builtin_convertvector((i32)a, f32); }
KW_INLINE u32 f32_u32(u32 a) { return (u32)__builtin_convertvector(a, f32); }
KW_INLINE uint64_t f64_of_s64(uint64_t a) { return bits_of((double)(int64_t)a); }
KW_INLINE uint64_t f64_of_u64(uint64_t a) { return bits_of((double)a); }
KW_INLINE u64 f64_of_s64(u64 a) { return (u64)__builtin_convertvector((i64)a, f64); }
KW_INLINE u64 f64_of_u64(u64 a) { return (u64)__builtin_convertvector(a, f64); }
KW_INLINE uint64_t f64_of_f32(uint32_t a) { return bits_of((double)as_f32(a)); }
KW_INLINE u64 f64_of_f32l(u32 a) { return (u64)__builtin_convertvector((f32h)low_half(a), f64); }
KW_INLINE u64 f64_of_f32h(u32 a) { return (u64)__builtin_convertvector((f32h)high_half(a), f64); }
KW_INLINE uint32_t f32_of_f64(uint64_t a) { return bits_of((float)as_f64(a)); }
KW_INLINE u32 f32_of_f64(u64 a, u64 b) { return join((u32h)__builtin_convertvector((f64)a, f32h), (u32h)__builtin_convertvector((f64)b, f32h)); }
#ifdef KW512
KW_INLINE u32 fma_f32(u32 a, u32 b, u32 c) { return (u32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
KW_INLINE u64 fma_f64(u64 a, u64 b, u64 c) { return (u64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
// Minimum by IEEE 754: a number wins over a NaN, -0 below +0.
KW_INLINE u32 min_f32(u32 a, u32 b) { return (u32)_mm512_range_ps((__m512)a, (__m512)b, 4); }
KW_INLINE u32 max_f32(u32 a, u32 b) { return (u32)_mm512_range_ps((__m512)a, (__m512)b, 5); }
KW_INLINE u64 min_f64(u64 a, u64 b) { return (u64)_mm512_range_pd((__m512d)a, (__m512d)b, 4); }
KW_INLINE u64 max_f64(u64 a, u64 b) { return (u64)_mm512_range_pd((__m512d)a, (__m512d)b, 5); }
KW_INLINE u32 sqrt_f32(u32 a) { return (u32)_mm512_sqrt_ps((__m512)a); }
KW_INLINE u64 sqrt_f64(u64 a) { return (u64)_mm512_sqrt_pd((__m512d)a); }
KW_INLINE u32 ftz(u32 a) {
    __mmask16 normal = _mm512_test_epi32_mask((__m512i)a, _mm512_set1_epi32(0x7f800000));
    return (u32)_mm512_mask_and_epi32((__m512i)a, (__mmask16)~normal, (__m512i)a, _mm512_set1_epi32((int)0x80000000));
}
KW_INLINE u32 f32_of_f16l(u16 a) { return (u32)_mm512_cvtph_ps((__m256i)low_half(a)); }
KW_INLINE u32 f32_of_f16h(u16 a) { return (u32)_mm512_cvtph_ps((__m256i)high_half(a)); }
KW_INLINE u16h half_vector(u32 a) {
    u16h h = (u16h)_mm512_cvtps_ph((__m512)a, 0);
    return (u16h)_mm256_mask_set1_epi16((__m256i)h, _mm512_cmp_ps_mask((__m512)a, (__m512)a, 3), 0x7fff);
}
KW_INLINE u32 to_s32(u32 a, int mode) {
    __m512 x = (__m512)a;
    x = mode == 0 ? _mm512_roundscale_ps(x, 8) : mode == 1 ? x : mode == 2 ? _mm512_roundscale_ps(x, 9) : _mm512_roundscale_ps(x, 10);
    __m512i r = _mm512_maskz_cvttps_epi32(_mm512_cmp_ps_mask(x, x, 7), x);
    return (u32)_mm512_mask_set1_epi32(r, _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p31f), 29), 0x7fffffff);
}
#else
#define KW_LANES(T, n, e) T r; for (int i = 0; i < n; i++) r[i] = e; return r;
KW_INLINE u32 fma_f32(u32 a, u32 b, u32 c) { KW_LANES(u32, 16, fma_f32(a[i], b[i], c[i])) }
KW_INLINE u64 fma_f64(u64 a, u64 b, u64 c) { KW_LANES(u64, 8, fma_f64(a[i], b[i], c[i])) }
KW_INLINE u32 min_f32(u32 a, u32 b) { KW_LANES(u32, 16, min_f32(a[i], b[i])) }
KW_INLINE u32 max_f32(u32 a, u32 b) { KW_LANES(u32, 16, max_f32(a[i], b[i])) }
KW_INLINE u64 min_f64(u64 a, u64 b) { KW_LANES(u64, 8, min_f64(a[i], b[i])) }
KW_INLINE u64 max_f64(u64 a, u64 b) { KW_LANES(u64, 8, max_f64(a[i], b[i])) }
KW_INLINE u32 sqrt_f32(u32 a) { KW_LANES(u32, 16, sqrt_f32(a[i])) }
KW_INLINE u64 sqrt_f64(u64 a) { KW_LANES(u64, 8, sqrt_f64(a[i])) }
KW_INLINE u32 ftz(u32 a) { KW_LANES(u32, 16, ftz(a[i])) }
KW_INLINE u32 f32_of_f16l(u16 a) { KW_LANES(u32, 16, bits_of(half_to_float(a[i]))) }
KW_INLINE u32 f32_of_f16h(u16 a) { KW_LANES(u32, 16, bits_of(half_to_float(a[i + 16]))) }
KW_INLINE u16h half_vector(u32 a) { KW_LANES(u16h, 16, float_to_half(as_f32(a[i]))) }
KW_INLINE u32 to_s32(u32 a, int mode) { KW_LANES(u32, 16, f64_s32(as_f32(a[i]), mode)) }
#endif
KW_INLINE uint32_t to_s32(uint32_t a, int mode) { return f64_s32(as_f32(a), mode); }
KW_INLINE uint32_t f32_of_f16(uint16_t a) { return bits_of(half_to_float(a)); }
KW_INLINE uint32_t f32_of_bf16(uint16_t a) { return (uint32_t)a << 16; }
KW_INLINE u32 f32_of_bf16l(u16 a) { return zx32l(a) << 16; }
KW_INLINE u32 f32_of_bf16h(u16 a) { return zx32h(a) << 16; }
KW_INLINE u16h bf16_vector(u32 a) {
    u32 r = (a + 0x7fff + ((a >> 16) & 1)) >> 16;
    u32 nan = (u32)((a & 0x7fffffffu) > 0x7f800000u);
    return __builtin_convertvector((r & ~nan) | (nan & 0x7fff), u16h);
}
KW_INLINE u16 join(u16h x, u16h y) {
    return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                   29, 30, 31);
}
KW_INLINE u16 f16_of_f32(u32 a, u32 b) { return join(half_vector(a), half_vector(b)); }
KW_INLINE u16 bf16_of_f32(u32 a, u32 b) { return join(bf16_vector(a), bf16_vector(b)); }
KW_INLINE uint16_t f16_of_f32(uint32_t a) { return float_to_half(as_f32(a)); }
KW_INLINE uint16_t bf16_of_f32(uint32_t a) { return float_to_bf16(as_f32(a)); }
KW_INLINE u32 f16x2_of_f32(u32 hi, u32 lo) { return __builtin_convertvector(half_vector(hi), u32) << 16 | __builtin_convertvector(half_vector(lo), u32); }
KW_INLINE u32 bf16x2_of_f32(u32 hi, u32 lo) { return __builtin_convertvector(bf16_vector(hi), u32) << 16 | __builtin_convertvector(bf16_vector(lo), u32); }
KW_INLINE uint32_t f16x2_of_f32(uint32_t hi, uint32_t lo) { return (uint32_t)f16_of_f32(hi) << 16 | f16_of_f32(lo); }
KW_INLINE uint32_t bf16x2_of_f32(uint32_t hi, uint32_t lo) { return (uint32_t)bf16_of_f32(hi) << 16 | bf16_of_f32(lo); }

#include "lane_calls.h"
