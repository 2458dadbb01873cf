// Of `memory.cpp`, the checked variant: bounds, alignment, uninitialised and racing accesses, copies not waited for; and counts.
//
// Shared memory has two shadow cells for each granule (the least size that the kernel accesses): who wrote it last and who read
// it, each with the block's count of barriers and releases before. A warp knows up to which count each other warp is in order with
// it: after a barrier of all, of some, or in shared memory. An access races with one of another warp that it is not in order with,
// if one of them writes, not both are atomic, and it is not a write of what another has written there already (compilers have
// warps that hold the same values all store them). Global memory has one cell for each granule with the blocks that wrote and read
// it; a block that has used an atomic or an acquiring load is taken to be in order with the others.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <sys/mman.h>
#include <unordered_map>
#define CHECKED 1

enum { ATOMIC = 128, PENDING = 64, MANY = 63 };

struct Copy { uint64_t to, from; uint32_t size, given, site, lane; };
struct Stretch { uint64_t begin; uint32_t bytes, site, lane; };  // of shared memory, read until something has been waited for
struct WarpCopies {
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;
    std::vector<Stretch> product, stored;
    std::vector<std::vector<Stretch>> products, stores;
};
struct Bulk { std::function<void()> act; Block* to; uint64_t first, last; uint32_t warp, time, bytes; };
struct Mbarrier {
    uint32_t seen[32] = {}, made = 0, maker = 0;
    bool valid = false;
    std::vector<Copy> copies;
    std::vector<Bulk> tiles;
};
struct Line { uint64_t number; uint32_t sectors; };  // of 128 bytes; which of its four sectors are there
enum { WAYS = 8 };
struct BlockChecks {
    std::vector<uint32_t> wrote, read;
    uint32_t epoch = 1, tag = 1, warps = 0, cluster_epoch = 0;
    bool synced = false, partial = false, pending_release = false;
    uint32_t seen[32][32], low[32], joined[17][32];  // of each warp: up to which count others are in order with it, and the least of these
    std::vector<std::array<uint32_t, 32>> readers;   // where several warps read, and barriers are not of all
    std::unordered_map<uint64_t, Mbarrier> mbarriers;
    void joins(uint32_t warp, const uint32_t* other) {
        uint32_t least = ~0u;
        for (uint32_t v = 0; v < 32; v++) {
            seen[warp][v] = std::max(seen[warp][v], other[v]);
            if (v < warps) least = std::min(least, seen[warp][v]);
        }
        low[warp] = least;
    }
    std::vector<WarpCopies> copies;
    uint64_t last_range = 0;
    struct { const void* data = nullptr; int bytes = 0, n = 0; } stored;  // what a store into shared memory brings
    std::vector<Line> lines;  // of a profile: the cache's sets of WAYS lines, the latest first
};
struct GridChecks {
    std::vector<uint32_t*> cells;  // for each range
    std::vector<uint64_t> sizes;
};
KW_INLINE BlockChecks* checks_of(Warp* w) { return (BlockChecks*)w->block->checks; }
KW_INLINE uint64_t shared_end(Warp* w) { return (uint64_t)w->block->launch->entry->shared_bytes + w->block->launch->shared_bytes; }

