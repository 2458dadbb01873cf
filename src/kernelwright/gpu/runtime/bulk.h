// Of `memory.cpp`: barriers in shared memory (mbarrier), bulk copies and copies of tiles by a tensor map.
//
// A barrier's word: arrivals that are missing, how many a phase expects, bytes that are under way, the phase's parity. Plain, a copy is
// done where it is issued. Checked, one that a barrier tells of is done when somebody asks that barrier, and its place may not be read
// before; what a copy reads is looked at where it is issued and again where it has been waited for.
#pragma once

struct TensorMap {  // our own layout of the 128 bytes that nobody else reads
    uint64_t address;
    uint8_t rank, element, swizzle, fill, interleave, type, unused[2];
    uint32_t extent[5], box[5], step[5];
    uint32_t mark;
    uint64_t stride[4];
    uint8_t rest[16];
};
static_assert(sizeof(TensorMap) == 128);
enum { MAP_MARK = 0x6b77746d };

struct Phase {
    uint64_t word;
    enum : uint64_t { COUNT = (1 << 20) - 1, BYTES = (1 << 22) - 1, PARITY = 1ull << 62, VALID = 1ull << 63 };
    uint32_t missing() const { return (uint32_t)(word & COUNT); }
    uint32_t expected() const { return (uint32_t)(word >> 20 & COUNT); }
    int32_t bytes() const { return (int32_t)(((uint32_t)(word >> 40) & BYTES) << 10) >> 10; }
    uint32_t parity() const { return (word & PARITY) != 0; }
    void set(uint32_t missing, uint32_t expected, int32_t bytes, uint32_t parity) {
        word = VALID | (parity ? (uint64_t)PARITY : 0) | ((uint64_t)((uint32_t)bytes & BYTES) << 40) | (uint64_t)expected << 20 | missing;
    }
    void change(int64_t arrivals, int64_t bytes_more, uint32_t fewer = 0) {
        int64_t left = (int64_t)missing() - arrivals, open = bytes() + bytes_more;
        uint32_t next = expected() - fewer;
        if (left <= 0 && open == 0) set(next, next, 0, !parity());
        else set(left < 0 ? 0 : (uint32_t)left, next, (int32_t)open, parity());
    }
};

