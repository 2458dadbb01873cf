// half and bfloat16: 16 bits in memory, arithmetic in float rounded to nearest even after every operation, as the device does.
#pragma once
#include "kw_types.h"

namespace kw {
static inline float bits_float(uint32_t u) { float f; __builtin_memcpy(&f, &u, 4); return f; }
static inline uint32_t float_bits(float f) { uint32_t u; __builtin_memcpy(&u, &f, 4); return u; }
static inline float half_float(uint16_t h) {
#if defined(__F16C__)
  _Float16 v; __builtin_memcpy(&v, &h, 2); return float(v);
#else
  const uint32_t sign = uint32_t(h & 0x8000) << 16, bits = uint32_t(h & 0x7fff) << 13;
  const float scaled = bits_float(bits) * 0x1p112f;
  const uint32_t special = (bits & 0x0f800000) == 0x0f800000 ? 0x7f800000u : 0u;
  return bits_float(float_bits(scaled) | special | sign);
#endif
}
static inline uint16_t float_half(float x) {
#if defined(__F16C__)
  _Float16 v = (_Float16)x; uint16_t h; __builtin_memcpy(&h, &v, 2); return h;
#else
  const uint32_t u = float_bits(x), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  const uint32_t least = a < 0x38800000u ? 0x38800000u : a;
  const float magic = bits_float((least & 0x7f800000u) + 0x06800000u);
  const float rounded = (bits_float(a) + magic) - magic;
  const uint32_t normal = float_bits(rounded * 0x1p-112f) >> 13;
  const uint32_t big = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return uint16_t(sign | (a >= 0x477ff000u ? big : normal));
#endif
}
static inline float bfloat_float(uint16_t h) { return bits_float(uint32_t(h) << 16); }
static inline uint16_t float_bfloat(float x) {
  const uint32_t u = float_bits(x);
  return uint16_t(x != x ? 0x7fffu : (u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
}  // namespace kw

struct __half_raw { unsigned short x; };
struct __nv_bfloat16_raw { unsigned short x; };

#define KW_NUMBERS(F) F(int) F(unsigned int) F(long) F(unsigned long) F(long long) F(unsigned long long) F(short) F(unsigned short)
#define KW_HALF_TYPE(H, RAW, DOWN, UP)                                                                           \
  struct __attribute__((aligned(2))) H {                                                                         \
    unsigned short __x;                                                                                          \
    H() = default;                                                                                               \
    constexpr H(const RAW& r) : __x(r.x) {}                                                                      \
    H(float f) : __x(kw::DOWN(f)) {}                                                                             \
    H(double d) : __x(kw::DOWN(float(d))) {}                                                                     \
    template <typename T, typename = std::enable_if_t<std::is_integral<T>::value>> H(T i) : __x(kw::DOWN(float(i))) {} \
    operator float() const { return kw::UP(__x); }                                                               \
    template <typename T, typename = std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>> \
    explicit operator T() const { return T(kw::UP(__x)); }                                                       \
    explicit operator bool() const { return (__x & 0x7fff) != 0; }                                               \
    explicit operator double() const { return kw::UP(__x); }                                                     \
    operator RAW() const { return {__x}; }                                                                       \
    H& operator+=(H b) { return *this = H(float(*this) + float(b)); }                                            \
    H& operator-=(H b) { return *this = H(float(*this) - float(b)); }                                            \
    H& operator*=(H b) { return *this = H(float(*this) * float(b)); }                                            \
    H& operator/=(H b) { return *this = H(float(*this) / float(b)); }                                            \
    H& operator++() { return *this += H(1.0f); }                                                                 \
    H& operator--() { return *this -= H(1.0f); }                                                                 \
  };                                                                                                             \
  static inline H operator+(H a, H b) { return H(float(a) + float(b)); }                                         \
  static inline H operator-(H a, H b) { return H(float(a) - float(b)); }                                         \
  static inline H operator*(H a, H b) { return H(float(a) * float(b)); }                                         \
  static inline H operator/(H a, H b) { return H(float(a) / float(b)); }                                         \
  static inline H operator-(H a) { H r; r.__x = a.__x ^ 0x8000; return r; }                                      \
  static inline H operator+(H a) { return a; }                                                                   \
  static inline bool operator==(H a, H b) { return float(a) == float(b); }                                       \
  static inline bool operator!=(H a, H b) { return float(a) != float(b); }                                       \
  static inline bool operator<(H a, H b) { return float(a) < float(b); }                                         \
  static inline bool operator>(H a, H b) { return float(a) > float(b); }                                         \
  static inline bool operator<=(H a, H b) { return float(a) <= float(b); }                                       \
  static inline bool operator>=(H a, H b) { return float(a) >= float(b); }                                       \
  struct __attribute__((aligned(4))) H##2 {                                                                      \
    H x, y;                                                                                                      \
    H##2() = default;                                                                                            \
    H##2(H a, H b) : x(a), y(b) {}                                                                               \
  };                                                                                                             \
  static inline H##2 operator+(H##2 a, H##2 b) { return {a.x + b.x, a.y + b.y}; }                                \
  static inline H##2 operator-(H##2 a, H##2 b) { return {a.x - b.x, a.y - b.y}; }                                \
  static inline H##2 operator*(H##2 a, H##2 b) { return {a.x * b.x, a.y * b.y}; }                                \
  static inline H##2 operator/(H##2 a, H##2 b) { return {a.x / b.x, a.y / b.y}; }                                \
  static inline H##2 operator-(H##2 a) { return {-a.x, -a.y}; }                                                  \
  static inline H##2& operator+=(H##2& a, H##2 b) { return a = a + b; }                                          \
  static inline H##2& operator-=(H##2& a, H##2 b) { return a = a - b; }                                          \
  static inline H##2& operator*=(H##2& a, H##2 b) { return a = a * b; }                                          \
  static inline H __hadd(H a, H b) { return a + b; }                                                             \
  static inline H __hsub(H a, H b) { return a - b; }                                                             \
  static inline H __hmul(H a, H b) { return a * b; }                                                             \
  static inline H __hdiv(H a, H b) { return a / b; }                                                             \
  static inline H __hadd_rn(H a, H b) { return a + b; }                                                          \
  static inline H __hmul_rn(H a, H b) { return a * b; }                                                          \
  static inline H __hfma(H a, H b, H c) { return H(fmaf(float(a), float(b), float(c))); }                        \
  static inline H __hfma_relu(H a, H b, H c) { float r = fmaf(float(a), float(b), float(c)); return H(r < 0 ? 0.0f : r); } \
  static inline H __hneg(H a) { return -a; }                                                                     \
  static inline H __habs(H a) { a.__x &= 0x7fff; return a; }                                                     \
  static inline H __hmax(H a, H b) { return H(fmaxf(float(a), float(b))); }                                      \
  static inline H __hmin(H a, H b) { return H(fminf(float(a), float(b))); }                                      \
  static inline H __hmax_nan(H a, H b) { return float(a) != float(a) ? a : float(b) != float(b) ? b : __hmax(a, b); } \
  static inline H __hmin_nan(H a, H b) { return float(a) != float(a) ? a : float(b) != float(b) ? b : __hmin(a, b); } \
  static inline bool __heq(H a, H b) { return a == b; }                                                          \
  static inline bool __hne(H a, H b) { return a != b; }                                                          \
  static inline bool __hlt(H a, H b) { return a < b; }                                                           \
  static inline bool __hle(H a, H b) { return a <= b; }                                                          \
  static inline bool __hgt(H a, H b) { return a > b; }                                                           \
  static inline bool __hge(H a, H b) { return a >= b; }                                                          \
  static inline bool __hisnan(H a) { return float(a) != float(a); }                                              \
  static inline int __hisinf(H a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }                 \
  static inline H hexp(H a) { return H(expf(a)); }                                                               \
  static inline H hexp2(H a) { return H(exp2f(a)); }                                                             \
  static inline H hlog(H a) { return H(logf(a)); }                                                               \
  static inline H hlog2(H a) { return H(log2f(a)); }                                                             \
  static inline H hsqrt(H a) { return H(sqrtf(a)); }                                                             \
  static inline H hrsqrt(H a) { return H(1.0f / sqrtf(a)); }                                                     \
  static inline H hrcp(H a) { return H(1.0f / float(a)); }                                                       \
  static inline H hsin(H a) { return H(sinf(a)); }                                                               \
  static inline H hcos(H a) { return H(cosf(a)); }                                                               \
  static inline H htanh(H a) { return H(tanhf(a)); }                                                             \
  static inline H hfloor(H a) { return H(floorf(a)); }                                                           \
  static inline H hceil(H a) { return H(ceilf(a)); }                                                             \
  static inline H htrunc(H a) { return H(truncf(a)); }                                                           \
  static inline H hrint(H a) { return H(rintf(a)); }                                                             \
  static inline H##2 __hadd2(H##2 a, H##2 b) { return a + b; }                                                   \
  static inline H##2 __hsub2(H##2 a, H##2 b) { return a - b; }                                                   \
  static inline H##2 __hmul2(H##2 a, H##2 b) { return a * b; }                                                   \
  static inline H##2 __h2div(H##2 a, H##2 b) { return a / b; }                                                   \
  static inline H##2 __hfma2(H##2 a, H##2 b, H##2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }  \
  static inline H##2 __hmax2(H##2 a, H##2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                    \
  static inline H##2 __hmin2(H##2 a, H##2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                    \
  static inline H##2 __hneg2(H##2 a) { return -a; }                                                              \
  static inline H##2 __habs2(H##2 a) { return {__habs(a.x), __habs(a.y)}; }                                      \
  static inline H##2 h2exp(H##2 a) { return {hexp(a.x), hexp(a.y)}; }                                            \
  static inline H##2 h2sqrt(H##2 a) { return {hsqrt(a.x), hsqrt(a.y)}; }                                         \
  static inline H##2 h2rsqrt(H##2 a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }                                      \
  static inline H##2 h2rcp(H##2 a) { return {hrcp(a.x), hrcp(a.y)}; }
KW_HALF_TYPE(__half, __half_raw, float_half, half_float)
KW_HALF_TYPE(__nv_bfloat16, __nv_bfloat16_raw, float_bfloat, bfloat_float)

typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
typedef __nv_bfloat16 __bfloat16;

static inline __half __float2half(float f) { return __half(f); }
static inline __half __float2half_rn(float f) { return __half(f); }
static inline __half __double2half(double d) { return __half(float(d)); }
static inline float __half2float(__half h) { return float(h); }
static inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
static inline __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
static inline __half2 __float22half2_rn(float2 a) { return {__half(a.x), __half(a.y)}; }
static inline float2 __half22float2(__half2 h) { return {float(h.x), float(h.y)}; }
static inline __half2 __half2half2(__half h) { return {h, h}; }
static inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
static inline __half2 make_half2(__half a, __half b) { return {a, b}; }
static inline __half __low2half(__half2 h) { return h.x; }
static inline __half __high2half(__half2 h) { return h.y; }
static inline float __low2float(__half2 h) { return float(h.x); }
static inline float __high2float(__half2 h) { return float(h.y); }
static inline __half __ushort_as_half(unsigned short u) { __half h; h.__x = u; return h; }
static inline unsigned short __half_as_ushort(__half h) { return h.__x; }
static inline __half __short_as_half(short u) { __half h; h.__x = (unsigned short)u; return h; }
static inline short __half_as_short(__half h) { return short(h.__x); }
static inline __half __int2half_rn(int i) { return __half(float(i)); }
static inline int __half2int_rn(__half h) { return int(rintf(h)); }
static inline int __half2int_rz(__half h) { return int(float(h)); }

static inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
static inline __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
static inline __nv_bfloat16 __double2bfloat16(double f) { return __nv_bfloat16(float(f)); }
static inline float __bfloat162float(__nv_bfloat16 h) { return float(h); }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
static inline __nv_bfloat162 __float2bfloat162_rn(float a) { return {__nv_bfloat16(a), __nv_bfloat16(a)}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 a) { return {__nv_bfloat16(a.x), __nv_bfloat16(a.y)}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 h) { return {float(h.x), float(h.y)}; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 h) { return {h, h}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 h) { return h.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 h) { return h.y; }
static inline float __low2float(__nv_bfloat162 h) { return float(h.x); }
static inline float __high2float(__nv_bfloat162 h) { return float(h.y); }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u) { __nv_bfloat16 h; h.__x = u; return h; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.__x; }