void kw_grid_begins(Grid* g) {
    auto* c = new GridChecks();
    Launch* l = g->launch;
    uint32_t granule = l->entry->global_granule;
    uint64_t total = 0;
    for (uint64_t i = 0; i < l->range_count; i++) total += (l->ranges[i].end - l->ranges[i].begin) / granule * 4;
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    for (uint64_t i = 0; i < l->range_count; i++) {
        uint64_t bytes = ((l->ranges[i].end - l->ranges[i].begin) / granule + 2) * 4;
        void* p = blocks > 1 && total < (8ull << 30) ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
        c->cells.push_back(p == MAP_FAILED ? nullptr : (uint32_t*)p);
        c->sizes.push_back(bytes);
    }
    g->checks = c;
}
void kw_grid_ends(Grid* g) {
    auto* c = (GridChecks*)g->checks;
    for (size_t i = 0; i < c->cells.size(); i++)
        if (c->cells[i]) munmap(c->cells[i], c->sizes[i]);
    delete c;
}
void kw_block_begins(Block* b) {
    if (!b->checks) b->checks = new BlockChecks();
    auto* c = (BlockChecks*)b->checks;
    uint64_t cells = b->shared_bytes / b->launch->entry->shared_granule + 4;
    c->wrote.assign(cells, 0);
    c->read.assign(cells, 0);
    c->epoch = 1;
    c->warps = b->warp_count;
    c->cluster_epoch = 0;
    c->partial = b->launch->entry->partial;
    memset(c->seen, 0, sizeof c->seen);
    memset(c->low, 0, sizeof c->low);
    memset(c->joined, 0, sizeof c->joined);
    c->readers.clear();
    c->mbarriers.clear();
    c->tag = (uint32_t)(b->number % 65533) + 1;
    c->synced = false;
    c->copies.assign(b->warp_count, {});
    if (b->launch->cache_bytes) c->lines.assign(std::max<uint64_t>(1, b->launch->cache_bytes / (128 * WAYS)) * WAYS, {~0ull, 0});
}
void kw_block_ends(Block*) {}
void kw_block_freed(Block* b) { delete (BlockChecks*)b->checks; }
// All that wait are in order with each other, with who has only arrived, and with who has left.
void kw_barrier_opens(Block* b, uint32_t id) {
    auto* c = (BlockChecks*)b->checks;
    uint32_t together[32];
    memcpy(together, c->joined[id], sizeof together);
    memset(c->joined[id], 0, sizeof c->joined[id]);
    auto here = [&](uint32_t i) { return b->state[i] == 1 && b->warps[i]->barrier == id; };
    for (uint32_t i = 0; i < b->warp_count; i++) {
        if (here(i))
            for (uint32_t v = 0; v < 32; v++) together[v] = std::max(together[v], c->seen[i][v]);
        if (here(i) || b->state[i] == 2) together[i] = c->epoch;
    }
    for (uint32_t i = 0; i < b->warp_count; i++)
        if (here(i)) c->joins(i, together);
    c->epoch++;
}
void kw_warp_arrives(Warp* w, uint32_t id) {
    BlockChecks* c = checks_of(w);
    for (uint32_t v = 0; v < 32; v++) c->joined[id][v] = std::max(c->joined[id][v], c->seen[w->index][v]);
    c->joined[id][w->index] = c->epoch++;
}
uint64_t kw_shared_room(uint64_t bytes) { return 3 * bytes + 4096; }

static uint32_t active(uint32_t mask) { return (uint32_t)__builtin_popcount(mask); }

static void count_add(Warp* w, uint32_t mask, uint32_t site, uint64_t units, uint64_t least) {
    uint64_t* c = w->block->site_counts.data() + 6ull * site;
    c[0]++;
    c[1] += active(mask);
    c[2] += units;
    c[3] += least;
}
enum Access { READ = 0, WRITE = 1, UPDATE = 2 };

