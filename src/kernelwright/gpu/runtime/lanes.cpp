// The vector forms that are calls.
#include "lanes.h"
#include <fenv.h>

#define KW_LOOP(V, S, e) { V r; for (int i = 0; i < (int)(sizeof(V) / sizeof(S)); i++) r[i] = e; return r; }
#define KW_DEFINE_1(n, V, S) V n(V a) KW_LOOP(V, S, n((S)a[i]))
#define KW_DEFINE_2(n, V, S) V n(V a, V b) KW_LOOP(V, S, n((S)a[i], (S)b[i]))
#define KW_DEFINE_3(n, V, S) V n(V a, V b, V c) KW_LOOP(V, S, n((S)a[i], (S)b[i], (S)c[i]))
#define KW_DEFINE_4(n, V, S) V n(V a, V b, V c, V d) KW_LOOP(V, S, n((S)a[i], (S)b[i], (S)c[i], (S)d[i]))
#define KW_X(n, V, S, k) KW_DEFINE_##k(n, V, S)
KW_LANE_CALLS(KW_X)
#undef KW_X

// Approximations. Errors are bounded by the ISA's: ex2 2^-22 relative, lg2 2^-22 absolute near one, sin and cos 2^-20.5 absolute,
// tanh 2^-11 relative, rcp and sqrt 1 ulp, rsqrt 2^-22.9 relative. tanh keeps no more bits than the device has.
static inline float ex2_one(float x) {
    x = x > 129.0f ? 129.0f : x < -151.0f ? -151.0f : x;
    float n = __builtin_rintf(x), f = x - n;
    float p = 1.5353362e-4f;
    p = fmaf(p, f, 1.3398874e-3f);
    p = fmaf(p, f, 9.6184373e-3f);
    p = fmaf(p, f, 5.5503324e-2f);
    p = fmaf(p, f, 2.4022648e-1f);
    p = fmaf(p, f, 6.9314720e-1f);
    p = fmaf(p, f, 1.0f);
    int k = (int)n, h = k >> 1;
    return p * as_f32((uint32_t)(h + 127) << 23) * as_f32((uint32_t)(k - h + 127) << 23);
}
u32 ex2_f32(u32 a) {
    u32 r;
    for (int i = 0; i < 16; i++) {
        float x = as_f32(a[i]), y = ex2_one(x);
        r[i] = x != x ? 0x7fffffffu : bits_of(y);
    }
    return r;
}
uint32_t ex2_f32(uint32_t a) { return ex2_f32(b32(a))[0]; }
static inline float tanh_one(float x) {
    float y = tanhf(x);
    uint32_t u = bits_of(y);
    return y != y ? y : as_f32((u + 0x800) & 0xfffff000u);  // eleven bits
}
#define KW_MATH(name, e) \
    uint32_t name##_f32(uint32_t a) { float x = as_f32(a); return bits_of((float)(e)); } \
    u32 name##_f32(u32 a) { u32 r; for (int i = 0; i < 16; i++) { float x = as_f32(a[i]); r[i] = bits_of((float)(e)); } return r; }
KW_MATH(lg2, log2f(x))
KW_MATH(sin, sinf(x))
KW_MATH(cos, cosf(x))
KW_MATH(tanh, tanh_one(x))
KW_MATH(rcp, 1.0f / x)
KW_MATH(rsqrt, 1.0f / sqrtf(x))
KW_MATH(sqrta, sqrtf(x))
#define KW_MATH64(name, e) \
    uint64_t name##_f64(uint64_t a) { double x = as_f64(a); return bits_of((double)(e)); } \
    u64 name##_f64(u64 a) { u64 r; for (int i = 0; i < 8; i++) { double x = as_f64(a[i]); r[i] = bits_of((double)(e)); } return r; }
KW_MATH64(rcp, 1.0 / x)
KW_MATH64(rsqrt, 1.0 / sqrt(x))

