// Memory as it is: no checks, no counts. Whole rows of neighbouring addresses are copied as such; the rest goes lane by lane.
#include "kernel.h"
#include "block.h"
#include <functional>

KW_INLINE bool consecutive(u64 a, u64 b, u64 c, u64 d, uint64_t step) {
    const u64 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    u64 row = b64(a[0]) + lane * step, next = b64(8 * step);
    u64 off = (a ^ row) | (b ^ (row + next)) | (c ^ (row + 2 * next)) | (d ^ (row + 3 * next));
#ifdef KW512
    return !_mm512_test_epi64_mask((__m512i)off, (__m512i)off);
#else
    uint64_t any = 0;
    for (int i = 0; i < 8; i++) any |= off[i];
    return !any;
#endif
}
KW_INLINE bool consecutive(u32 a, u32 b, uint32_t step) {
    u32 row = b32(a[0]) + kw_lane[0] * step;
    u32 off = (a ^ row) | (b ^ (row + 16 * step));
#ifdef KW512
    return !_mm512_test_epi32_mask((__m512i)off, (__m512i)off);
#else
    uint32_t any = 0;
    for (int i = 0; i < 16; i++) any |= off[i];
    return !any;
#endif
}
KW_INLINE bool equal(u32 a, u32 b) {
    u32 first = b32(a[0]), off = (a ^ first) | (b ^ first);
#ifdef KW512
    return !_mm512_test_epi32_mask((__m512i)off, (__m512i)off);
#else
    uint32_t any = 0;
    for (int i = 0; i < 16; i++) any |= off[i];
    return !any;
#endif
}

template <class S> KW_INLINE void load_lanes(uint32_t mask, int n, const uint64_t* at, void* data) {
    S* out = (S*)data;
    for (int i = 0; i < 32; i++) {
        const S* from = (const S*)at[i];
        if (mask >> i & 1)
            for (int k = 0; k < n; k++) out[k * 32 + i] = from[k];
        else
            for (int k = 0; k < n; k++) out[k * 32 + i] = 0;
    }
}
template <class S> KW_INLINE void store_lanes(uint32_t mask, int n, const uint64_t* at, const void* data) {
    const S* in = (const S*)data;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        S* to = (S*)at[i];
        for (int k = 0; k < n; k++) to[k] = in[k * 32 + i];
    }
}
static void load_bytes(uint32_t mask, int n, const uint64_t* at, void* data) {
    uint16_t* out = (uint16_t*)data;
    for (int i = 0; i < 32; i++)
        for (int k = 0; k < n; k++) out[k * 32 + i] = mask >> i & 1 ? ((const uint8_t*)at[i])[k] : 0;
}
static void store_bytes(uint32_t mask, int n, const uint64_t* at, const void* data) {
    const uint16_t* in = (const uint16_t*)data;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        for (int k = 0; k < n; k++) ((uint8_t*)at[i])[k] = (uint8_t)in[k * 32 + i];
    }
}
static void load_any(uint32_t mask, int bytes, int n, const uint64_t* at, void* data) {
    switch (bytes) {
        case 1: load_bytes(mask, n, at, data); break;
        case 2: load_lanes<uint16_t>(mask, n, at, data); break;
        case 4: load_lanes<uint32_t>(mask, n, at, data); break;
        default: load_lanes<uint64_t>(mask, n, at, data);
    }
}
static void store_any(uint32_t mask, int bytes, int n, const uint64_t* at, const void* data) {
    switch (bytes) {
        case 1: store_bytes(mask, n, at, data); break;
        case 2: store_lanes<uint16_t>(mask, n, at, data); break;
        case 4: store_lanes<uint32_t>(mask, n, at, data); break;
        default: store_lanes<uint64_t>(mask, n, at, data);
    }
}
struct Addresses {
    alignas(64) uint64_t at[32];
    inline __attribute__((always_inline)) Addresses(u64 a, u64 b, u64 c, u64 d) { *(u64*)at = a, *(u64*)(at + 8) = b, *(u64*)(at + 16) = c, *(u64*)(at + 24) = d; }
    inline __attribute__((always_inline)) Addresses(const uint8_t* base, u32 a, u32 b) {
        u64 o = b64((uint64_t)base);
        *(u64*)at = o + zx64l(a), *(u64*)(at + 8) = o + zx64h(a), *(u64*)(at + 16) = o + zx64l(b), *(u64*)(at + 24) = o + zx64h(b);
    }
};

