// Instructions whose vector form is a call of `lanes.cpp`: a loop over the scalar form, or a polynomial.
#pragma once

// name, vector, scalar, lanes, number of operands
#define KW_LANE_CALLS(X)                                                                                                                   \
    X(div_u32, u32, uint32_t, 2) X(rem_u32, u32, uint32_t, 2) X(div_s32, u32, uint32_t, 2) X(rem_s32, u32, uint32_t, 2)                    \
    X(div_u64, u64, uint64_t, 2) X(rem_u64, u64, uint64_t, 2) X(div_s64, u64, uint64_t, 2) X(rem_s64, u64, uint64_t, 2)                    \
    X(div_u16, u16, uint16_t, 2) X(rem_u16, u16, uint16_t, 2) X(div_s16, u16, uint16_t, 2) X(rem_s16, u16, uint16_t, 2)                    \
    X(mulhi_u64, u64, uint64_t, 2) X(mulhi_s64, u64, uint64_t, 2) X(mulhi_u32, u32, uint32_t, 2) X(mulhi_s32, u32, uint32_t, 2)            \
    X(mulhi_u16, u16, uint16_t, 2) X(mulhi_s16, u16, uint16_t, 2) X(mul24_u32, u32, uint32_t, 2) X(mul24_s32, u32, uint32_t, 2)            \
    X(mul24hi_u32, u32, uint32_t, 2) X(mul24hi_s32, u32, uint32_t, 2) X(sad_u32, u32, uint32_t, 3) X(sad_s32, u32, uint32_t, 3)            \
    X(popc_32, u32, uint32_t, 1) X(popc_64, u64, uint64_t, 1) X(clz_32, u32, uint32_t, 1) X(clz_64, u64, uint64_t, 1)                      \
    X(bfind_u32, u32, uint32_t, 1) X(bfind_s32, u32, uint32_t, 1) X(bfind_u64, u64, uint64_t, 1) X(bfind_s64, u64, uint64_t, 1)            \
    X(bfindshift_u32, u32, uint32_t, 1) X(bfindshift_s32, u32, uint32_t, 1)                                                                \
    X(brev_32, u32, uint32_t, 1) X(brev_64, u64, uint64_t, 1) X(bfe_u32, u32, uint32_t, 3) X(bfe_s32, u32, uint32_t, 3)                    \
    X(bfe_u64, u64, uint64_t, 3) X(bfe_s64, u64, uint64_t, 3) X(bfi_32, u32, uint32_t, 4) X(bfi_64, u64, uint64_t, 4)                      \
    X(bmsk_clamp, u32, uint32_t, 2) X(bmsk_wrap, u32, uint32_t, 2) X(szext_clamp_u32, u32, uint32_t, 2)                                    \
    X(szext_clamp_s32, u32, uint32_t, 2) X(prmt_32, u32, uint32_t, 3) X(shfl_wrap, u32, uint32_t, 3) X(shfr_wrap, u32, uint32_t, 3)        \
    X(shfl_clamp, u32, uint32_t, 3) X(shfr_clamp, u32, uint32_t, 3) X(dp4a_ss, u32, uint32_t, 3) X(dp4a_su, u32, uint32_t, 3)              \
    X(dp2a_lo_ss, u32, uint32_t, 3) X(dp2a_lo_su, u32, uint32_t, 3) X(dp2a_lo_us, u32, uint32_t, 3) X(dp2a_lo_uu, u32, uint32_t, 3)      \
    X(dp2a_hi_ss, u32, uint32_t, 3) X(dp2a_hi_su, u32, uint32_t, 3) X(dp2a_hi_us, u32, uint32_t, 3) X(dp2a_hi_uu, u32, uint32_t, 3)      \
    X(dp4a_us, u32, uint32_t, 3) X(dp4a_uu, u32, uint32_t, 3) X(addsat_s32, u32, uint32_t, 2) X(subsat_s32, u32, uint32_t, 2)              \
    X(sat_f32, u32, uint32_t, 1) X(sat_f64, u64, uint64_t, 1) X(e4m3x2_f32, u32, uint32_t, 2) X(e5m2x2_f32, u32, uint32_t, 2)              \
    X(e4m3x2_f16x2, u32, uint32_t, 1) X(e5m2x2_f16x2, u32, uint32_t, 1) X(f16x2_e4m3x2, u32, uint32_t, 1)                                  \
    X(f16x2_e5m2x2, u32, uint32_t, 1) X(tf32_rna, u32, uint32_t, 1) X(tf32_rn, u32, uint32_t, 1)                                           \
    X(minnan_f32, u32, uint32_t, 2) X(maxnan_f32, u32, uint32_t, 2) X(f32_of_s64, u64, uint64_t, 1) X(f32_of_u64, u64, uint64_t, 1)