uint32_t rounded_f32(int op, int mode, uint32_t a, uint32_t b, uint32_t c) {
    float x = as_f32(a), y = as_f32(b), z = as_f32(c), r;
    switch (op) {
        case R_ADD: r = add_round(x, y, mode); break;
        case R_MUL: r = mul_round(x, y, mode); break;
        case R_FMA: r = fma_round(x, y, z, mode); break;
        case R_DIV: r = div_round(x, y, mode); break;
        case R_RCP: r = div_round(1.0f, x, mode); break;
        default: r = sqrt_round(x, mode);
    }
    return bits_of(r);
}
u32 rounded_f32(int op, int mode, u32 a, u32 b, u32 c) KW_LOOP(u32, uint32_t, rounded_f32(op, mode, (uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i]))
__attribute__((noinline, optimize("rounding-math"))) uint64_t rounded_f64(int op, int mode, uint64_t a, uint64_t b, uint64_t c) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    volatile double x = as_f64(a), y = as_f64(b), z = as_f64(c), r;
    fesetround(modes[mode]);
    switch (op) {
        case R_ADD: r = x + y; break;
        case R_MUL: r = x * y; break;
        case R_FMA: r = fma(x, y, z); break;
        case R_DIV: r = x / y; break;
        case R_RCP: r = 1.0 / x; break;
        default: r = sqrt(x);
    }
    fesetround(FE_TONEAREST);
    return bits_of((double)r);
}
u64 rounded_f64(int op, int mode, u64 a, u64 b, u64 c) KW_LOOP(u64, uint64_t, rounded_f64(op, mode, (uint64_t)a[i], (uint64_t)b[i], (uint64_t)c[i]))
uint32_t whole_f32(uint32_t a, int mode) { return bits_of((float)to_whole(as_f32(a), mode)); }
u32 whole_f32(u32 a, int mode) KW_LOOP(u32, uint32_t, whole_f32((uint32_t)a[i], mode))
uint64_t whole_f64(uint64_t a, int mode) { return bits_of(to_whole(as_f64(a), mode)); }
u64 whole_f64(u64 a, int mode) KW_LOOP(u64, uint64_t, whole_f64((uint64_t)a[i], mode))
uint32_t to_u32(uint32_t a, int mode) { return f64_u32(as_f32(a), mode); }
u32 to_u32(u32 a, int mode) KW_LOOP(u32, uint32_t, to_u32((uint32_t)a[i], mode))
uint64_t to_s64(uint64_t a, int mode) { return f64_s64(as_f64(a), mode); }
u64 to_s64(u64 a, int mode) KW_LOOP(u64, uint64_t, to_s64((uint64_t)a[i], mode))
uint64_t to_u64(uint64_t a, int mode) { return f64_u64(as_f64(a), mode); }
u64 to_u64(u64 a, int mode) KW_LOOP(u64, uint64_t, to_u64((uint64_t)a[i], mode))
uint64_t f64_to_s32(uint64_t a, int mode) { return f64_s32(as_f64(a), mode); }
u64 f64_to_s32(u64 a, int mode) KW_LOOP(u64, uint64_t, f64_to_s32((uint64_t)a[i], mode))
uint64_t f64_to_u32(uint64_t a, int mode) { return f64_u32(as_f64(a), mode); }
u64 f64_to_u32(u64 a, int mode) KW_LOOP(u64, uint64_t, f64_to_u32((uint64_t)a[i], mode))
uint32_t clamp_int(uint32_t a, int low, int high) { int x = (int)a; return (uint32_t)(x < low ? low : x > high ? high : x); }
u32 clamp_int(u32 a, int low, int high) KW_LOOP(u32, uint32_t, clamp_int((uint32_t)a[i], low, high))
uint64_t half_from(uint64_t a, int kind, int mode) { double x = as_f64(a); return kind == T_F16 ? half_of(x, mode) : bf16_of((float)x, mode); }
u64 half_from(u64 a, int kind, int mode) KW_LOOP(u64, uint64_t, half_from((uint64_t)a[i], kind, mode))
uint32_t half_from_f32(uint32_t a, int kind, int mode) { float x = as_f32(a); return kind == T_F16 ? half_of(x, mode) : bf16_of(x, mode); }
u32 half_from_f32(u32 a, int kind, int mode) KW_LOOP(u32, uint32_t, half_from_f32((uint32_t)a[i], kind, mode))

KW_INLINE u32 relu(u32 a) { return max_f32(a, b32(0)); }
#define KW_E_add(a, b, c) add_f32(a, b)
#define KW_E_sub(a, b, c) sub_f32(a, b)
#define KW_E_mul(a, b, c) mul_f32(a, b)
#define KW_E_fma(a, b, c) fma_f32(a, b, c)
#define KW_E_fmarelu(a, b, c) relu(fma_f32(a, b, c))
#define KW_E_min(a, b, c) min_f32(a, b)
#define KW_E_max(a, b, c) max_f32(a, b)
#define KW_E_minnan(a, b, c) minnan_f32(a, b)
#define KW_E_maxnan(a, b, c) maxnan_f32(a, b)
#define KW_E_ex2(a, b, c) ex2_f32(a)
#define KW_E_tanh(a, b, c) tanh_f32(a)
#define KW_E_sat(a, b, c) sat_f32(a)
#define KW_P1(f) f(a), f(a), f(a)
#define KW_P2(f) f(a), f(b), f(b)
#define KW_P3(f) f(a), f(b), f(c)
#define KW_CALL(n, ...) KW_CALL_(n, __VA_ARGS__)
#define KW_CALL_(n, ...) KW_E_##n(__VA_ARGS__)
#define KW_X(n, k)                                                                                                                         \
    u16 n##_f16 KW_HALF_ARGS_##k(u16) { return f16_of_f32(KW_CALL(n, KW_P##k(f32_of_f16l)), KW_CALL(n, KW_P##k(f32_of_f16h))); }            \
    u16 n##_bf16 KW_HALF_ARGS_##k(u16) { return bf16_of_f32(KW_CALL(n, KW_P##k(f32_of_bf16l)), KW_CALL(n, KW_P##k(f32_of_bf16h))); }
KW_HALF_OPS(KW_X)
#undef KW_X