// Whether a sector is in the first level's cache; one that is read is there afterwards.
static bool cached(BlockChecks* c, uint64_t sector, int access) {
    uint64_t line = sector >> 2, sets = c->lines.size() / WAYS;
    uint32_t bit = 1u << (sector & 3);
    Line *set = &c->lines[line % sets * WAYS], found{line, 0};
    int at = 0;
    while (at < WAYS && set[at].number != line) at++;
    if (at < WAYS) found = set[at];
    else if (access != READ) return false;
    bool hit = access == READ && found.sectors & bit;
    if (access == READ) found.sectors |= bit;
    for (int k = at < WAYS ? at : WAYS - 1; k > 0; k--) set[k] = set[k - 1];
    set[0] = found;
    return hit;
}
static void count_lines(Warp* w, uint32_t site, int n, const uint64_t* sectors, int access) {
    uint64_t* c = w->block->site_counts.data() + 6ull * site;
    Launch* l = w->block->launch;
    BlockChecks* k = checks_of(w);
    for (int i = 0; i < n; i++) {
        bool new_line = true;
        for (int j = i - 1; j >= 0 && new_line; j--) new_line = sectors[j] >> 2 != sectors[i] >> 2;
        c[4] += new_line;
        if (!l->cache_bytes || cached(k, sectors[i], access)) continue;
        c[5]++;
        uint64_t at = __atomic_fetch_add(&l->miss_count, 1, __ATOMIC_RELAXED);
        if (at < l->most_misses) l->misses[at] = {sectors[i], site};
    }
}
static void count_global(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at, int access) {
    if (!w->counts || !mask) return;
    uint64_t sectors[128], most = 0;
    int n = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        for (uint64_t s = at[i] >> 5; s <= (at[i] + (uint64_t)size - 1) >> 5; s++) {
            bool known = false;
            if (n && s <= most)
                for (int k = n - 1; k >= 0 && !known; k--) known = sectors[k] == s;
            if (!known && n < 128) sectors[n++] = s, most = s > most ? s : most;
        }
    }
    count_add(w, mask, site, (uint64_t)n, (active(mask) * (uint64_t)size + 31) / 32);
    count_lines(w, site, n, sectors, access);
}
// Passes over 32 banks of four bytes: wide accesses go in two or four parts of the warp; equal words are had in one pass.
static uint32_t passes_of(uint32_t lanes, int size, const uint64_t* at, uint64_t base) {
    if (size == 16) {  // eight lanes without a conflict, as nearly always
        uint32_t banks = 0, twice = 0;
        for (uint32_t m = lanes; m; m &= m - 1) {
            uint32_t these = 15u << ((at[__builtin_ctz(m)] - base) >> 2 & 28);
            twice |= banks & these;
            banks |= these;
        }
        if (!twice) return 1;
    }
    uint32_t first[32], words[32][8], used[32] = {}, most = 0;  // of a bank: its first word, further ones, how many
    for (uint32_t m = lanes; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint64_t o = at[i] - base;
        for (uint64_t x = o >> 2; x <= (o + (uint64_t)size - 1) >> 2; x++) {
            uint32_t bank = x & 31, have = used[bank];
            if (!have) {
                first[bank] = (uint32_t)x;
                used[bank] = 1;
                most = most ? most : 1;
                continue;
            }
            if (first[bank] == (uint32_t)x) continue;
            bool known = false;
            for (uint32_t k = 1; k < have && k < 8 && !known; k++) known = words[bank][k] == (uint32_t)x;
            if (known) continue;
            if (have < 8) words[bank][have] = (uint32_t)x;
            if (++used[bank] > most) most = used[bank];
        }
    }
    return most;
}
static void count_shared(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at, bool simple) {
    if (!w->counts || !mask) return;
    int parts = size <= 4 ? 1 : size / 4;
    if (parts > 4) parts = 4;
    if (simple) {  // one word for all, or a row without gaps
        count_add(w, mask, site, (uint64_t)parts, (uint64_t)parts);
        w->block->site_counts[6ull * site + 4] += at[0] == at[1] ? 1 : (uint64_t)parts;
        return;
    }
    uint64_t passes = 0, least = 0;
    for (int p = 0; p < parts; p++) {
        uint32_t lanes = mask & (parts == 1 ? ~0u : ((1u << (32 / parts)) - 1) << (p * 32 / parts));
        if (!lanes) continue;
        passes += passes_of(lanes, size, at, (uint64_t)w->shared);
        least++;
    }
    count_add(w, mask, site, passes, least);
    bool whole = parts > 1 && w->block->launch->cache_bytes;  // asked by profiles only
    w->block->site_counts[6ull * site + 4] += whole ? passes_of(mask, size, at, (uint64_t)w->shared) : passes;
}
KW_INLINE bool is_row(const uint64_t* at, int size) {
    uint64_t off = 0;
    for (uint64_t i = 0; i < 32; i++) off |= at[i] ^ (at[0] + i * (uint64_t)size);
    return !off;
}
KW_INLINE bool is_one(const uint64_t* at) {
    uint64_t off = 0;
    for (int i = 0; i < 32; i++) off |= at[i] ^ at[0];
    return !off;
}

