// Blocks over the cores, warps of a block in turns. A warp runs until it ends, waits at a barrier or has spun for long; a block
// in which all warps spin or wait gives way to another, which is begun if there is one left (all at once in a cooperative launch).
#include "block.h"
#include <condition_variable>
#include <deque>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>

enum State : uint8_t { RUNNING, WAITING, ENDED };
enum { FUEL = 20000, ROUNDS = 4 };
static const uint64_t MOST_TURNS = 1ull << 28;  // of warps of a profiled block: then it is taken to wait without end

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void kw_fault(Warp* w, uint32_t kind, uint32_t site, int lane, uint64_t address, uint64_t detail) {
    Launch* l = w->block->launch;
    std::lock_guard<std::mutex> guard(w->block->grid->lock);
    uint32_t same = 0;
    for (uint32_t i = 0; i < l->fault_count; i++) same += l->faults[i].kind == kind && l->faults[i].site == site;
    if (l->fault_count >= l->most_faults || same >= 4) return;
    Fault& f = l->faults[l->fault_count++];
    f.kind = kind;
    f.site = site;
    f.lane = (uint32_t)lane;
    f.warp = w->index;
    uint32_t t = w->index * 32 + (uint32_t)lane;
    for (int k = 0; k < 3; k++) f.block[k] = w->ctaid[k];
    f.thread[0] = t % l->block[0];
    f.thread[1] = t / l->block[0] % l->block[1];
    f.thread[2] = t / l->block[0] / l->block[1];
    f.address = address;
    f.detail = detail;
}
void kw_stop_grid(Warp* w) {
    w->block->grid->stopped = 1;
    w->fuel = 0;
}
void kw_missing_lanes(Warp* w, uint32_t mask, uint32_t site, uint32_t members) {
    if (mask) kw_fault(w, F_MISSING_LANES, site, __builtin_ctz(mask), members & w->alive & ~mask, 0);
}

static void release(Block* b, uint32_t id) {
    Barrier& r = b->barriers[id];
    if (!r.any) return;
    uint32_t wanted = r.expected ? r.expected : b->running * 32;
    uint32_t here = r.warps * 32 + r.extra;
    if (here < wanted && !(r.expected && r.warps + r.extra / 32 >= b->warp_count && r.extra + r.warps * 32 >= wanted)) return;
    kw_barrier_opens(b, id);
    for (uint32_t i = 0; i < b->warp_count; i++)
        if (b->state[i] == WAITING && b->warps[i]->barrier == id) {
            b->state[i] = RUNNING;
            b->warps[i]->barrier_result = r.value;
            b->warps[i]->released = 1;
        }
    r = Barrier{};
}

void kw_arrive(Warp* w, uint32_t id, uint32_t threads) {
    Block* b = w->block;
    id &= 15;
    Barrier& r = b->barriers[id];
    r.any = 1;
    r.extra += 32;
    r.expected = threads;
    kw_warp_arrives(w, id);
    release(b, id);
}

// A barrier of the cluster opens when all lanes that are still there have arrived.
static void cluster_release(Cluster* c) {
    uint64_t alive = 0;
    for (Block* b : c->blocks)
        for (uint32_t i = 0; i < b->warp_count; i++)
            if (b->state[i] != ENDED) alive += (uint64_t)__builtin_popcount(b->warps[i]->alive);
    if (!c->arrived || c->arrived < alive) return;
    c->arrived = 0;
    c->phase++;
    for (Block* b : c->blocks) {
        for (uint32_t i = 0; i < b->warp_count; i++)
            if (b->state[i] == RUNNING) kw_warp_arrives(b->warps[i], 16);
        kw_cluster_opens(b);
        for (uint32_t i = 0; i < b->warp_count; i++)
            if (b->state[i] == WAITING && b->warps[i]->barrier == 16) b->state[i] = RUNNING, b->warps[i]->released = 1;
    }
}
void kw_cluster_arrive(Warp* w, uint32_t mask) {
    Cluster* c = w->block->cluster;
    if (!c) return;
    w->cluster_phase = c->phase;
    c->arrived += (uint64_t)__builtin_popcount(mask);
}