// Approximations: name, then the greatest error that the ISA documents stands with their definition in `lanes.cpp`.
#define KW_APPROXIMATIONS(X) X(ex2) X(lg2) X(sin) X(cos) X(tanh) X(rcp) X(rsqrt) X(sqrta)

#define KW_DECLARE_1(n, V, S) V n(V);
#define KW_DECLARE_2(n, V, S) V n(V, V);
#define KW_DECLARE_3(n, V, S) V n(V, V, V);
#define KW_DECLARE_4(n, V, S) V n(V, V, V, V);
#define KW_X(n, V, S, k) KW_DECLARE_##k(n, V, S)
KW_LANE_CALLS(KW_X)
#undef KW_X
#define KW_X(n) u32 n##_f32(u32); uint32_t n##_f32(uint32_t);
KW_APPROXIMATIONS(KW_X)
#undef KW_X
KW_INLINE uint32_t tf32_rna(uint32_t a) { return float_to_tf32(a); }
KW_INLINE uint32_t tf32_rn(uint32_t a) { return float_to_tf32_rn(a); }
KW_INLINE uint32_t minnan_f32(uint32_t a, uint32_t b) { float x = as_f32(a), y = as_f32(b); return x != x || y != y ? 0x7fffffffu : min_f32(a, b); }
KW_INLINE uint32_t maxnan_f32(uint32_t a, uint32_t b) { float x = as_f32(a), y = as_f32(b); return x != x || y != y ? 0x7fffffffu : max_f32(a, b); }
KW_INLINE uint64_t f32_of_s64(uint64_t a) { return bits_of((float)(int64_t)a); }
KW_INLINE uint64_t f32_of_u64(uint64_t a) { return bits_of((float)a); }

// Floats with a rounding mode; f64 keeps to nearest save in `rounded_f64`.
enum { R_ADD, R_MUL, R_FMA, R_DIV, R_SQRT, R_RCP };
u32 rounded_f32(int op, int mode, u32 a, u32 b, u32 c);
uint32_t rounded_f32(int op, int mode, uint32_t a, uint32_t b, uint32_t c);
u64 rounded_f64(int op, int mode, u64 a, u64 b, u64 c);
uint64_t rounded_f64(int op, int mode, uint64_t a, uint64_t b, uint64_t c);
u32 whole_f32(u32, int mode);
uint32_t whole_f32(uint32_t, int mode);
u64 whole_f64(u64, int mode);
uint64_t whole_f64(uint64_t, int mode);
u32 to_u32(u32, int mode);
uint32_t to_u32(uint32_t, int mode);
u64 to_s64(u64 doubles, int mode);  // a float as a double is exact: one path for both
uint64_t to_s64(uint64_t, int mode);
u64 to_u64(u64, int mode);
uint64_t to_u64(uint64_t, int mode);
u64 f64_to_s32(u64, int mode);
uint64_t f64_to_s32(uint64_t, int mode);
u64 f64_to_u32(u64, int mode);
uint64_t f64_to_u32(uint64_t, int mode);
u32 clamp_int(u32, int low, int high);  // of s32
uint32_t clamp_int(uint32_t, int low, int high);
u64 ex2_f64(u64); u64 rcp_f64(u64); u64 rsqrt_f64(u64);
uint64_t rcp_f64(uint64_t); uint64_t rsqrt_f64(uint64_t);
// f64 (64-bit lanes) to halves: only through these, since two roundings differ from one.
u64 half_from(u64, int kind, int mode);
uint64_t half_from(uint64_t, int kind, int mode);
u32 half_from_f32(u32, int kind, int mode);
uint32_t half_from_f32(uint32_t, int kind, int mode);

