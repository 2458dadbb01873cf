// What a translated kernel includes: precompiled once for all of them.
#pragma once
#include "lanes.h"

static const u32 kw_lane[2] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};
static const u32 kw_lane_eq[2] = {b32(1) << kw_lane[0], b32(1) << kw_lane[1]};
static const u32 kw_lane_lt[2] = {kw_lane_eq[0] - 1, kw_lane_eq[1] - 1};
static const u32 kw_lane_le[2] = {kw_lane_lt[0] | kw_lane_eq[0], kw_lane_lt[1] | kw_lane_eq[1]};
static const u32 kw_lane_gt[2] = {~kw_lane_le[0], ~kw_lane_le[1]};
static const u32 kw_lane_ge[2] = {~kw_lane_lt[0], ~kw_lane_lt[1]};

KW_INLINE uint32_t kw_mix(uint32_t m, uint32_t a, uint32_t b) { return (a & m) | (b & ~m); }
KW_INLINE uint32_t kw_any_lane(u32 a, u32 b, uint32_t m) {
    int lane = m ? __builtin_ctz(m) : 0;
    return lane < 16 ? a[lane & 15] : b[lane & 15];
}
template <class T> KW_INLINE T kw_read(uint64_t address) { T x; __builtin_memcpy(&x, (const void*)address, sizeof x); return x; }
KW_INLINE u64 kw_local_base(Warp* w, int part) {
    const u64 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return b64((uint64_t)w->local) + (lane + 8ull * (uint64_t)part) * (uint64_t)w->local_bytes;
}
// A parameter's address from its offset (of at most 32 KiB), or as it is.
KW_INLINE uint64_t kw_parameter(Warp* w, uint64_t a) { return a < (1 << 16) ? a + (uint64_t)w->params : a; }
KW_INLINE u64 kw_parameter(Warp* w, u64 a) { return a + ((u64)(a < (1 << 16)) & (uint64_t)w->params); }
uint32_t kw_in_range(u64 a, u64 b, u64 c, u64 d, uint64_t begin, uint64_t size);
uint64_t kw_shared_size(Warp* w);
KW_INLINE uint32_t kw_is_shared(Warp* w, u64 a, u64 b, u64 c, u64 d) { return kw_in_range(a, b, c, d, (uint64_t)w->shared, kw_shared_size(w)); }
KW_INLINE uint32_t kw_is_local(Warp* w, u64 a, u64 b, u64 c, u64 d) { return kw_in_range(a, b, c, d, (uint64_t)w->local, 32ull * w->local_bytes); }
uint32_t kw_dynamic_shared(Warp* w);
uint32_t kw_total_shared(Warp* w);
uint32_t kw_grid_workspace(Warp* w, int which);
void kw_barrier_value(Warp* w, uint32_t mask, uint32_t predicate, int kind);

KW_INLINE uint32_t kw_relu(uint32_t a) { return (int32_t)a < 0 ? 0 : a; }
KW_INLINE u32 kw_relu(u32 a) { return max_s32(a, b32(0)); }
#define kw_pairs(f, a, b) kw_pairs_((a), (b), [](auto x, auto y) { return f(x, y); })
template <class F> KW_INLINE u32 kw_pairs_(u32 a, u32 b, F f) { return (u32)f((u16)a, (u16)b); }
template <class F> KW_INLINE uint32_t kw_pairs_(uint32_t a, uint32_t b, F f) {
    return (uint32_t)(uint16_t)f((uint16_t)a, (uint16_t)b) | (uint32_t)(uint16_t)f((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
}
// One step of a carry chain: `carry` in and out.
template <class S> KW_INLINE S kw_addc_one(S a, S b, uint32_t& c) { S s = a + b, r = s + (c ? 1 : 0); c = s < a || r < s ? ~0u : 0; return r; }
template <class S> KW_INLINE S kw_subc_one(S a, S b, uint32_t& c) { S s = a - b, r = s - (c ? 1 : 0); c = a < b || s < r ? ~0u : 0; return r; }
KW_INLINE uint32_t kw_addc(uint32_t a, uint32_t b, uint32_t& c) { return kw_addc_one(a, b, c); }
KW_INLINE uint64_t kw_addc(uint64_t a, uint64_t b, uint32_t& c) { return kw_addc_one(a, b, c); }
KW_INLINE uint32_t kw_subc(uint32_t a, uint32_t b, uint32_t& c) { return kw_subc_one(a, b, c); }
KW_INLINE uint64_t kw_subc(uint64_t a, uint64_t b, uint32_t& c) { return kw_subc_one(a, b, c); }
u32 kw_addc(u32 a, u32 b, uint32_t& c);
u64 kw_addc(u64 a, u64 b, uint32_t& c);
u32 kw_subc(u32 a, u32 b, uint32_t& c);
u64 kw_subc(u64 a, u64 b, uint32_t& c);
u32 kw_round_ints(u32 a, int mode, int is_signed);
uint32_t kw_round_int(uint32_t a, int mode, int is_signed);