// One innermost row of a tile: `inside` of its elements from `skip` on are in the tensor.
struct TileRow { uint64_t global; uint32_t shared, bytes, skip, inside; };
template <class F> static void tile_rows(const TensorMap& t, const int32_t* c, uint32_t start, F f) {
    uint32_t at[5] = {}, e = t.element, row = t.box[0] * e, o = start;
    for (;;) {
        uint64_t g = t.address;
        bool in = true;
        for (int k = 1; k < t.rank; k++) {
            int64_t x = (int64_t)c[k] + (int64_t)at[k] * t.step[k];
            in = in && x >= 0 && x < (int64_t)t.extent[k];
            g += (uint64_t)x * t.stride[k - 1];
        }
        int64_t first = c[0] < 0 ? -(int64_t)c[0] : 0, last = (int64_t)t.extent[0] - c[0];
        if (last > (int64_t)t.box[0]) last = t.box[0];
        if (!in || last < first) last = first = 0;
        f(TileRow{g + (uint64_t)((int64_t)(c[0] + first) * e), o, row, (uint32_t)first * e, (uint32_t)(last - first) * e});
        o += row;
        int k = 1;
        for (; k < t.rank; k++) {
            if (++at[k] < t.box[k]) break;
            at[k] = 0;
        }
        if (k >= t.rank) return;
    }
}
static inline uint32_t swizzled(uint32_t o, int mode) {
    return mode == 3 ? o ^ ((o >> 7 & 7) << 4) : mode == 2 ? o ^ ((o >> 7 & 3) << 4) : mode == 1 ? o ^ ((o >> 7 & 1) << 4) : o;
}
static uint32_t tile_bytes(const TensorMap& t) {
    uint32_t n = t.element;
    for (int k = 0; k < t.rank; k++) n *= t.box[k];
    return n;
}
static void load_row(uint8_t* shared, const TileRow& r, const TensorMap& t) {
    for (uint32_t x = 0; x < r.bytes;) {
        uint32_t o = r.shared + x, n = 16 - (o & 15);
        if (n > r.bytes - x) n = r.bytes - x;
        uint8_t* to = shared + swizzled(o, t.swizzle);
        if (x >= r.skip && x + n <= r.skip + r.inside) memcpy(to, (const uint8_t*)r.global + (x - r.skip), n);
        else
            for (uint32_t b = 0; b < n; b++)
                to[b] = x + b >= r.skip && x + b < r.skip + r.inside ? ((const uint8_t*)r.global)[x + b - r.skip] : t.fill ? 0xff : 0;
        x += n;
    }
}
static uint64_t sum_of(int op, int type, uint64_t old, uint64_t a) {
    enum { C_U16 = 1, C_U32, C_S32, C_U64, C_S64, C_F16, C_F32, C_F64, C_BF16 };
    switch (type) {
        case C_F16: return half_combine(op, 0, (uint16_t)old, (uint16_t)a);
        case C_BF16: return half_combine(op, 1, (uint16_t)old, (uint16_t)a);
        case C_F32: return op == OP_ADD ? bits_of(as_f32((uint32_t)old) + as_f32((uint32_t)a)) : op == OP_MIN ? min_f32((uint32_t)old, (uint32_t)a) : max_f32((uint32_t)old, (uint32_t)a);
        case C_F64: return bits_of(combine<double>(op, as_f64(old), as_f64(a), 0));
        case C_S32: return op == OP_MIN || op == OP_MAX ? (uint32_t)combine<int32_t>(op, (int32_t)old, (int32_t)a, 0) : combine_bits<uint32_t>(op, (uint32_t)old, (uint32_t)a, 0);
        case C_S64: return op == OP_MIN || op == OP_MAX ? (uint64_t)combine<int64_t>(op, (int64_t)old, (int64_t)a, 0) : combine_bits<uint64_t>(op, old, a, 0);
        default: return combine_bits<uint64_t>(op, old, a, 0);
    }
}
static void put_bytes(uint64_t to, const uint8_t* from, uint32_t n, int op, int type, uint32_t element) {
    if (op < 0) return (void)memcpy((void*)to, from, n);
    for (uint32_t x = 0; x < n; x += element) {
        uint64_t a = 0;
        memcpy(&a, from + x, element);
        if (element == 2) atomically<uint16_t>(to + x, [&](uint16_t o) { return (uint16_t)sum_of(op, type, o, a); });
        else if (element == 4) atomically<uint32_t>(to + x, [&](uint32_t o) { return (uint32_t)sum_of(op, type, o, a); });
        else atomically<uint64_t>(to + x, [&](uint64_t o) { return sum_of(op, type, o, a); });
    }
}
static void store_row(const uint8_t* shared, const TileRow& r, const TensorMap& t, int op) {
    uint8_t row[16];
    for (uint32_t x = r.skip; x < r.skip + r.inside;) {
        uint32_t o = r.shared + x, n = 16 - (o & 15);
        if (n > r.skip + r.inside - x) n = r.skip + r.inside - x;
        memcpy(row, shared + swizzled(o, t.swizzle), n);
        put_bytes(r.global + (x - r.skip), row, n, op, t.type, t.element);
        x += n;
    }
}
// The block in whose shared memory an address lies: this one, or another of its cluster.
static Block* owner_of(Warp* w, uint64_t a) {
    Block* b = w->block;
    if (a - (uint64_t)b->shared < b->shared_bytes || !b->cluster) return b;
    for (Block* other : b->cluster->blocks)
        if (a - (uint64_t)other->shared < other->shared_bytes) return other;
    return b;
}

static void set_field(TensorMap& t, int field, uint32_t number, uint64_t v) {
    static const uint8_t sizes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4, 1, 1, 1};
    static const uint8_t kinds[16] = {0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 7, 7, 0, 0, 0};
    t.mark = MAP_MARK;
    if (field == TILE_ADDRESS) t.address = v;
    else if (field == TILE_RANK) t.rank = (uint8_t)(v + 1);
    else if (field == TILE_BOX) t.box[number % 5] = (uint32_t)v;
    else if (field == TILE_EXTENT) t.extent[number % 5] = (uint32_t)v;
    else if (field == TILE_STRIDE) t.stride[number % 4] = v;
    else if (field == TILE_STEP) t.step[number % 5] = (uint32_t)v;
    else if (field == TILE_TYPE) t.element = sizes[v & 15], t.type = kinds[v & 15];
    else if (field == TILE_INTERLEAVE) t.interleave = (uint8_t)v;
    else if (field == TILE_SWIZZLE) t.swizzle = (uint8_t)v;
    else t.fill = (uint8_t)v;
}

