// Queries, carry chains, shuffles and votes, printf: calls that no variant of the runtime changes.
#include "kernel.h"
#include "block.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint32_t kw_in_range(u64 a, u64 b, u64 c, u64 d, uint64_t begin, uint64_t size) {
    u64 v[4] = {a, b, c, d};
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) r |= (uint32_t)(v[i >> 3][i & 7] - begin < size) << i;
    return r;
}
uint64_t kw_shared_size(Warp* w) { return w->block->shared_bytes; }
uint32_t kw_dynamic_shared(Warp* w) { return w->block->launch->shared_bytes; }
uint32_t kw_total_shared(Warp* w) { return (uint32_t)w->block->shared_bytes; }
uint32_t kw_grid_workspace(Warp* w, int which) {
    uint64_t address = w->block->launch->cooperative ? (uint64_t)w->block->grid->workspace : 0;
    return (uint32_t)(which == 1 ? address >> 32 : address);
}
void kw_barrier_value(Warp* w, uint32_t mask, uint32_t predicate, int kind) {
    uint32_t yes = mask & predicate;
    w->barrier_value = kind == 0 ? (uint32_t)__builtin_popcount(yes) : kind == 1 ? !(mask & ~predicate) : yes != 0;
    w->barrier_result = (uint32_t)kind;
}

#define KW_CHAIN(name, V, S, n)                                                       \
    V name(V a, V b, uint32_t& c) {                                                   \
        V r;                                                                          \
        uint32_t out = 0;                                                             \
        for (int i = 0; i < n; i++) {                                                 \
            uint32_t one = c >> i & 1;                                                \
            r[i] = name##_one((S)a[i], (S)b[i], one);                                 \
            out |= (one & 1) << i;                                                    \
        }                                                                             \
        c = out;                                                                      \
        return r;                                                                     \
    }
KW_CHAIN(kw_addc, u32, uint32_t, 16)
KW_CHAIN(kw_addc, u64, uint64_t, 8)
KW_CHAIN(kw_subc, u32, uint32_t, 16)
KW_CHAIN(kw_subc, u64, uint64_t, 8)

uint32_t kw_round_int(uint32_t a, int mode, int is_signed) { return bits_of(round_f32(is_signed ? (double)(int32_t)a : (double)a, 0, mode)); }
u32 kw_round_ints(u32 a, int mode, int is_signed) {
    u32 r;
    for (int i = 0; i < 16; i++) r[i] = kw_round_int(a[i], mode, is_signed);
    return r;
}

KW_INLINE u32 permute(u32 low, u32 high, u32 index) {
#ifdef KW512
    return (u32)_mm512_permutex2var_epi32((__m512i)low, (__m512i)index, (__m512i)high);
#else
    u32 r;
    for (int i = 0; i < 16; i++) r[i] = index[i] & 16 ? high[index[i] & 15] : low[index[i] & 15];
    return r;
#endif
}

uint32_t kw_shuffle(Warp* w, uint32_t mask, uint32_t site, int mode, uint32_t members, const u32* value, u32 b0, u32 b1, u32 c0, u32 c1,
                    u32* result) {
    u32 b[2] = {b0 & 31, b1 & 31}, c[2] = {c0, c1};
    uint32_t valid = 0;
    for (int h = 0; h < 2; h++) {
        u32 lane = kw_lane[h], segment = c[h] >> 8 & 31, clamp = c[h] & 31;
        u32 least = lane & segment, most = least | (clamp & ~segment), source;
        u32 ok;
        switch (mode) {
            case 0: source = lane - b[h]; ok = (u32)((i32)source >= (i32)most); break;
            case 1: source = lane + b[h]; ok = (u32)((i32)source <= (i32)most); break;
            case 2: source = lane ^ b[h]; ok = (u32)((i32)source <= (i32)most); break;
            default: source = least | (b[h] & ~segment); ok = (u32)((i32)source <= (i32)most);
        }
        source = (source & ok) | (lane & ~ok);
        result[h] = permute(value[0], value[1], source);
#ifdef KW512
        valid |= (uint32_t)_mm512_movepi32_mask((__m512i)ok) << (16 * h);
#else
        for (int i = 0; i < 16; i++) valid |= (ok[i] & 1) << (i + 16 * h);
#endif
    }
    return valid;
}

