// Of `bulk.h`, the checked variant: barriers order warps; copies arrive when their barrier is asked; products and stores read until waited for.
#pragma once

static BlockChecks* checks_at(Warp* w, uint64_t a) { return (BlockChecks*)owner_of(w, a)->checks; }
static Mbarrier& mbarrier_at(Warp* w, uint64_t a) { return checks_at(w, a)->mbarriers[a - (uint64_t)owner_of(w, a)->shared]; }

// Whether an operation on a barrier may go on: it lies in shared memory, was made by `init`, and this warp is in order with that.
static bool mb_check(Warp* w, uint32_t site, int lane, uint64_t a, int what) {
    Block* b = owner_of(w, a);
    uint64_t o = a - (uint64_t)b->shared, end = (uint64_t)b->launch->entry->shared_bytes + b->launch->shared_bytes;
    if (o + 8 > end || o & 7) return kw_fault(w, o + 8 > end ? F_SHARED_BOUNDS : F_MISALIGNED, site, lane, o, 0), false;
    BlockChecks *c = (BlockChecks*)b->checks, *mine = checks_of(w);
    if (b != w->block && b->gone) return kw_fault(w, F_GONE, site, lane, o, 0), false;
    Mbarrier& x = c->mbarriers[o];
    if (what == MB_INIT) {
        uint32_t shift = (uint32_t)__builtin_ctz(b->launch->entry->shared_granule);
        for (uint64_t g = o >> shift; g <= (o + 7) >> shift; g++) c->wrote[g] = mine->epoch << 8 | w->index;
        x = Mbarrier{};
        x.made = mine->epoch, x.maker = w->index, x.valid = true;
        return true;
    }
    if (!x.valid) return kw_fault(w, F_UNINITIALISED, site, lane, o, 0), false;
    if (b == w->block && x.maker != w->index && x.made > mine->seen[w->index][x.maker]) {
        kw_fault(w, F_SHARED_RACE, site, lane, o, x.maker);
        x.made = 0;  // said once
    }
    if (what == MB_INVAL) x.valid = false;
    else if (what >= 0 && b == w->block) {
        for (int v = 0; v < 32; v++) x.seen[v] = std::max(x.seen[v], mine->seen[w->index][v]);
        x.seen[w->index] = mine->epoch;
        if (what == MB_COPIES || what == MB_COPIES_NOINC) {
            WarpCopies& k = mine->copies[w->index];
            for (auto& g : k.groups)
                for (const Copy& y : g)
                    if (y.lane == (uint32_t)lane) x.copies.push_back(y);
            for (const Copy& y : k.open)
                if (y.lane == (uint32_t)lane) x.copies.push_back(y);
            auto of_lane = [&](const Copy& y) { return y.lane == (uint32_t)lane; };
            for (auto& g : k.groups) g.erase(std::remove_if(g.begin(), g.end(), of_lane), g.end());
            k.open.erase(std::remove_if(k.open.begin(), k.open.end(), of_lane), k.open.end());
        }
        mine->pending_release = true;
    }
    return true;
}
static void mb_released(Warp* w) {
    BlockChecks* c = checks_of(w);
    if (c->pending_release) c->epoch++, c->pending_release = false;
}
static void mb_deliver(Warp* w, uint64_t a) {
    Block* b = owner_of(w, a);
    auto* c = (BlockChecks*)b->checks;
    Mbarrier& x = mbarrier_at(w, a);
    uint32_t shift = (uint32_t)__builtin_ctz(b->launch->entry->shared_granule);
    for (const Copy& y : x.copies) {
        memcpy((void*)y.to, (const void*)y.from, y.given);
        memset((void*)(y.to + y.given), 0, y.size - y.given);
        uint64_t o = y.to - (uint64_t)b->shared;
        for (uint64_t g = o >> shift; g <= (o + y.size - 1) >> shift; g++) c->wrote[g] &= ~(uint32_t)PENDING;
    }
    x.copies.clear();
    if (x.tiles.empty()) return;
    std::vector<Bulk> due;
    due.swap(x.tiles);
    for (const Bulk& y : due) {
        y.act();
        Block* to = y.to;
        auto* k = (BlockChecks*)to->checks;
        for (uint64_t g = y.first; g <= y.last; g++) k->wrote[g] &= ~(uint32_t)PENDING;
        if (to == w->block) x.seen[y.warp] = std::max(x.seen[y.warp], y.time);
        ((Phase*)a)->change(0, -(int64_t)y.bytes);
    }
}
static void mb_acquire(Warp* w, uint64_t a) {
    BlockChecks* c = checks_of(w);
    if (owner_of(w, a) != w->block) return;
    c->joins(w->index, mbarrier_at(w, a).seen);
}
static bool map_check(Warp* w, uint32_t site, int lane, const TensorMap& t) {
    Launch* l = w->block->launch;
    if (!l->range_count || range_of(l, (uint64_t)&t, 128) >= 0) return true;
    return kw_fault(w, F_OUT_OF_BOUNDS, site, lane, (uint64_t)&t, 128), false;
}
// A map that is made in shared memory: it lies there whole.
static bool map_field_check(Warp* w, uint32_t site, int lane, uint64_t at) {
    uint64_t o = at - (uint64_t)w->shared;
    if (o + 128 <= shared_end(w) && !(o & 63)) return true;
    return kw_fault(w, o & 63 ? F_MISALIGNED : F_SHARED_BOUNDS, site, lane, o, 128), false;
}
// A stretch of a block's shared memory, granule by granule; what is wrong is told once.
static bool stretch(Warp* w, Block* b, uint32_t site, int lane, uint64_t o, uint64_t bytes, int access, uint32_t flags) {
    auto* c = (BlockChecks*)b->checks;
    uint64_t end = (uint64_t)b->launch->entry->shared_bytes + b->launch->shared_bytes;
    if (o + bytes > end) return kw_fault(w, F_SHARED_BOUNDS, site, lane, o, 0), false;
    if (b != w->block && b->gone) return kw_fault(w, F_GONE, site, lane, o, 0), false;
    uint32_t shift = (uint32_t)__builtin_ctz(b->launch->entry->shared_granule), other = 0, kind = 0, mine = checks_of(w)->epoch << 8 | w->index;
    for (uint64_t g = o >> shift; bytes && g <= (o + bytes - 1) >> shift; g++) {
        uint32_t found = b == w->block ? shadow(c, w->index, (uint32_t)g, (uint32_t)g, access, other) : 0;
        if (flags & c->wrote[g] & PENDING) found = F_SHARED_RACE, other = c->wrote[g] & 31;  // two copies under way to one place
        if (found && !kind) kw_fault(w, kind = found, site, lane, g << shift, other);
        if (access == WRITE) c->wrote[g] = mine | flags;
        else if (found) c->wrote[g] = mine;
    }
    return !kind;
}
static bool bulk_check(Warp* w, uint32_t site, int lane, uint64_t to, uint64_t from, uint32_t bytes, bool load) {
    if ((to | from | bytes) & 15) return kw_fault(w, F_MISALIGNED, site, lane, to & 15 ? to : from, bytes), false;
    Launch* l = w->block->launch;
    uint64_t global = load ? from : to, own = load ? to : from;
    Block* b = owner_of(w, own);
    bool between = false;  // from a block's shared memory to another's
    if (w->block->cluster)
        for (Block* other : w->block->cluster->blocks) between |= global - (uint64_t)other->shared < other->shared_bytes;
    between |= global - (uint64_t)w->block->shared < w->block->shared_bytes;
    if (l->range_count && !between && range_of(l, global, bytes) < 0) return kw_fault(w, F_OUT_OF_BOUNDS, site, lane, global, bytes), false;
    if (!load) {
        auto& k = checks_of(w)->copies[w->index];
        uint64_t o = own - (uint64_t)b->shared;
        k.stored.push_back({o, bytes, site, (uint32_t)lane});
        return stretch(w, b, site, lane, o, bytes, READ, 0);
    }
    return true;
}
static void tile_check(Warp* w, uint32_t site, int lane, const TensorMap& t, const int32_t* c, uint32_t start, bool load) {
    Launch* l = w->block->launch;
    if (l->range_count)
        tile_rows(t, c, start, [&](const TileRow& r) {
            if (r.inside && range_of(l, r.global, r.inside) < 0) kw_fault(w, F_OUT_OF_BOUNDS, site, lane, r.global, r.inside);
        });
    if (start & 127) kw_fault(w, F_MISALIGNED, site, lane, start, 128);
    if (load) return;
    uint32_t bytes = tile_bytes(t);
    checks_of(w)->copies[w->index].stored.push_back({start, bytes, site, (uint32_t)lane});
    stretch(w, w->block, site, lane, start, bytes, READ, 0);
}
static void bulk_defer(Warp* w, uint32_t site, int lane, uint64_t to, std::function<void()> act, uint64_t, uint32_t bytes, uint64_t mbar) {
    Block* b = owner_of(w, to);
    uint64_t o = to - (uint64_t)b->shared;
    uint32_t shift = (uint32_t)__builtin_ctz(b->launch->entry->shared_granule);
    if (!mb_check(w, site, lane, mbar, -1)) return;
    stretch(w, b, site, lane, o, bytes, WRITE, PENDING);
    if (!bytes || o + bytes > (uint64_t)b->launch->entry->shared_bytes + b->launch->shared_bytes) return;
    BlockChecks* c = checks_of(w);
    mbarrier_at(w, mbar).tiles.push_back({std::move(act), b, o >> shift, (o + bytes - 1) >> shift, w->index, c->epoch, bytes});
    c->epoch++;
}
static void looked_at_again(Warp* w, uint32_t site, const std::vector<Stretch>& read) {
    for (const Stretch& x : read) stretch(w, w->block, x.site, (int)x.lane, x.begin, x.bytes, READ, 0);
}