// Whether an access at a count by another warp is not in order with this one.
KW_INLINE bool apart(BlockChecks* c, uint32_t warp, uint32_t cell) {
    return cell >> 8 > c->low[warp] && (cell & 31) != warp && cell >> 8 > c->seen[warp][cell & 31];
}
// The shadow of one lane's access to shared memory: 0 or the kind of the fault, and who the other was.
static uint32_t shadow(BlockChecks* c, uint32_t warp, uint32_t first, uint32_t last, int access, uint32_t& other) {
    uint32_t mine = c->epoch << 8 | warp;
    for (uint32_t g = first; g <= last; g++) {
        uint32_t wrote = c->wrote[g], read = c->read[g];
        if (access != WRITE && !wrote) return F_UNINITIALISED;
        if (wrote & PENDING && access != WRITE) { other = wrote & 31; return F_STALE_COPY; }
        if (apart(c, warp, wrote) && !(access == UPDATE && wrote & ATOMIC)) { other = wrote & 31; return F_SHARED_RACE; }
        bool many = (read & 63) == MANY;
        if (access != READ) {
            if (read && !many && apart(c, warp, read)) { other = read & 31; return F_SHARED_RACE; }
            if (many && !c->partial && read >> 8 > c->low[warp]) { other = 31; return F_SHARED_RACE; }
            if (many && c->partial)
                for (uint32_t v = 0; v < c->warps; v++)
                    if (v != warp && c->readers[read >> 8][v] > c->seen[warp][v]) { other = v; return F_SHARED_RACE; }
            c->wrote[g] = mine | (access == UPDATE ? ATOMIC : 0);
            if (many && c->partial) c->readers[read >> 8].fill(0);
            else if (c->partial) c->read[g] = 0;
        } else if (many && c->partial) c->readers[read >> 8][warp] = c->epoch;
        else if (!read || (read & 63) == warp || read >> 8 <= c->low[warp]) c->read[g] = mine;
        else if (!c->partial) c->read[g] = c->epoch << 8 | MANY;
        else {
            c->readers.emplace_back().fill(0);
            c->readers.back()[read & 31] = read >> 8;
            c->readers.back()[warp] = c->epoch;
            c->read[g] = (uint32_t)(c->readers.size() - 1) << 8 | MANY;
        }
    }
    return 0;
}
// Whether another warp has written a place since the last barrier, and what this store leaves there (of lanes that store to one
// place the last one wins) is what it holds.
static bool stored_again(Warp* w, BlockChecks* c, uint32_t mask, const uint64_t* at, int lane, uint64_t granule, int size) {
    if (!c->stored.data) return false;
    uint64_t o = at[lane] - (uint64_t)w->shared;
    for (uint32_t m = mask; m; m &= m - 1)
        if (at[__builtin_ctz(m)] == at[lane]) lane = std::max(lane, __builtin_ctz(m));
    for (uint64_t g = o >> granule; g <= (o + (uint64_t)size - 1) >> granule; g++) {
        uint32_t read = c->read[g];
        bool many = (read & 63) == MANY;
        if (read && (many ? c->partial || read >> 8 > c->low[w->index] : apart(c, w->index, read))) return false;
    }
    int bytes = c->stored.bytes, step = bytes == 1 ? 2 : bytes;  // bytes come in registers of 16 bits
    for (int k = 0; k < c->stored.n; k++)
        if (memcmp((const uint8_t*)w->shared + o + k * bytes, (const uint8_t*)c->stored.data + (k * 32 + lane) * step, (size_t)bytes)) return false;
    return true;
}
// A row of granules at once: true, and the cells brought up to date, if nothing is wrong with any.
static bool shadow_row(BlockChecks* c, uint32_t warp, uint64_t first, uint64_t count, int access) {
    uint32_t *wrote = c->wrote.data() + first, *read = c->read.data() + first;
    uint32_t low = c->low[warp], mine = c->epoch << 8 | warp, many = c->epoch << 8 | MANY, bad = 0;
    if (c->partial) {  // readers are told apart there
        for (uint64_t i = 0; i < count; i++) bad |= (uint32_t)((read[i] & 63) != warp) & (uint32_t)(read[i] != 0);
        if (bad) return false;
    }
    if (access == READ) {
        for (uint64_t i = 0; i < count; i++) {
            uint32_t x = wrote[i];
            bad |= (uint32_t)(x == 0) | (x & PENDING) | (uint32_t)((x >> 8 > low) & ((x & 31) != warp));
        }
        if (bad) return false;
        for (uint64_t i = 0; i < count; i++) {
            uint32_t x = read[i];
            read[i] = (x >> 8 > low) & ((x & 63) != warp) ? many : mine;
        }
        return true;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t x = wrote[i], y = read[i];
        bad |= (uint32_t)((x >> 8 > low) & ((x & 31) != warp)) | (uint32_t)((y >> 8 > low) & ((y & 63) != warp));
    }
    if (bad) return false;
    for (uint64_t i = 0; i < count; i++) wrote[i] = mine;
    return true;
}
// Four granules of a lane, as an access of sixteen bytes has them: as `shadow_row`.
typedef uint32_t four __attribute__((vector_size(16), aligned(4)));
KW_INLINE bool any_of(four x) { return (x[0] | x[1] | x[2] | x[3]) != 0; }
KW_INLINE bool shadow_four(BlockChecks* c, uint32_t warp, uint64_t first, int access) {
    four x = *(four*)(c->wrote.data() + first), y = *(four*)(c->read.data() + first);
    uint32_t low = c->low[warp], mine = c->epoch << 8 | warp;
    four wrote_apart = (four)(x >> 8 > low) & (four)((x & 31) != warp), read_apart = (four)(y >> 8 > low) & (four)((y & 63) != warp);
    four bad = wrote_apart;
    if (c->partial) bad |= (four)(y != 0) & (four)((y & 63) != warp);
    bad |= access == READ ? (four)(x == 0) | (x & (uint32_t)PENDING) : read_apart;
    if (any_of(bad)) return false;
    if (access == READ) *(four*)(c->read.data() + first) = (read_apart & (uint32_t)(c->epoch << 8 | MANY)) | (~read_apart & mine);
    else *(four*)(c->wrote.data() + first) = (four){mine, mine, mine, mine};
    return true;
}
static uint32_t shared_access(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at, int access, bool counted = true) {
    BlockChecks* c = checks_of(w);
    uint64_t end = shared_end(w), base = (uint64_t)w->shared;
    uint32_t granule = w->block->launch->entry->shared_granule, shift = (uint32_t)__builtin_ctz(granule), good = mask;
    if (mask == ~0u && access != UPDATE) {
        bool one = access == READ && is_one(at), row = !one && is_row(at, size);
        uint64_t o = at[0] - base, bytes = row ? 32ull * (uint64_t)size : (uint64_t)size;
        if ((one || row) && o < end && o + bytes <= end && !(o & (uint64_t)(size - 1)) && !(size & (size - 1)) &&
            shadow_row(c, w->index, o >> shift, ((o + bytes - 1) >> shift) - (o >> shift) + 1, access)) {
            if (counted) count_shared(w, mask, site, size, at, true);
            return mask;
        }
    }
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint64_t o = at[i] - base;
        uint32_t kind = 0, other = 0;
        if (o >= end || o + (uint64_t)size > end) kind = F_SHARED_BOUNDS;
        else if (o & (uint64_t)(size - 1) && !(size & (size - 1))) kind = F_MISALIGNED;
        else if (size == 16 && shift == 2 && access != UPDATE && shadow_four(c, w->index, o >> 2, access)) continue;
        else {
            kind = shadow(c, w->index, (uint32_t)o >> shift, (uint32_t)(o + (uint64_t)size - 1) >> shift, access, other);
            if (kind == F_SHARED_RACE && access == WRITE && stored_again(w, c, mask, at, i, shift, size)) kind = 0;
            if (kind) {  // said once for a place: then it counts as this warp's
                kw_fault(w, kind, site, i, o, other);
                for (uint64_t g = o >> shift; g <= (o + (uint64_t)size - 1) >> shift; g++) c->wrote[g] = c->epoch << 8 | w->index, c->read[g] = 0;
                continue;
            }
        }
        if (kind) {
            kw_fault(w, kind, site, i, o, other);
            good &= ~(1u << i);
        }
    }
    if (counted) count_shared(w, good, site, size, at, false);
    return good;
}

