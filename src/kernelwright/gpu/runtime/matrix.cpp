// Products of small matrices. A fragment's register holds 32 lanes: lane 4r + q is row r, columns 2q and 2q + 1 (packed halves) or
// column q (32-bit values). So accumulators are already row by row, and a product is: broadcast a's value within each group of
// four lanes, repeat b's four columns in all groups, multiply and add.
#include "kernel.h"

#ifdef KW512
template <int Q> KW_INLINE __m512 spread(__m512 a) { return (__m512)_mm512_shuffle_epi32((__m512i)a, (_MM_PERM_ENUM)(Q * 0x55)); }
// Columns of b, whose lane 4n + q holds column n: out come, for each q, the four even and the four odd columns.
KW_INLINE void columns(__m512 low, __m512 high, float* out) {
    const __m512i first = _mm512_setr_epi32(0, 8, 16, 24, 4, 12, 20, 28, 1, 9, 17, 25, 5, 13, 21, 29);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(2));
    _mm512_store_ps(out, _mm512_permutex2var_ps(low, first, high));
    _mm512_store_ps(out + 16, _mm512_permutex2var_ps(low, second, high));
}
// c (even columns), d (odd columns) of eight rows, in two vectors each; `a` holds the rows' values for the four q.
template <int Q> KW_INLINE void step(__m512 a_low, __m512 a_high, const float* b, __m512* c) {
    __m512 even = _mm512_broadcast_f32x4(_mm_load_ps(b + 8 * Q)), odd = _mm512_broadcast_f32x4(_mm_load_ps(b + 8 * Q + 4));
    __m512 x = spread<Q>(a_low), y = spread<Q>(a_high);
    c[0] = _mm512_fmadd_ps(x, even, c[0]);
    c[1] = _mm512_fmadd_ps(y, even, c[1]);
    c[2] = _mm512_fmadd_ps(x, odd, c[2]);
    c[3] = _mm512_fmadd_ps(y, odd, c[3]);
}
KW_INLINE void four_steps(const __m512* top, const __m512* bottom, const float* b, __m512* c) {
    step<0>(top[0], top[1], b, c), step<0>(bottom[0], bottom[1], b, c + 4);
    step<1>(top[0], top[1], b, c), step<1>(bottom[0], bottom[1], b, c + 4);
    step<2>(top[0], top[1], b, c), step<2>(bottom[0], bottom[1], b, c + 4);
    step<3>(top[0], top[1], b, c), step<3>(bottom[0], bottom[1], b, c + 4);
}
template <bool BF> KW_INLINE __m512 low_value(u32 x) {
    return BF ? (__m512)(x << 16) : _mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)x));
}
template <bool BF> KW_INLINE __m512 high_value(u32 x) {
    return BF ? (__m512)(x & 0xffff0000u) : _mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)(x >> 16)));
}
template <bool BF> KW_INLINE void product_16816(const u32* a, const u32* b, const u32* c, u32* d) {
    alignas(64) float cols[2][32];
    __m512 acc[8];
    // registers c0, c1: rows 0-7, even and odd columns; c2, c3: rows 8-15
    for (int i = 0; i < 8; i++) acc[i] = (__m512)c[i];
    for (int h = 0; h < 2; h++) {  // k = 8h + 2q + parity
        columns(low_value<BF>(b[2 * h]), low_value<BF>(b[2 * h + 1]), cols[0]);
        columns(high_value<BF>(b[2 * h]), high_value<BF>(b[2 * h + 1]), cols[1]);
        const u32 *top = a + 4 * h, *bottom = top + 2;
        __m512 t0[2] = {low_value<BF>(top[0]), low_value<BF>(top[1])}, t1[2] = {low_value<BF>(bottom[0]), low_value<BF>(bottom[1])};
        four_steps(t0, t1, cols[0], acc);
        __m512 s0[2] = {high_value<BF>(top[0]), high_value<BF>(top[1])}, s1[2] = {high_value<BF>(bottom[0]), high_value<BF>(bottom[1])};
        four_steps(s0, s1, cols[1], acc);
    }
    for (int i = 0; i < 8; i++) d[i] = (u32)acc[i];
}
extern "C" void kw_mma_16816_f16_f32(const u32* a, const u32* b, const u32* c, u32* d) { product_16816<false>(a, b, c, d); }
extern "C" void kw_mma_16816_bf16_f32(const u32* a, const u32* b, const u32* c, u32* d) { product_16816<true>(a, b, c, d); }
// tf32: only the upper 19 bits of a value are read.
extern "C" void kw_mma_1688_tf32_f32(const u32* a, const u32* b, const u32* c, u32* d) {
    alignas(64) float cols[32];
    __m512 acc[8];
    for (int i = 0; i < 8; i++) acc[i] = (__m512)c[i];
    for (int h = 0; h < 2; h++) {
        const u32 kept = b32(0xffffe000u);
        columns((__m512)(b[2 * h] & kept), (__m512)(b[2 * h + 1] & kept), cols);
        const u32 *top = a + 4 * h, *bottom = top + 2;
        __m512 t[2] = {(__m512)(top[0] & kept), (__m512)(top[1] & kept)}, s[2] = {(__m512)(bottom[0] & kept), (__m512)(bottom[1] & kept)};
        four_steps(t, s, cols, acc);
    }
    for (int i = 0; i < 8; i++) d[i] = (u32)acc[i];
}
#else
extern "C" void kw_mma_16816_f16_f32(const u32* a, const u32* b, const u32* c, u32* d) {
    kw_mma(nullptr, 0, 16, 8, 16, T_F16, T_F16, T_F32, T_F32, 0, a, b, c, d);
}
extern "C" void kw_mma_16816_bf16_f32(const u32* a, const u32* b, const u32* c, u32* d) {
    kw_mma(nullptr, 0, 16, 8, 16, T_BF16, T_BF16, T_F32, T_F32, 0, a, b, c, d);
}
extern "C" void kw_mma_1688_tf32_f32(const u32* a, const u32* b, const u32* c, u32* d) {
    kw_mma(nullptr, 0, 16, 8, 8, T_TF32, T_TF32, T_F32, T_F32, 0, a, b, c, d);
}
#endif