template <class S, class V> static uint32_t match_any(uint32_t mask, const V* value, u32* result) {
    const S* v = (const S*)value;
    uint32_t* r = (uint32_t*)result;
    for (int i = 0; i < 32; i++) {
        r[i] = 0;
        if (!(mask >> i & 1)) continue;
        for (int j = 0; j < 32; j++) r[i] |= (uint32_t)((mask >> j & 1) && v[i] == v[j]) << j;
    }
    return 0;
}
uint32_t kw_match_any(Warp*, uint32_t mask, int bytes, const void* value, u32* result) {
    return bytes == 4 ? match_any<uint32_t>(mask, (const u32*)value, result) : match_any<uint64_t>(mask, (const u64*)value, result);
}
uint32_t kw_match_all(Warp* w, uint32_t mask, int bytes, const void* value, uint32_t* result) {
    u32 found[2];
    kw_match_any(w, mask, bytes, value, found);
    bool all = mask && ((uint32_t*)found)[__builtin_ctz(mask)] == mask;
    *result = all ? ~0u : 0;
    return all ? mask : 0;
}
uint32_t kw_redux(Warp*, uint32_t mask, int op, int type, u32 a, u32 b) {
    uint32_t r = 0;
    bool first = true;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t x = i < 16 ? a[i] : b[i - 16];
        if (first) { r = x; first = false; continue; }
        switch (op) {
            case OP_ADD: r += x; break;
            case OP_MIN: r = type == T_S32 ? ((int32_t)x < (int32_t)r ? x : r) : (x < r ? x : r); break;
            case OP_MAX: r = type == T_S32 ? ((int32_t)x > (int32_t)r ? x : r) : (x > r ? x : r); break;
            case OP_AND: r &= x; break;
            case OP_OR: r |= x; break;
            default: r ^= x;
        }
    }
    return r;
}

uint64_t kw_clock(void) {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return ((uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec) * 3 / 2;
}
uint64_t kw_globaltimer(void) {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

// One call of the device's printf: the arguments lie one behind the other, each aligned to its size.
static void print_one(const char* format, const uint8_t* arguments) {
    uint64_t at = 0;
    char piece[64], out[256];
    for (const char* p = format; *p;) {
        if (*p != '%') { putchar(*p++); continue; }
        if (p[1] == '%') { putchar('%'); p += 2; continue; }
        int n = 0, longs = 0;
        while (*p && n < 60) {
            char ch = *p++;
            if (ch == 'l' || ch == 'j' || ch == 'z' || ch == 't') { longs++; continue; }
            if (ch == 'h') continue;
            if (ch == '*') {
                at = (at + 3) & ~3ull;
                n += snprintf(piece + n, sizeof piece - (size_t)n, "%d", *(const int*)(arguments + at));
                at += 4;
                continue;
            }
            bool conversion = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
            if (!conversion) { piece[n++] = ch; continue; }
            if (ch == 's' || ch == 'p' || longs || strchr("eEfFgGaA", ch)) at = (at + 7) & ~7ull; else at = (at + 3) & ~3ull;
            const uint8_t* value = arguments + at;
            if (strchr("eEfFgGaA", ch)) {
                piece[n++] = ch; piece[n] = 0;
                snprintf(out, sizeof out, piece, *(const double*)value);
                fputs(out, stdout);
                at += 8;
            } else if (ch == 's') {
                piece[n++] = ch; piece[n] = 0;
                printf(piece, *(const char* const*)value);
                at += 8;
            } else if (ch == 'p' || longs) {
                piece[n++] = 'l'; piece[n++] = 'l'; piece[n++] = ch == 'p' ? 'x' : ch; piece[n] = 0;
                if (ch == 'p') fputs("0x", stdout);
                printf(piece, *(const long long*)value);
                at += 8;
            } else {
                piece[n++] = ch; piece[n] = 0;
                printf(piece, *(const int*)value);
                at += 4;
            }
            break;
        }
    }
}
void kw_printf(Warp* w, uint32_t mask, u64 f0, u64 f1, u64 f2, u64 f3, u64 a0, u64 a1, u64 a2, u64 a3) {
    u64 f[4] = {f0, f1, f2, f3}, a[4] = {a0, a1, a2, a3};
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        print_one((const char*)f[i >> 3][i & 7], (const uint8_t*)a[i >> 3][i & 7]);
    }
    fflush(stdout);
}
void kw_assert(Warp* w, uint32_t mask, uint32_t site, u64 m0, u64 m1, u64 m2, u64 m3) {
    u64 text[4] = {m0, m1, m2, m3};
    if (!mask) return;
    int i = __builtin_ctz(mask);
    kw_fault(w, F_ASSERT, site, i, text[i >> 3][i & 7], 0);
    kw_stop_grid(w);
}
void kw_trap(Warp* w, uint32_t mask, uint32_t site) {
    if (!mask) return;
    kw_fault(w, F_TRAP, site, __builtin_ctz(mask), 0, 0);
    kw_stop_grid(w);
}
void kw_malloc(Warp*, uint32_t mask, const u64* size, u64* result) {
    for (int i = 0; i < 32; i++) result[i >> 3][i & 7] = mask >> i & 1 ? (uint64_t)malloc(size[i >> 3][i & 7]) : 0;
}
void kw_free(Warp*, uint32_t mask, const u64* address) {
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        free((void*)address[i >> 3][i & 7]);
    }
}