static int range_of(Launch* l, uint64_t a, uint64_t size) {
    uint64_t low = 0, high = l->range_count;
    while (low < high) {
        uint64_t mid = (low + high) / 2;
        if (l->ranges[mid].begin <= a) low = mid + 1;
        else high = mid;
    }
    return low && a + size <= l->ranges[low - 1].end ? (int)low - 1 : -1;
}
// Another block's shared memory: in order only by barriers of the cluster, unless barriers in shared memory are used across blocks.
static Block* peer_of(Warp* w, uint64_t a) {
    if (w->block->cluster)
        for (Block* other : w->block->cluster->blocks)
            if (other != w->block && a - (uint64_t)other->shared < other->shared_bytes) return other;
    return nullptr;
}
static bool peer_access(Warp* w, Block* b, uint32_t site, int lane, uint64_t a, int size, int access) {
    auto* c = (BlockChecks*)b->checks;
    uint64_t o = a - (uint64_t)b->shared, end = (uint64_t)b->launch->entry->shared_bytes + b->launch->shared_bytes;
    if (o + (uint64_t)size > end) return kw_fault(w, F_SHARED_BOUNDS, site, lane, o, 0), false;
    if (b->gone) return kw_fault(w, F_GONE, site, lane, o, 0), false;
    uint32_t shift = (uint32_t)__builtin_ctz(b->launch->entry->shared_granule), since = c->cluster_epoch;
    for (uint64_t g = o >> shift; g <= (o + (uint64_t)size - 1) >> shift; g++) {
        uint32_t kind = 0;
        if (access != WRITE && !c->wrote[g]) kind = F_UNINITIALISED;
        else if (access != UPDATE && c->mbarriers.empty()) {
            if (c->wrote[g] >> 8 >= since && !(c->wrote[g] & ATOMIC)) kind = F_SHARED_RACE;
            if (access == WRITE && c->read[g] && (c->partial ? (c->read[g] & 63) != MANY && c->read[g] >> 8 >= since : c->read[g] >> 8 >= since)) kind = F_SHARED_RACE;
        }
        if (kind) kw_fault(w, kind, site, lane, o, 31);
        if (kind || access != READ) c->wrote[g] = (access == UPDATE || c->wrote[g] ? c->wrote[g] >> 8 : 1) << 8 | (c->wrote[g] & 31) | ATOMIC;
    }
    return true;
}
void kw_cluster_opens(Block* b) {
    auto* c = (BlockChecks*)b->checks;
    kw_barrier_opens(b, 16);
    c->cluster_epoch = c->epoch;
}
static uint32_t global_access(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at, int access) {
    if (!mask) return 0;
    Launch* l = w->block->launch;
    BlockChecks* c = checks_of(w);
    uint64_t low = ~0ull, high = 0, any = 0;
    for (int i = 0; i < 32; i++) {
        uint64_t a = mask >> i & 1 ? at[i] : at[__builtin_ctz(mask)];
        low = a < low ? a : low;
        high = a > high ? a : high;
        any |= a;
    }
    uint64_t base = (uint64_t)w->shared, local = (uint64_t)w->local;
    if (low - base < w->block->shared_bytes && high - base < w->block->shared_bytes) return shared_access(w, mask, site, size, at, access);
    if (low - local < 32ull * w->local_bytes && high - local < 32ull * w->local_bytes) return mask;
    uint32_t good = mask;
    if (any & (uint64_t)(size - 1) && !(size & (size - 1)))
        for (uint32_t m = mask; m; m &= m - 1) {
            int i = __builtin_ctz(m);
            if (!(at[i] & (uint64_t)(size - 1))) continue;
            kw_fault(w, F_MISALIGNED, site, i, at[i], 0);
            good &= ~(1u << i);
        }
    if (l->range_count) {
        const Range& r = l->ranges[c->last_range < l->range_count ? c->last_range : 0];
        int range = low >= r.begin && high + (uint64_t)size <= r.end ? (int)c->last_range : range_of(l, low, high - low + (uint64_t)size);
        auto* g = (GridChecks*)w->block->grid->checks;
        uint32_t granule = l->entry->global_granule, shift = (uint32_t)__builtin_ctz(granule);
        if (range >= 0) c->last_range = (uint64_t)range;
        bool races = !c->synced && access != UPDATE;
        if (access == UPDATE) c->synced = true;
        if (range >= 0 && good == ~0u && access != UPDATE && is_row(at, size)) {
            uint32_t* cells = g->cells[(size_t)range];
            if (!cells) return count_global(w, good, site, size, at, access), good;
            uint64_t o = low - l->ranges[range].begin, first = o >> shift, count = ((o + 32ull * (uint64_t)size - 1) >> shift) - first + 1;
            uint32_t tag = c->tag, bad = 0;
            cells += first;
            for (uint64_t k = 0; k < count; k++) {
                uint32_t wrote = cells[k] & 0xffff, read = cells[k] >> 16;
                bad |= (uint32_t)((wrote != 0) & (wrote != tag)) | (uint32_t)((access == WRITE) & (read != 0) & (read != tag));
            }
            if (!bad || !races) {
                if (access == WRITE)
                    for (uint64_t k = 0; k < count; k++) cells[k] = (cells[k] & 0xffff0000u) | tag;
                else
                    for (uint64_t k = 0; k < count; k++) {
                        uint32_t read = cells[k] >> 16;
                        cells[k] = (cells[k] & 0xffff) | ((read != 0) & (read != tag) ? 0xffff0000u : tag << 16);
                    }
                count_global(w, good, site, size, at, access);
                return good;
            }
        }
        for (uint32_t m = good; m; m &= m - 1) {
            int i = __builtin_ctz(m);
            int mine = range;
            if (mine < 0) {
                mine = range_of(l, at[i], (uint64_t)size);
                if (mine < 0) {
                    if (at[i] - base < shared_end(w) || at[i] - local < 32ull * w->local_bytes) continue;
                    if (at[i] - (uint64_t)w->block->grid->workspace < sizeof w->block->grid->workspace) continue;
                    if (Block* peer = peer_of(w, at[i])) {
                        if (!peer_access(w, peer, site, i, at[i], size, access)) good &= ~(1u << i);
                        continue;
                    }
                    kw_fault(w, F_OUT_OF_BOUNDS, site, i, at[i], (uint64_t)size);
                    good &= ~(1u << i);
                    continue;
                }
            }
            uint32_t* cells = g->cells[(size_t)mine];
            if (!cells || access == UPDATE) continue;
            uint64_t o = at[i] - l->ranges[mine].begin;
            for (uint64_t k = o >> shift; k <= (o + (uint64_t)size - 1) >> shift; k++) {
                uint32_t cell = cells[k], wrote = cell & 0xffff, read = cell >> 16;
                if (races && ((wrote && wrote != c->tag) || (access == WRITE && read && read != c->tag))) {
                    kw_fault(w, F_GLOBAL_RACE, site, i, at[i], wrote);
                    races = false;
                }
                uint32_t next = access == WRITE ? (cell & 0xffff0000u) | c->tag : (cell & 0xffff) | (read && read != c->tag ? 0xffffu : c->tag) << 16;
                if (next != cell) cells[k] = next;
            }
        }
    }
    count_global(w, good, site, size, at, access);
    return good;
}