#include "checks.h"

extern "C" {
void kw_load(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, u64 a, u64 b, u64 c, u64 d, void* data) {
    Addresses p(a, b, c, d);
    mask = check_global(w, mask, site, bytes * n, p.at, 0);
    if (n == 1 && mask == ~0u && bytes > 1 && consecutive(a, b, c, d, (uint64_t)bytes)) memcpy(data, (const void*)a[0], 32u * (uint32_t)bytes);
    else load_any(mask, bytes, n, p.at, data);
}
void kw_store(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, u64 a, u64 b, u64 c, u64 d, const void* data) {
    Addresses p(a, b, c, d);
    mask = check_global(w, mask, site, bytes * n, p.at, 1);
    if (n == 1 && mask == ~0u && bytes > 1 && consecutive(a, b, c, d, (uint64_t)bytes)) memcpy((void*)a[0], data, 32u * (uint32_t)bytes);
    else store_any(mask, bytes, n, p.at, data);
}
void kw_load_4(Warp* w, uint32_t mask, uint32_t site, u64 a, u64 b, u64 c, u64 d, u32* data) {
    if (CHECKED) {
        Addresses p(a, b, c, d);
        mask = check_global(w, mask, site, 4, p.at, 0);
    }
    if (consecutive(a, b, c, d, 4)) {
        if (mask == ~0u) {
            memcpy(data, (const void*)a[0], 128);
            return;
        }
#ifdef KW512
        data[0] = (u32)_mm512_maskz_loadu_epi32((__mmask16)mask, (const void*)a[0]);
        data[1] = (u32)_mm512_maskz_loadu_epi32((__mmask16)(mask >> 16), (const void*)(a[0] + 64));
        return;
#endif
    }
    Addresses p(a, b, c, d);
    load_lanes<uint32_t>(mask, 1, p.at, data);
}
void kw_store_4(Warp* w, uint32_t mask, uint32_t site, u64 a, u64 b, u64 c, u64 d, u32 x, u32 y) {
    if (CHECKED) {
        Addresses p(a, b, c, d);
        mask = check_global(w, mask, site, 4, p.at, 1);
    }
    u32 data[2] = {x, y};
    if (consecutive(a, b, c, d, 4)) {
        if (mask == ~0u) {
            memcpy((void*)a[0], data, 128);
            return;
        }
#ifdef KW512
        _mm512_mask_storeu_epi32((void*)a[0], (__mmask16)mask, (__m512i)x);
        _mm512_mask_storeu_epi32((void*)(a[0] + 64), (__mmask16)(mask >> 16), (__m512i)y);
        return;
#endif
    }
    Addresses p(a, b, c, d);
    store_lanes<uint32_t>(mask, 1, p.at, data);
}
void kw_load_4x4(Warp* w, uint32_t mask, uint32_t site, u64 a, u64 b, u64 c, u64 d, u32* data) {
    Addresses p(a, b, c, d);
    mask = check_global(w, mask, site, 16, p.at, 0);
    uint32_t* out = (uint32_t*)data;
    if (mask == ~0u) {
        for (int i = 0; i < 32; i += 4) {  // four lanes at a time, turned on their side
            typedef uint32_t q __attribute__((vector_size(16), aligned(4)));
            q r0 = *(const q*)p.at[i], r1 = *(const q*)p.at[i + 1], r2 = *(const q*)p.at[i + 2], r3 = *(const q*)p.at[i + 3];
            q t0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), t1 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
            q t2 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7), t3 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
            *(q*)(out + i) = __builtin_shufflevector(t0, t1, 0, 1, 4, 5);
            *(q*)(out + 32 + i) = __builtin_shufflevector(t0, t1, 2, 3, 6, 7);
            *(q*)(out + 64 + i) = __builtin_shufflevector(t2, t3, 0, 1, 4, 5);
            *(q*)(out + 96 + i) = __builtin_shufflevector(t2, t3, 2, 3, 6, 7);
        }
        return;
    }
    load_lanes<uint32_t>(mask, 4, p.at, data);
}
void kw_store_4x4(Warp* w, uint32_t mask, uint32_t site, u64 a, u64 b, u64 c, u64 d, const u32* data) {
    Addresses p(a, b, c, d);
    mask = check_global(w, mask, site, 16, p.at, 1);
    const uint32_t* in = (const uint32_t*)data;
    if (mask == ~0u) {
        for (int i = 0; i < 32; i += 4) {
            typedef uint32_t q __attribute__((vector_size(16), aligned(4)));
            q r0 = *(const q*)(in + i), r1 = *(const q*)(in + 32 + i), r2 = *(const q*)(in + 64 + i), r3 = *(const q*)(in + 96 + i);
            q t0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), t1 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
            q t2 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7), t3 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
            *(q*)p.at[i] = __builtin_shufflevector(t0, t1, 0, 1, 4, 5);
            *(q*)p.at[i + 1] = __builtin_shufflevector(t0, t1, 2, 3, 6, 7);
            *(q*)p.at[i + 2] = __builtin_shufflevector(t2, t3, 0, 1, 4, 5);
            *(q*)p.at[i + 3] = __builtin_shufflevector(t2, t3, 2, 3, 6, 7);
        }
        return;
    }
    store_lanes<uint32_t>(mask, 4, p.at, data);
}
void kw_load_shared(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, u32 a, u32 b, void* data) {
    Addresses p(w->shared, a, b);
    mask = check_shared(w, mask, site, bytes * n, p.at, 0);
    load_any(mask, bytes, n, p.at, data);
}
void kw_store_shared(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, u32 a, u32 b, const void* data) {
    Addresses p(w->shared, a, b);
    mask = check_stored(w, mask, site, bytes, n, p.at, data);
    store_any(mask, bytes, n, p.at, data);
}
void kw_load_shared_4(Warp* w, uint32_t mask, uint32_t site, u32 a, u32 b, u32* data) {
    if (CHECKED) {
        Addresses p(w->shared, a, b);
        mask = check_shared(w, mask, site, 4, p.at, 0);
    }
    if (mask == ~0u) {
        if (consecutive(a, b, 4)) {
            memcpy(data, w->shared + a[0], 128);
            return;
        }
        if (equal(a, b)) {
            data[0] = data[1] = b32(*(const uint32_t*)(w->shared + a[0]));
            return;
        }
#ifdef KW512
        data[0] = (u32)_mm512_i32gather_epi32((__m512i)a, w->shared, 1);
        data[1] = (u32)_mm512_i32gather_epi32((__m512i)b, w->shared, 1);
        return;
#endif
    }
    Addresses p(w->shared, a, b);
    load_lanes<uint32_t>(mask, 1, p.at, data);
}
void kw_store_shared_4(Warp* w, uint32_t mask, uint32_t site, u32 a, u32 b, u32 x, u32 y) {
    u32 data[2] = {x, y};
    if (CHECKED) {
        Addresses p(w->shared, a, b);
        mask = check_stored(w, mask, site, 4, 1, p.at, data);
    }
    if (mask == ~0u && consecutive(a, b, 4)) {
        memcpy(w->shared + a[0], data, 128);
        return;
    }
    Addresses p(w->shared, a, b);
    store_lanes<uint32_t>(mask, 1, p.at, data);
}
uint64_t kw_load_uniform(Warp* w, uint32_t mask, uint32_t site, int bytes, uint64_t address) {
    if (!mask || !check_uniform(w, mask, site, bytes, address, 0)) return 0;
    uint64_t x = 0;
    memcpy(&x, (const void*)address, (size_t)bytes);
    return x;
}
uint64_t kw_load_shared_uniform(Warp* w, uint32_t mask, uint32_t site, int bytes, uint32_t address) {
    if (!mask || !check_uniform(w, mask, site, bytes, (uint64_t)w->shared + address, 1)) return 0;
    uint64_t x = 0;
    memcpy(&x, w->shared + address, (size_t)bytes);
    return x;
}
void kw_load_local(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, u64 a, u64 b, u64 c, u64 d, void* data) {
    Addresses p(a + kw_local_base(w, 0), b + kw_local_base(w, 1), c + kw_local_base(w, 2), d + kw_local_base(w, 3));
    mask = check_local(w, mask, site, bytes * n, p.at);
    load_any(mask, bytes, n, p.at, data);
}
void kw_store_local(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, u64 a, u64 b, u64 c, u64 d, const void* data) {
    Addresses p(a + kw_local_base(w, 0), b + kw_local_base(w, 1), c + kw_local_base(w, 2), d + kw_local_base(w, 3));
    mask = check_local(w, mask, site, bytes * n, p.at);
    store_any(mask, bytes, n, p.at, data);
}
void kw_ldmatrix(Warp* w, uint32_t mask, uint32_t site, int n, int transposed, u32 a, u32 b, u32* data) {
    Addresses p(w->shared, a, b);
    uint32_t rows = n == 4 ? ~0u : (1u << (8 * n)) - 1;
    if ((check_shared(w, mask & rows, site, 16, p.at, 0) & rows) != (mask & rows) && CHECKED) {
        for (int i = 0; i < 2 * n; i++) data[i] = b32(0);
        return;
    }
    for (int k = 0; k < n; k++) {
        if (!transposed) {
            for (int r = 0; r < 8; r++) memcpy((uint8_t*)data + 128 * k + 16 * r, (const void*)p.at[8 * k + r], 16);
        } else {  // lane 4c + q holds rows 2q and 2q + 1 of column c
            uint16_t* out = (uint16_t*)data + 64 * k;
            for (int r = 0; r < 8; r++) {
                const uint16_t* row = (const uint16_t*)p.at[8 * k + r];
                for (int c = 0; c < 8; c++) out[8 * c + r] = row[c];
            }
        }
    }
}
void kw_stmatrix(Warp* w, uint32_t mask, uint32_t site, int n, int transposed, u32 a, u32 b, const u32* data) {
    Addresses p(w->shared, a, b);
    uint32_t rows = n == 4 ? ~0u : (1u << (8 * n)) - 1;
    if ((check_shared(w, mask & rows, site, 16, p.at, 1) & rows) != (mask & rows) && CHECKED) return;
    for (int k = 0; k < n; k++)
        for (int r = 0; r < 8; r++) {
            const uint16_t* in = (const uint16_t*)data + 64 * k;
            if (!transposed) memcpy((void*)p.at[8 * k + r], in + 8 * r, 16);
            else
                for (int c = 0; c < 8; c++) ((uint16_t*)p.at[8 * k + r])[c] = in[8 * c + r];
        }
}
}