static void arrive(Block* b, uint32_t i) {
    Warp* w = b->warps[i];
    if (w->barrier == 16) {
        if (!b->cluster || b->cluster->phase > w->cluster_phase) {
            w->released = 1;  // it is open already
            return;
        }
        b->state[i] = WAITING;
        return cluster_release(b->cluster);
    }
    w->barrier &= 15;
    Barrier& r = b->barriers[w->barrier];
    b->state[i] = WAITING;
    if (!r.any || r.warps == 0) r.value = w->barrier_value, r.kind = w->barrier_result;
    else r.value = r.kind == 0 ? r.value + w->barrier_value : r.kind == 1 ? (r.value & w->barrier_value) : (r.value | w->barrier_value);
    r.any = 1;
    r.warps++;
    if (w->barrier_threads) r.expected = w->barrier_threads;
    release(b, w->barrier);
}

// One round over the warps of a block. Says whether anything but spinning happened.
static bool turn(Block* b) {
    bool moved = false;
    for (uint32_t i = 0; i < b->warp_count; i++) {
        if (b->state[i] != RUNNING) continue;
        Warp* w = b->warps[i];
        w->fuel = b->launch->only ? 1 : FUEL;  // a profile's warps go side by side, as their accesses meet in a cache
        int stop = b->launch->entry->run(w);
        if (b->grid->stopped) {
            b->running = 0;
            return true;
        }
        if (stop == STOP_DONE) {
            b->state[i] = ENDED;
            b->running--;
            moved = true;
            for (uint32_t id = 0; id < 16; id++)
                if (b->barriers[id].any) release(b, id);
            if (b->cluster) cluster_release(b->cluster);
        } else if (stop == STOP_BARRIER) {
            moved = true;
            arrive(b, i);
        } else if (b->launch->only && ++b->turns < MOST_TURNS)
            moved = true;
    }
    return moved;
}

static bool still(Block* b) {
    for (uint32_t i = 0; i < b->warp_count; i++)
        if (b->state[i] == RUNNING) return false;
    return true;
}
// Nobody in the block runs, nor in any block whose barrier some of it may wait for.
static bool stuck(Block* b) {
    if (!b->running || !still(b)) return false;
    if (b->cluster)
        for (Block* other : b->cluster->blocks)
            if (!still(other)) return false;
    return true;
}

static void report_deadlock(Block* b) {
    for (uint32_t i = 0; i < b->warp_count; i++)
        if (b->state[i] != ENDED) {
            Warp* w = b->warps[i];
            kw_fault(w, F_DEADLOCK, b->state[i] == WAITING ? w->barrier_site : w->site, w->alive ? __builtin_ctz(w->alive) : 0, 0, b->state[i] == WAITING);
        }
    b->grid->stopped = 1;
}

static Block* make_block(Grid* g) {
    Launch* l = g->launch;
    Block* b = new Block();
    b->launch = l;
    b->grid = g;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    b->warp_count = (threads + 31) / 32;
    if (l->counts) b->counts.assign(2ull * l->entry->counters, 0), b->site_counts.assign(6 * l->sites, 0);
    b->shared_bytes = ((uint64_t)l->entry->shared_bytes + l->shared_bytes + 255) & ~255ull;
    uint64_t each = (sizeof(Warp) + 63) & ~63ull, registers = ((uint64_t)l->entry->register_bytes + 63) & ~63ull;
    uint64_t local = ((uint64_t)l->entry->local_bytes * 32 + 63) & ~63ull;
    uint64_t room = kw_shared_room(b->shared_bytes);
    uint64_t total = 128 + room + b->warp_count * (each + registers + local);
    b->memory = (uint8_t*)aligned_alloc(128, (total + 127) & ~127ull);
    uint8_t* at = b->memory;
    b->shared = at + (room - b->shared_bytes) / 2 / 128 * 128;
    at += room;
    at = (uint8_t*)(((uint64_t)at + 63) & ~63ull);
    for (uint32_t i = 0; i < b->warp_count; i++) {
        Warp* w = (Warp*)at;
        memset((void*)w, 0, sizeof(Warp));
        at += each;
        w->registers = at;
        at += registers;
        w->local = at;
        at += local;
        w->block = b;
        w->index = i;
        w->params = l->params;
        w->globals = l->globals;
        w->shared = b->shared;
        w->counts = l->counts ? b->counts.data() : nullptr;
        w->local_bytes = l->entry->local_bytes;
        for (uint32_t t = 0; t < 32; t++) {
            uint32_t n = i * 32 + t;
            w->tid[0][t >> 4][t & 15] = n % l->block[0];
            w->tid[1][t >> 4][t & 15] = n / l->block[0] % l->block[1];
            w->tid[2][t >> 4][t & 15] = n / l->block[0] / l->block[1];
        }
        for (int k = 0; k < 3; k++) w->nctaid[k] = l->grid[k], w->ntid[k] = l->block[k];
        b->warps.push_back(w);
    }
    b->state.resize(b->warp_count);
    return b;
}