static uint32_t check_global(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at, int write) { return global_access(w, mask, site, size, at, write ? WRITE : READ); }
static uint32_t check_shared(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at, int write) { return shared_access(w, mask, site, size, at, write ? WRITE : READ); }
// Lanes of one store that put different values into one place: which of them stays is nobody's choice.
static void lanes_apart(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, const uint64_t* at, const void* data) {
    uint64_t taken[4] = {};
    int step = bytes == 1 ? 2 : bytes;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint64_t place = at[i] * 0x9e3779b97f4a7c15ull >> 56, bit = 1ull << (place & 63), &known = taken[place >> 6];
        if (known & bit)
            for (uint32_t before = mask & ((1u << i) - 1); before; before &= before - 1) {
                int j = __builtin_ctz(before);
                if (at[j] != at[i]) continue;
                for (int k = 0; k < n; k++)
                    if (memcmp((const uint8_t*)data + (k * 32 + i) * step, (const uint8_t*)data + (k * 32 + j) * step, (size_t)bytes))
                        return kw_fault(w, F_LANE_RACE, site, i, at[i] - (uint64_t)w->shared, (uint64_t)j);
            }
        known |= bit;
    }
}
static uint32_t check_stored(Warp* w, uint32_t mask, uint32_t site, int bytes, int n, const uint64_t* at, const void* data) {
    BlockChecks* c = checks_of(w);
    if (mask && !is_row(at, bytes * n)) lanes_apart(w, mask, site, bytes, n, at, data);
    c->stored = {data, bytes, n};
    mask = shared_access(w, mask, site, bytes * n, at, WRITE);
    c->stored.data = nullptr;
    return mask;
}
static uint32_t check_atomic(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at, int space) {
    return space ? shared_access(w, mask, site, size, at, UPDATE) : global_access(w, mask, site, size, at, UPDATE);
}
static uint32_t check_local(Warp* w, uint32_t mask, uint32_t site, int size, const uint64_t* at) {
    uint32_t good = mask;
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        uint64_t o = at[i] - ((uint64_t)w->local + (uint64_t)i * w->local_bytes);
        if (o + (uint64_t)size <= w->local_bytes && o < w->local_bytes) continue;
        kw_fault(w, F_LOCAL_BOUNDS, site, i, o, 0);
        good &= ~(1u << i);
    }
    return good;
}
static bool check_uniform(Warp* w, uint32_t mask, uint32_t site, int size, uint64_t address, int shared) {
    uint64_t at[32];
    int lane = __builtin_ctz(mask);
    for (auto& a : at) a = address;
    uint32_t one = 1u << lane;
    return (shared ? shared_access(w, one, site, size, at, READ) : global_access(w, one, site, size, at, READ)) != 0;
}