template <class S> static S combine(int op, S old, S a, S b) {
    switch (op) {
        case OP_ADD: return (S)(old + a);
        case OP_MIN: return a < old ? a : old;
        case OP_MAX: return a > old ? a : old;
        case OP_EXCH: return a;
        default: return old == b ? a : old;
    }
}
template <class S> static S combine_bits(int op, S old, S a, S b) {
    switch (op) {
        case OP_AND: return old & a;
        case OP_OR: return old | a;
        case OP_XOR: return old ^ a;
        case OP_INC: return old >= a ? 0 : (S)(old + 1);
        case OP_DEC: return old == 0 || old > a ? a : (S)(old - 1);
        case OP_CAS: return old == a ? b : old;  // compare with a, exchange for b
        default: return combine<S>(op, old, a, b);
    }
}
static uint16_t half_combine(int op, int bf, uint16_t old, uint16_t a) {
    float x = bf ? bf16_to_float(old) : half_to_float(old), y = bf ? bf16_to_float(a) : half_to_float(a);
    float r = op == OP_ADD ? x + y : op == OP_MIN ? min_one(x, y) : max_one(x, y);
    return op == OP_EXCH ? a : bf ? float_to_bf16(r) : float_to_half(r);
}
template <class S, class F> static S atomically(uint64_t at, F f) {
    S* p = (S*)at;
    S old = __atomic_load_n(p, __ATOMIC_RELAXED), next;
    do next = f(old);
    while (!__atomic_compare_exchange_n(p, &old, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return old;
}

extern "C" void kw_atomic(Warp* w, uint32_t mask, uint32_t site, int space, int op, int type, int n, const u64* address, const void* va,
                          const void* vb, void* result) {
    const uint64_t* at = (const uint64_t*)address;
    int bytes = type == T_U16 || type == T_S16 || type == T_F16 || type == T_BF16 ? 2 : type == T_U64 || type == T_S64 || type == T_F64 ? 8 : 4;
    mask = check_atomic(w, mask, site, bytes * n, at, space);
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        for (int k = 0; k < n; k++) {
            uint64_t p = at[i] + (uint64_t)(k * bytes), old;
            if (bytes == 2) {
                uint16_t a = ((const uint16_t*)va)[k * 32 + i], b = vb ? ((const uint16_t*)vb)[k * 32 + i] : 0;
                old = atomically<uint16_t>(p, [&](uint16_t o) {
                    return type == T_F16 || type == T_BF16 ? half_combine(op, type == T_BF16, o, a) : combine_bits<uint16_t>(op, o, a, b);
                });
                if (result) ((uint16_t*)result)[k * 32 + i] = (uint16_t)old;
            } else if (bytes == 8) {
                uint64_t a = ((const uint64_t*)va)[k * 32 + i], b = vb ? ((const uint64_t*)vb)[k * 32 + i] : 0;
                old = atomically<uint64_t>(p, [&](uint64_t o) -> uint64_t {
                    if (type == T_F64 && op != OP_EXCH && op != OP_CAS) return bits_of(combine<double>(op, as_f64(o), as_f64(a), 0));
                    if (type == T_S64 && (op == OP_MIN || op == OP_MAX)) return (uint64_t)combine<int64_t>(op, (int64_t)o, (int64_t)a, 0);
                    return combine_bits<uint64_t>(op, o, a, b);
                });
                if (result) ((uint64_t*)result)[k * 32 + i] = old;
            } else {
                uint32_t a = ((const uint32_t*)va)[k * 32 + i], b = vb ? ((const uint32_t*)vb)[k * 32 + i] : 0;
                if (op == OP_ADD && (type == T_U32 || type == T_S32)) old = __atomic_fetch_add((uint32_t*)p, a, __ATOMIC_ACQ_REL);
                else
                    old = atomically<uint32_t>(p, [&](uint32_t o) -> uint32_t {
                        if (type == T_F32 && op != OP_EXCH && op != OP_CAS)
                            return op == OP_ADD ? bits_of(as_f32(o) + as_f32(a)) : op == OP_MIN ? min_f32(o, a) : max_f32(o, a);
                        if (type == T_S32 && (op == OP_MIN || op == OP_MAX)) return (uint32_t)combine<int32_t>(op, (int32_t)o, (int32_t)a, 0);
                        if (type == T_F16X2 || type == T_BF16X2)
                            return half_combine(op, type == T_BF16X2, (uint16_t)o, (uint16_t)a) |
                                   (uint32_t)half_combine(op, type == T_BF16X2, (uint16_t)(o >> 16), (uint16_t)(a >> 16)) << 16;
                        return combine_bits<uint32_t>(op, o, a, b);
                    });
                if (result) ((uint32_t*)result)[k * 32 + i] = (uint32_t)old;
            }
        }
    }
}

#include "bulk.h"