static int bits_of_type(int type) {
    switch (type) {
        case T_F16: case T_BF16: return 16;
        case T_U8: case T_S8: case T_E4M3: case T_E5M2: return 8;
        case T_F64: return 64;
        default: return 32;
    }
}
static double value(const uint32_t* words, int type, int lane, int element) {
    int bits = bits_of_type(type);
    if (bits == 64) return ((const double*)words)[element * 32 + lane];
    int each = 32 / bits;
    uint32_t raw = words[element / each * 32 + lane] >> (bits * (element % each));
    switch (type) {
        case T_F16: return half_to_float((uint16_t)raw);
        case T_BF16: return bf16_to_float((uint16_t)raw);
        case T_TF32: return as_f32(raw & 0xffffe000u);
        case T_E4M3: return e4m3_to_float((uint8_t)raw);
        case T_E5M2: return e5m2_to_float((uint8_t)raw);
        case T_S8: return (int8_t)raw;
        case T_U8: return (uint8_t)raw;
        case T_S32: return (int32_t)raw;
        default: return as_f32(raw);
    }
}
// Every shape of mma.sync whose rows are spread over groups of four lanes (all but m8n8k4 of halves).
extern "C" void kw_mma(Warp*, uint32_t, int M, int N, int K, int ta, int tb, int td, int tc, int satfinite, const u32* a, const u32* b, const u32* c,
                       u32* d) {
    double A[16][64], B[64][8], C[16][8];
    const uint32_t *wa = (const uint32_t*)a, *wb = (const uint32_t*)b, *wc = (const uint32_t*)c;
    int bits = bits_of_type(ta), run = bits >= 32 ? 1 : 32 / bits;  // neighbours in k that one register of a lane holds
    int halves = M / 8, chunk = 4 * run;                            // a register spans 8 rows and `chunk` of k
    for (int lane = 0; lane < 32; lane++) {
        int row = lane / 4, q = lane % 4;
        for (int e = 0; e < M * K / 32; e++) {
            int reg = e / run, k = reg / halves * chunk + q * run + e % run, m = row + 8 * (reg % halves);
            A[m][k] = value(wa, ta, lane, e);
        }
        for (int e = 0; e < K * N / 32; e++) {
            int reg = e / run, k = reg * chunk + q * run + e % run;
            B[k][row] = value(wb, tb, lane, e);
        }
        for (int e = 0; e < M * N / 32; e++) C[row + 8 * (e / 2)][2 * q + e % 2] = value(wc, tc, lane, e);
    }
    for (int lane = 0; lane < 32; lane++)
        for (int e = 0; e < M * N / 32; e++) {
            int m = lane / 4 + 8 * (e / 2), n = 2 * (lane % 4) + e % 2;
            double sum = td == T_F64 ? C[m][n] : 0;
            for (int k = 0; k < K; k++) sum = td == T_F64 ? fma(A[m][k], B[k][n], sum) : sum + A[m][k] * B[k][n];
            if (td != T_F64) sum += C[m][n];
            uint32_t* out = (uint32_t*)d;
            if (td == T_F64) ((double*)d)[e * 32 + lane] = sum;
            else if (td == T_S32) {
                int64_t x = (int64_t)sum;
                if (satfinite) x = x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x;
                out[e * 32 + lane] = (uint32_t)x;
            } else if (td == T_F16) ((uint16_t*)out)[e / 2 * 64 + lane * 2 + e % 2] = float_to_half((float)sum);
            else out[e * 32 + lane] = bits_of((float)sum);
        }
}