extern "C" {
// Copies wait for their wait: until then the place holds what it held, and reading it is a fault.
void kw_copy_async(Warp* w, uint32_t mask, uint32_t site, int bytes, u32 s0, u32 s1, u64 a, u64 b, u64 c, u64 d, u32 n0, u32 n1) {
    Addresses from(a, b, c, d), to(w->shared, s0, s1);
    u32 given[2] = {n0, n1};
    const uint32_t* n = (const uint32_t*)given;
    BlockChecks* k = checks_of(w);
    uint32_t reads = 0;
    for (int i = 0; i < 32; i++) reads |= (uint32_t)(n[i] != 0) << i;
    uint32_t good = shared_access(w, mask, site, bytes, to.at, WRITE, false);
    uint32_t bad = 0;
    for (int size = 1; size <= bytes; size++) {  // lanes by how much they read: nearly always all or nothing
        uint32_t same = 0;
        for (int i = 0; i < 32; i++) same |= (uint32_t)(n[i] == (uint32_t)size) << i;
        same &= good & reads;
        if (same) bad |= same & ~global_access(w, same, site, size == bytes ? bytes : 1, from.at, READ);
    }
    uint32_t shift = (uint32_t)__builtin_ctz(w->block->launch->entry->shared_granule);
    for (uint32_t m = good & ~bad; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        k->copies[w->index].open.push_back({to.at[i], from.at[i], (uint32_t)bytes, std::min(n[i], (uint32_t)bytes), site, (uint32_t)i});
        uint64_t o = to.at[i] - (uint64_t)w->shared;
        for (uint64_t g = o >> shift; g <= (o + (uint64_t)bytes - 1) >> shift; g++) k->wrote[g] |= PENDING;
    }
}
// At a barrier that all lanes of a warp must reach together: some are elsewhere, and have not left.
void kw_divergent_barrier(Warp* w, uint32_t mask, uint32_t site) { kw_fault(w, F_DIVERGENT_BARRIER, site, __builtin_ctz(mask), 0, w->alive); }
void kw_copy_commit(Warp* w, uint32_t) {
    WarpCopies& c = checks_of(w)->copies[w->index];
    c.groups.push_back(std::move(c.open));
    c.open.clear();
}
void kw_copy_wait(Warp* w, uint32_t mask, uint32_t groups, int all) {
    if (all) kw_copy_commit(w, mask);
    BlockChecks* k = checks_of(w);
    WarpCopies& c = k->copies[w->index];
    uint32_t shift = (uint32_t)__builtin_ctz(w->block->launch->entry->shared_granule);
    size_t left = all ? 0 : groups;
    if (c.groups.size() <= left) return;
    size_t due = c.groups.size() - left;
    for (size_t i = 0; i < due; i++)
        for (const Copy& x : c.groups[i]) {
            memcpy((void*)x.to, (const void*)x.from, x.given);
            memset((void*)(x.to + x.given), 0, x.size - x.given);
            uint64_t o = x.to - (uint64_t)w->shared;
            for (uint64_t g = o >> shift; g <= (o + x.size - 1) >> shift; g++) k->wrote[g] = k->epoch << 8 | w->index;
        }
    c.groups.erase(c.groups.begin(), c.groups.begin() + (long)due);
}
}