// An operand of a product on matrix units, by its rows of sixteen bytes.
struct Described {
    uint32_t start, leading, stride, swizzle;
    Described(uint64_t d)
        : start((uint32_t)(d & 0x3fff) << 4), leading((uint32_t)(d >> 16 & 0x3fff) << 4), stride((uint32_t)(d >> 32 & 0x3fff) << 4), swizzle((uint32_t)(d >> 62)) {}
};
extern "C" uint32_t kw_operand_offset(uint64_t descriptor, uint32_t row, uint32_t k, uint32_t bytes, bool turned);
static void operand_reads(Warp* w, uint32_t site, uint64_t d, uint32_t first, uint32_t rows, uint32_t k, uint32_t bytes, bool turned, std::vector<Stretch>& out) {
    uint32_t across = 16 / bytes;
    for (uint32_t r = 0; r < rows; r += turned ? across : 1)
        for (uint32_t x = 0; x < k; x += turned ? 1 : across) {
            uint64_t o = kw_operand_offset(d, first + r, x, bytes, turned) & ~15u;
            out.push_back({o, 16, site, 0});
        }
}
extern "C" {
void kw_wgmma_reads(Warp* w, uint32_t site, uint32_t n, uint32_t k, uint32_t bytes, uint32_t has_a, uint64_t at_a, int turn_a, uint64_t at_b, int turn_b) {
    WarpCopies& c = checks_of(w)->copies[w->index];
    std::vector<Stretch> read;
    if (has_a) operand_reads(w, site, at_a, 16 * (w->index & 3), 16, k, bytes, turn_a, read);
    operand_reads(w, site, at_b, 0, n, k, bytes, turn_b, read);
    looked_at_again(w, site, read);
    c.product.insert(c.product.end(), read.begin(), read.end());
}
void kw_wgmma_commit(Warp* w) {
    WarpCopies& c = checks_of(w)->copies[w->index];
    c.products.push_back(std::move(c.product));
    c.product.clear();
}
void kw_wgmma_wait(Warp* w, uint32_t site, uint32_t left) {
    WarpCopies& c = checks_of(w)->copies[w->index];
    while (c.products.size() > left) {
        looked_at_again(w, site, c.products.front());
        c.products.erase(c.products.begin());
    }
}
void kw_bulk_commit(Warp* w, uint32_t) {
    WarpCopies& c = checks_of(w)->copies[w->index];
    c.stores.push_back(std::move(c.stored));
    c.stored.clear();
}
void kw_bulk_wait(Warp* w, uint32_t mask, uint32_t site, uint32_t left) {
    if (!mask) return;
    WarpCopies& c = checks_of(w)->copies[w->index];
    while (c.stores.size() > left) {
        looked_at_again(w, site, c.stores.front());
        c.stores.erase(c.stores.begin());
    }
}
void kw_in_flight(Warp* w, uint32_t mask, uint32_t site) {
    if (mask) kw_fault(w, F_UNFINISHED, site, __builtin_ctz(mask), 0, 0);
}
}