#if CHECKED
#include "bulk_checks.h"
#else
KW_INLINE bool mb_check(Warp*, uint32_t, int, uint64_t, int) { return true; }
KW_INLINE void mb_released(Warp*) {}
KW_INLINE void mb_acquire(Warp*, uint64_t) {}
KW_INLINE void mb_deliver(Warp*, uint64_t) {}
KW_INLINE bool map_check(Warp*, uint32_t, int, const TensorMap&) { return true; }
KW_INLINE bool map_field_check(Warp*, uint32_t, int, uint64_t) { return true; }
KW_INLINE bool bulk_check(Warp*, uint32_t, int, uint64_t, uint64_t, uint32_t, bool) { return true; }
KW_INLINE void bulk_defer(Warp*, uint32_t, int, uint64_t, std::function<void()> act, uint64_t, uint32_t bytes, uint64_t mbar) {
    act();
    ((Phase*)mbar)->change(0, -(int64_t)bytes);
}
KW_INLINE void tile_check(Warp*, uint32_t, int, const TensorMap&, const int32_t*, uint32_t, bool) {}
extern "C" {
void kw_bulk_commit(Warp*, uint32_t) {}
void kw_bulk_wait(Warp*, uint32_t, uint32_t, uint32_t) {}
void kw_wgmma_reads(Warp*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, int, uint64_t, int) {}
void kw_wgmma_commit(Warp*) {}
void kw_wgmma_wait(Warp*, uint32_t, uint32_t) {}
void kw_in_flight(Warp*, uint32_t, uint32_t) {}
}
#endif