// Halves: 32 of them in a vector, alone (u16) or in pairs (u32 as u16).
#define KW_HALF_OPS(X) X(add, 2) X(sub, 2) X(mul, 2) X(fma, 3) X(min, 2) X(max, 2) X(minnan, 2) X(maxnan, 2) X(ex2, 1) X(tanh, 1) X(fmarelu, 3) X(sat, 1)
#define KW_HALF_ARGS_1(T) (T a)
#define KW_HALF_ARGS_2(T) (T a, T b)
#define KW_HALF_ARGS_3(T) (T a, T b, T c)
#define KW_HALF_PASS_1 ((u16)a)
#define KW_HALF_PASS_2 ((u16)a, (u16)b)
#define KW_HALF_PASS_3 ((u16)a, (u16)b, (u16)c)
#define KW_HALF_ONE_1 (b16(a))
#define KW_HALF_ONE_2 (b16(a), b16(b))
#define KW_HALF_ONE_3 (b16(a), b16(b), b16(c))
#define KW_HALF_PAIR_1 ((u16)b32(a))
#define KW_HALF_PAIR_2 ((u16)b32(a), (u16)b32(b))
#define KW_HALF_PAIR_3 ((u16)b32(a), (u16)b32(b), (u16)b32(c))
#define KW_HALF(n, k, t)                                                                                                                   \
    u16 n##_##t KW_HALF_ARGS_##k(u16);                                                                                                     \
    KW_INLINE u32 n##_##t##x2 KW_HALF_ARGS_##k(u32) { return (u32)n##_##t KW_HALF_PASS_##k; }                                              \
    KW_INLINE uint16_t n##_##t KW_HALF_ARGS_##k(uint16_t) { return n##_##t KW_HALF_ONE_##k[0]; }                                           \
    KW_INLINE uint32_t n##_##t##x2 KW_HALF_ARGS_##k(uint32_t) { return ((u32)n##_##t KW_HALF_PAIR_##k)[0]; }
#define KW_X(n, k) KW_HALF(n, k, f16) KW_HALF(n, k, bf16)
KW_HALF_OPS(KW_X)
#undef KW_X
KW_BOTH(u16, uint16_t, abs_f16, KW_A1, , a & (uint16_t)0x7fff)
KW_BOTH(u16, uint16_t, neg_f16, KW_A1, , a ^ (uint16_t)0x8000)
KW_BOTH(u32, uint32_t, abs_f16x2, KW_A1, , a & 0x7fff7fffu)
KW_BOTH(u32, uint32_t, neg_f16x2, KW_A1, , a ^ 0x80008000u)
// Comparisons of halves, by way of floats; pairs by their low or high halves.
#define KW_X(name, e, P)                                                                                                                   \
    KW_INLINE uint32_t name##_f16(u16 a, u16 b) { return name##_f32(f32_of_f16l(a), f32_of_f16h(a), f32_of_f16l(b), f32_of_f16h(b)); }     \
    KW_INLINE uint32_t name##_bf16(u16 a, u16 b) { return name##_f32(f32_of_bf16l(a), f32_of_bf16h(a), f32_of_bf16l(b), f32_of_bf16h(b)); } \
    KW_INLINE uint32_t name##_f16(uint16_t a, uint16_t b) { return name##_f32(f32_of_f16(a), f32_of_f16(b)); }                             \
    KW_INLINE uint32_t name##_bf16(uint16_t a, uint16_t b) { return name##_f32(f32_of_bf16(a), f32_of_bf16(b)); }
KW_FOR_FLOAT_COMPARES(KW_X)
#undef KW_X