static void begin_block(Block* b, uint64_t number) {
    Launch* l = b->launch;
    b->number = number;
    b->running = b->warp_count;
    b->rounds = 0;
    b->turns = 0;
    b->gone = false;
    memset(b->barriers, 0, sizeof b->barriers);
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    uint32_t at[3] = {(uint32_t)(number % l->grid[0]), (uint32_t)(number / l->grid[0] % l->grid[1]), (uint32_t)(number / l->grid[0] / l->grid[1])};
    for (uint32_t i = 0; i < b->warp_count; i++) {
        Warp* w = b->warps[i];
        memset(w->registers, 0xff, l->entry->register_bytes);  // what nothing has written is NaN
        w->alive = threads - i * 32 >= 32 ? ~0u : (1u << (threads - i * 32)) - 1;
        w->started = w->spun = w->released = w->waited = 0;
        w->rank = 0;
        w->cluster_size = 1;
        w->cluster_phase = 0;
        for (int k = 2; k >= 0; k--) {
            w->ctaid[k] = at[k];
            w->cluster_dim[k] = l->cluster[k];
            w->cluster_at[k] = at[k] % l->cluster[k];
            w->rank = w->rank * l->cluster[k] + w->cluster_at[k];
            w->cluster_size *= l->cluster[k];
        }
        b->state[i] = RUNNING;
    }
    kw_block_begins(b);
}