extern "C" {
void kw_mbarrier(Warp* w, uint32_t mask, uint32_t site, int what, const u64* address, const u32* number, u64* result) {
    const uint64_t* at = (const uint64_t*)address;
    const uint32_t* n = (const uint32_t*)number;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        if (result) ((uint64_t*)result)[i] = 0;
        if (what == MB_PENDING) {
            ((uint64_t*)result)[i] = at[i] & Phase::COUNT;
            continue;
        }
        if (!mb_check(w, site, i, at[i], what)) continue;
        Phase& p = *(Phase*)at[i];
        if (result) ((uint64_t*)result)[i] = p.word;
        switch (what) {
            case MB_INIT: p.set(n[i] & Phase::COUNT, n[i] & Phase::COUNT, 0, 0); break;
            case MB_INVAL: p.word = 0; break;
            case MB_ARRIVE: p.change(n[i], 0); break;
            case MB_EXPECT: p.change(0, n[i]); break;
            case MB_ARRIVE_EXPECT: p.change(0, n[i]), p.change(1, 0); break;
            case MB_COMPLETE: p.change(0, -(int64_t)n[i]); break;
            case MB_DROP: p.change(n[i], 0, n[i]); break;
            case MB_COPIES: break;  // one more arrival expected, and made when the copies are done
            case MB_COPIES_NOINC: p.change(1, 0); break;
        }
    }
    mb_released(w);
}
uint32_t kw_mbarrier_test(Warp* w, uint32_t mask, uint32_t site, int by_parity, const u64* address, const u64* phase) {
    const uint64_t *at = (const uint64_t*)address, *want = (const uint64_t*)phase;
    uint32_t done = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        if (!mb_check(w, site, i, at[i], -1)) {
            done |= 1u << i;  // told; nobody waits for it any more
            continue;
        }
        mb_deliver(w, at[i]);
        Phase& p = *(Phase*)at[i];
        uint32_t asked = by_parity ? (uint32_t)want[i] & 1 : ((want[i] & Phase::PARITY) != 0);
        if (p.parity() == asked) continue;
        mb_acquire(w, at[i]);
        done |= 1u << i;
    }
    if (done != mask) w->site = site, w->fuel = 0;  // others first
    return done;
}
// A row of bytes between global memory and a block's own, or from one block's to another's.
void kw_bulk_load(Warp* w, uint32_t mask, uint32_t site, const u64* to, const u64* from, const u32* size, const u64* mbar, uint32_t members) {
    const uint64_t *t = (const uint64_t*)to, *f = (const uint64_t*)from, *b = (const uint64_t*)mbar;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t bytes = ((const uint32_t*)size)[i];
        if (!bulk_check(w, site, i, t[i], f[i], bytes, true)) continue;
        auto copy = [&](int64_t away) {
            uint64_t target = t[i] + (uint64_t)away, source = f[i];
            bulk_defer(w, site, i, target, [=] { memcpy((void*)target, (const void*)source, bytes); }, source, bytes, b[i] + (uint64_t)away);
        };
        if (!members || !w->block->cluster) copy(0);
        else
            for (size_t k = 0; k < w->block->cluster->blocks.size(); k++)
                if (members >> k & 1) copy((int64_t)(w->block->cluster->blocks[k]->shared - w->block->shared));
    }
}
void kw_bulk_store(Warp* w, uint32_t mask, uint32_t site, int op, int type, int element, const u64* to, const u64* from, const u32* size) {
    const uint64_t *t = (const uint64_t*)to, *f = (const uint64_t*)from;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint32_t bytes = ((const uint32_t*)size)[i];
        if (bulk_check(w, site, i, t[i], f[i], bytes, false)) put_bytes(t[i], (const uint8_t*)f[i], bytes, op, type, (uint32_t)element);
    }
}
// A tile by its map: into shared memory, or (`op` -1: as it is, else combined) out of it.
void kw_tile(Warp* w, uint32_t mask, uint32_t site, int load, int op, int rank, const u64* shared, const u64* map, const u32* places, const u64* mbar,
             uint32_t members) {
    const uint64_t *s = (const uint64_t*)shared, *t = (const uint64_t*)map, *b = (const uint64_t*)mbar;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        const TensorMap& from = *(const TensorMap*)t[i];
        int32_t c[5] = {};
        for (int k = 0; k < rank; k++) c[k] = (int32_t)((const uint32_t*)places)[32 * k + i];
        if (!map_check(w, site, i, from)) continue;
        if (from.mark != MAP_MARK || from.rank != rank || from.interleave || !tile_bytes(from)) {
            kw_fault(w, F_BAD_MAP, site, i, t[i], 0);
            continue;
        }
        Block* own = owner_of(w, s[i]);
        auto copy = [&](Block* to, uint64_t barrier) {
            uint32_t start = (uint32_t)(s[i] - (uint64_t)own->shared);
            uint8_t* memory = to->shared;
            tile_check(w, site, i, from, c, start, load);
            if (!load) return tile_rows(from, c, start, [&](const TileRow& r) { store_row(memory, r, from, op); });
            TensorMap kept = from;
            int32_t p[5] = {c[0], c[1], c[2], c[3], c[4]};
            bulk_defer(w, site, i, (uint64_t)memory + start,
                       [=] { tile_rows(kept, p, start, [&](const TileRow& r) { load_row(memory, r, kept); }); }, 0, tile_bytes(from), barrier);
        };
        if (!load || !members || !w->block->cluster) copy(own, load ? b[i] : 0);
        else
            for (size_t k = 0; k < w->block->cluster->blocks.size(); k++)
                if (members >> k & 1) {
                    Block* to = w->block->cluster->blocks[k];
                    copy(to, b[i] + (uint64_t)(to->shared - own->shared));
                }
    }
}
void kw_tensor_map(Warp* w, uint32_t mask, uint32_t site, int field, int number, const u64* address, const u64* value) {
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint64_t at = ((const uint64_t*)address)[i], v = ((const uint64_t*)value)[i];
        if (field == TILE_COPY) {
            memcpy((void*)at, (const void*)v, 128);
            return;  // once for the warp
        }
        if (map_field_check(w, site, i, at)) set_field(*(TensorMap*)at, field, (uint32_t)number, v);
    }
}
// 32-bit addresses in the window of a cluster: the block's rank, one higher, in the upper eight bits; 0 is the block itself.
void kw_cluster_addresses(Warp* w, u32 a, u32 b, u64* out) {
    uint32_t in[32];
    *(u32*)in = a, *(u32*)(in + 16) = b;
    for (int i = 0; i < 32; i++) {
        uint32_t rank = in[i] >> 24;
        Block* to = rank && w->block->cluster && rank <= w->block->cluster->blocks.size() ? w->block->cluster->blocks[rank - 1] : w->block;
        ((uint64_t*)out)[i] = (uint64_t)to->shared + (in[i] & 0xffffff);
    }
}
uint32_t kw_mapa_32(Warp*, uint32_t a, uint32_t rank) { return (a & 0xffffff) | (rank + 1) << 24; }
uint64_t kw_mapa_64(Warp* w, uint64_t a, uint32_t rank) {
    Block* own = owner_of(w, a);
    if (!w->block->cluster || rank >= w->block->cluster->blocks.size()) return a;
    return (uint64_t)w->block->cluster->blocks[rank]->shared + (a - (uint64_t)own->shared);
}
uint32_t kw_rank_of(Warp* w, uint64_t a) {
    if (w->block->cluster)
        for (size_t k = 0; k < w->block->cluster->blocks.size(); k++)
            if (w->block->cluster->blocks[k] == owner_of(w, a)) return (uint32_t)k;
    return 0;
}
}