// An operand of wgmma in shared memory: its descriptor gives the start, two strides and the swizzle. Element (row, k) of an
// operand stored along k, or along the rows where `turned`.
struct Operand {
    const uint8_t* shared;
    uint32_t start, leading, stride, swizzle;
    Operand(const uint8_t* base, uint64_t d)
        : shared(base), start((uint32_t)(d & 0x3fff) << 4), leading((uint32_t)(d >> 16 & 0x3fff) << 4), stride((uint32_t)(d >> 32 & 0x3fff) << 4),
          swizzle((uint32_t)(d >> 62)) {}
    uint32_t offset(uint32_t row, uint32_t k, uint32_t bytes, bool turned) const {
        uint32_t wide = swizzle == 1 ? 128 : swizzle == 2 ? 64 : swizzle == 3 ? 32 : 16, o;
        if (!turned) {
            o = start + row / 8 * stride + row % 8 * wide;
            o += swizzle ? k * bytes : k * bytes / 16 * leading + k * bytes % 16;
        } else {
            uint32_t along = wide / bytes;  // neighbours that lie one behind the other
            o = start + k % 8 * wide + row % along * bytes;
            o += swizzle ? row / along * leading + k / 8 * stride : row / along * stride + k / 8 * leading;
        }
        uint32_t bits = swizzle == 1 ? 7 : swizzle == 2 ? 3 : swizzle == 3 ? 1 : 0;
        return o ^ ((o >> 7 & bits) << 4);
    }
};
static float element(const uint8_t* p, int type) {
    switch (type) {
        case T_F16: return half_to_float(*(const uint16_t*)p);
        case T_BF16: return bf16_to_float(*(const uint16_t*)p);
        case T_TF32: return as_f32(*(const uint32_t*)p & 0xffffe000u);
        case T_E4M3: return e4m3_to_float(*p);
        case T_E5M2: return e5m2_to_float(*p);
        case T_S8: return (int8_t)*p;
        default: return *p;
    }
}
extern "C" uint32_t kw_operand_offset(uint64_t descriptor, uint32_t row, uint32_t k, uint32_t bytes, bool turned) {
    return Operand(nullptr, descriptor).offset(row, k, bytes, turned);
}
enum { SCALE_D = 1, NEGATE_A = 2, NEGATE_B = 4, TURN_A = 8, TURN_B = 16 };
extern "C" void kw_wgmma(Warp* w, uint32_t site, int N, int K, int ta, int tb, int td, int flags, const u32* a, uint64_t at_a, uint64_t at_b, u32* d) {
    alignas(64) static thread_local float A[16][32], B[32][256], C[16][256];
    uint32_t bytes = (uint32_t)bits_of_type(ta) / 8;
    kw_wgmma_reads(w, site, (uint32_t)N, (uint32_t)K, bytes, !a, at_a, !!(flags & TURN_A), at_b, !!(flags & TURN_B));
    uint32_t first = 16 * (w->index & 3);
    Operand oa(w->shared, at_a), ob(w->shared, at_b);
    for (int k = 0; k < K; k++) {
        for (int n = 0; n < N; n++) B[k][n] = element(w->shared + ob.offset((uint32_t)n, (uint32_t)k, bytes, flags & TURN_B), tb);
        if (!a)
            for (int m = 0; m < 16; m++) A[m][k] = element(w->shared + oa.offset(first + (uint32_t)m, (uint32_t)k, bytes, flags & TURN_A), ta);
    }
    if (a) {
        int run = 4 / (int)bytes, chunk = 4 * run;
        for (int lane = 0; lane < 32; lane++)
            for (int e = 0; e < 16 * K / 32; e++) {
                int reg = e / run, k = reg / 2 * chunk + lane % 4 * run + e % run;
                A[lane / 4 + 8 * (reg % 2)][k] = (float)value((const uint32_t*)a, ta, lane, e);
            }
    }
    uint32_t* out = (uint32_t*)d;
    bool half = td == T_F16, whole = td == T_S32;
    auto each = [&](auto f) {
        for (int lane = 0; lane < 32; lane++)
            for (int e = 0; e < N / 2; e++) f(lane, e, lane / 4 + 8 * (e / 2 % 2), e / 4 * 8 + lane % 4 * 2 + e % 2);
    };
    if (flags & SCALE_D)
        each([&](int lane, int e, int m, int n) {
            C[m][n] = half ? half_to_float(((uint16_t*)out)[e / 2 * 64 + lane * 2 + e % 2]) : whole ? (float)(int32_t)out[e * 32 + lane] : as_f32(out[e * 32 + lane]);
        });
    else memset(C, 0, sizeof C);
    float sign = !(flags & NEGATE_A) == !(flags & NEGATE_B) ? 1.0f : -1.0f;
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < K; k++) {
            float x = sign * A[m][k];
            for (int n = 0; n < N; n++) C[m][n] = __builtin_fmaf(x, B[k][n], C[m][n]);
        }
    each([&](int lane, int e, int m, int n) {
        if (half) ((uint16_t*)out)[e / 2 * 64 + lane * 2 + e % 2] = float_to_half(C[m][n]);
        else out[e * 32 + lane] = bits_of(C[m][n]);
    });
}