static void work(Grid* g) {
    Launch* l = g->launch;
    uint64_t blocks = l->only ? l->only_count : (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    std::deque<Block*> open;
    std::vector<Block*> free_blocks;
    uint64_t seen = g->progress;
    double since = 0;
    int idle = 0;
    uint64_t together = (uint64_t)l->cluster[0] * l->cluster[1] * l->cluster[2];
    auto begin = [&](uint64_t n, Cluster* cluster) {
        Block* b;
        if (free_blocks.empty()) b = make_block(g);
        else b = free_blocks.back(), free_blocks.pop_back();
        b->cluster = cluster;
        begin_block(b, n);
        if (cluster) cluster->blocks.push_back(b), open.push_back(b);
        else open.push_front(b);
    };
    auto start = [&]() {
        uint64_t n = g->next_block.fetch_add(1);
        if (together > 1) {
            uint64_t across[3], at[3];
            for (int k = 0; k < 3; k++) across[k] = l->grid[k] / l->cluster[k];
            if (l->only ? n >= l->only_count : n >= blocks / together) return false;
            if (l->only) {  // the cluster in which that block lies
                uint64_t x = l->only[n];
                n = x % l->grid[0] / l->cluster[0] + across[0] * (x / l->grid[0] % l->grid[1] / l->cluster[1] + across[1] * (x / l->grid[0] / l->grid[1] / l->cluster[2]));
            }
            auto* cluster = new Cluster();
            cluster->running = (uint32_t)together;
            at[0] = n % across[0], at[1] = n / across[0] % across[1], at[2] = n / across[0] / across[1];
            for (uint64_t r = 0; r < together; r++) {
                uint64_t x = at[0] * l->cluster[0] + r % l->cluster[0], y = at[1] * l->cluster[1] + r / l->cluster[0] % l->cluster[1];
                uint64_t z = at[2] * l->cluster[2] + r / l->cluster[0] / l->cluster[1];
                begin(x + l->grid[0] * (y + l->grid[1] * z), cluster);
            }
            return true;
        }
        if (n >= blocks) return false;
        begin(l->only ? l->only[n] : n, nullptr);
        return true;
    };
    if (l->cooperative)
        for (uint64_t share = (blocks / together + l->threads - 1) / l->threads, k = 0; k < share; k++)
            if (!start()) break;
    while (!g->stopped) {
        if (open.empty() && !start()) break;
        Block* b = open.front();
        bool moved = turn(b);
        if (!b->running) {
            kw_block_ends(b);
            b->gone = true;
            open.pop_front();
            if (Cluster* c = b->cluster) {
                if (--c->running == 0) {  // their memory is there until the last has ended
                    free_blocks.insert(free_blocks.end(), c->blocks.begin(), c->blocks.end());
                    for (Block* x : c->blocks) x->cluster = nullptr;
                    delete c;
                } else if (!g->stopped) cluster_release(c);
            } else free_blocks.push_back(b);
            g->progress++;
            idle = 0;
            continue;
        }
        if (stuck(b)) {
            report_deadlock(b);
            break;
        }
        if (moved) {
            g->progress++;
            b->rounds = 0;
            if (!l->cooperative && !b->cluster) continue;
            if (b->cluster) {
                open.pop_front();
                open.push_back(b);
                idle = 0;
                continue;
            }
        }
        if (++b->rounds < ROUNDS && !l->cooperative) continue;
        b->rounds = 0;
        open.pop_front();
        open.push_back(b);
        if (!l->cooperative && !b->cluster && open.size() < 4096) start();
        if (++idle >= (int)open.size()) {
            idle = 0;
            if (b->cluster && open.size() < 4096 && start()) continue;
            uint64_t p = g->progress;
            double t = now();
            if (p != seen || since == 0) seen = p, since = t;
            else if (t - since > l->patience) {
                report_deadlock(open.front());
                break;
            }
            std::this_thread::yield();
        }
    }
    for (Block* b : open) {
        if (Cluster* c = b->cluster) {
            for (Block* x : c->blocks) {
                if (x->gone) free_blocks.push_back(x);
                x->cluster = nullptr;
            }
            delete c;
        }
        free_blocks.push_back(b);
    }
    for (Block* b : free_blocks) {
        for (size_t i = 0; i < b->counts.size(); i++) __atomic_fetch_add(&l->counts[i], b->counts[i], __ATOMIC_RELAXED);
        for (size_t i = 0; i < b->site_counts.size(); i++) __atomic_fetch_add(&l->site_counts[i], b->site_counts[i], __ATOMIC_RELAXED);
        kw_block_freed(b);
        free(b->memory);
        delete b;
    }
}

// Threads of the host that wait for work; made anew in a process that was forked.
struct Pool {
    std::mutex lock;
    std::condition_variable wake, done;
    Grid* grid = nullptr;
    uint64_t generation = 0;
    uint32_t wanted = 0, left = 0, size = 0;
    pid_t owner = getpid();
    void member() {
        uint64_t known = 0;
        std::unique_lock<std::mutex> guard(lock);
        for (;;) {
            wake.wait(guard, [&] { return generation != known && wanted > 0; });
            known = generation;
            wanted--;
            Grid* g = grid;
            guard.unlock();
            work(g);
            guard.lock();
            if (--left == 0) done.notify_all();
        }
    }
    void run(Grid* g, uint32_t helpers) {
        {
            std::lock_guard<std::mutex> guard(lock);
            for (; size < helpers; size++) std::thread([this] { member(); }).detach();
            grid = g;
            generation++;
            wanted = left = helpers;
        }
        wake.notify_all();
        work(g);
        std::unique_lock<std::mutex> guard(lock);
        done.wait(guard, [&] { return left == 0; });
        wanted = 0;
    }
};
static Pool* pool = nullptr;
static std::mutex pool_lock;

extern "C" int kw_launch(Launch* l) {
    Grid g{};
    g.launch = l;
    g.workspace[0] = 32;
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint32_t helpers = l->threads > 1 && blocks > 1 ? (uint32_t)((blocks < l->threads ? blocks : l->threads) - 1) : 0;
    l->threads = helpers + 1;
    kw_grid_begins(&g);
    if (!helpers) work(&g);
    else {
        std::lock_guard<std::mutex> guard(pool_lock);
        if (!pool || pool->owner != getpid()) pool = new Pool();
        pool->run(&g, helpers);
    }
    kw_grid_ends(&g);
    return (int)l->fault_count;
}
