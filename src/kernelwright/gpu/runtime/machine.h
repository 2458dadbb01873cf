// What a translated kernel and the runtime share: warps, blocks, launches, and the calls from the one to the other.
//
// A register of 64, 32 or 16 bits is 4, 2 or 1 vectors of 64 bytes (32 lanes); a predicate is a mask of 32 bits. Values that
// are equal in all lanes are plain scalars. A warp runs until it ends, waits at a barrier, or its fuel is spent; all that it
// needs to go on is in its Flow and its registers, so a thread of the host may hold many unfinished blocks.
#pragma once
#include <stdint.h>

#define KW_INLINE static inline __attribute__((always_inline))

typedef uint8_t u8 __attribute__((vector_size(64)));
typedef uint16_t u16 __attribute__((vector_size(64)));
typedef uint32_t u32 __attribute__((vector_size(64)));
typedef uint64_t u64 __attribute__((vector_size(64)));
typedef int16_t i16 __attribute__((vector_size(64)));
typedef int32_t i32 __attribute__((vector_size(64)));
typedef int64_t i64 __attribute__((vector_size(64)));
typedef float f32 __attribute__((vector_size(64)));
typedef double f64 __attribute__((vector_size(64)));

struct Warp;
struct Block;

// Why a kernel's function came back.
enum Stop { STOP_DONE = 0, STOP_BARRIER = 1, STOP_YIELD = 2 };

struct Entry {
    const char* name;
    int (*run)(Warp*);
    uint32_t register_bytes, local_bytes, shared_bytes, counters;
    uint32_t shared_granule, global_granule;  // the least bytes that the kernel accesses at once
    uint32_t partial;                         // whether it has barriers that are not of all warps of a block
};

struct Fault {
    uint32_t kind, site, lane, warp;
    uint32_t block[3], thread[3];
    uint64_t address, detail;
};

struct Range { uint64_t begin, end; };

struct Launch {
    const Entry* entry;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_bytes, threads, cooperative, most_faults;
    const uint8_t* params;
    uint8_t* globals;
    const Range* ranges;
    uint64_t range_count;
    uint64_t* counts;       // per counter: executions by warps, then by lanes
    uint64_t* site_counts;  // six per site: requests, lanes, sectors or bank passes, their least, lines of 128 bytes, sectors that missed
    uint64_t sites;
    Fault* faults;
    uint32_t fault_count;
    uint32_t stopped;
    double patience;  // seconds without progress after which a wait is called endless
    // For a profile: only these blocks, one after the other; the first level's cache that one of them has; what missed it.
    const uint64_t* only;
    uint64_t only_count, cache_bytes;
    struct Miss* misses;
    uint64_t most_misses, miss_count;
};

struct Miss { uint64_t sector, site; };  // a 32-byte sector that went on to the second level

struct Warp {
    Block* block;
    uint8_t* registers;
    const uint8_t* params;
    uint8_t* globals;
    uint8_t* shared;
    uint8_t* local;
    uint64_t* counts;
    uint32_t alive, index, started, released, spun, waited;
    int32_t fuel;
    uint32_t barrier, barrier_threads, barrier_site, barrier_result, barrier_value;
    uint32_t site, local_bytes;
    uint32_t ctaid[3], nctaid[3], ntid[3];
    uint32_t rank, cluster_size, cluster_at[3], cluster_dim[3];
    uint64_t cluster_phase;
    u32 tid[3][2];
};

// Lanes that wait, by the basic block in which they go on; the lowest block runs first.
template <int N> struct Flow {
    enum { WORDS = (N + 63) / 64 };
    uint32_t pending[N];
    uint64_t ready[WORDS], parked[WORDS], held[WORDS];
};

template <int N> KW_INLINE void kw_go(Flow<N>& f, int block, uint32_t mask) {
    if (!mask) return;
    f.pending[block] |= mask;
    f.ready[block >> 6] |= 1ull << (block & 63);
    f.held[block >> 6] &= ~(1ull << (block & 63));
}
template <int N> KW_INLINE void kw_park(Flow<N>& f, int block, uint32_t mask) {
    f.pending[block] |= mask;
    f.parked[block >> 6] |= 1ull << (block & 63);
}
template <int N> KW_INLINE void kw_hold(Flow<N>& f, int block, uint32_t mask) {
    f.pending[block] |= mask;
    f.ready[block >> 6] |= 1ull << (block & 63);
    f.held[block >> 6] |= 1ull << (block & 63);
}
template <int N> KW_INLINE bool kw_others(Flow<N>& f) {
    for (int i = 0; i < Flow<N>::WORDS; i++)
        if (f.ready[i] & ~f.held[i]) return true;
    return false;
}
template <int N> KW_INLINE int kw_take(Flow<N>& f, int i, uint64_t word, uint32_t& mask) {
    int b = i * 64 + __builtin_ctzll(word);
    mask = f.pending[b];
    f.pending[b] = 0;
    f.ready[i] &= ~(1ull << (b & 63));
    f.held[i] &= ~(1ull << (b & 63));
    return b;
}
// The next block: the lowest; a held one (lanes missing at a warp-wide instruction) only when nothing else can run. A block
// whose lanes spun without end gives way once to any other.
template <int N> KW_INLINE int kw_next(Warp* w, Flow<N>& f, uint32_t& mask) {
    if (__builtin_expect(w->spun != 0, 0)) {
        int avoided = (int)w->spun - 1;
        w->spun = 0;
        for (int i = 0; i < Flow<N>::WORDS; i++) {
            uint64_t word = f.ready[i] & ~f.held[i];
            if (i == avoided >> 6) word &= ~(1ull << (avoided & 63));
            if (word) return kw_take(f, i, word, mask);
        }
    }
    for (int i = 0; i < Flow<N>::WORDS; i++)
        if (uint64_t word = f.ready[i] & ~f.held[i]) return kw_take(f, i, word, mask);
    for (int i = 0; i < Flow<N>::WORDS; i++)
        if (f.ready[i]) return kw_take(f, i, f.ready[i], mask);
    return -1;
}
template <int N> KW_INLINE void kw_resume(Warp* w, Flow<N>& f) {
    if (!w->started) {
        w->started = 1;
        __builtin_memset(&f, 0, sizeof f);
        kw_go(f, 0, w->alive);
    }
    if (!w->released) return;  // lanes parked at a barrier stay there while others of their warp go on
    w->released = 0;
    for (int i = 0; i < Flow<N>::WORDS; i++) {
        f.ready[i] |= f.parked[i];
        f.parked[i] = 0;
    }
}
template <int N> KW_INLINE int kw_stop(Flow<N>& f) {
    for (int i = 0; i < Flow<N>::WORDS; i++)
        if (f.parked[i]) return STOP_BARRIER;
    return STOP_DONE;
}
KW_INLINE void kw_count(Warp* w, int counter, uint32_t mask) {
    if (__builtin_expect(w->counts != nullptr, 0)) {
        w->counts[2 * counter]++;
        w->counts[2 * counter + 1] += (uint64_t)__builtin_popcount(mask);
    }
}

enum Operation {
    OP_ADD, OP_MIN, OP_MAX, OP_AND, OP_OR, OP_XOR, OP_EXCH, OP_CAS, OP_INC, OP_DEC, OP_POPC, OP_SUB, OP_MUL,
};
enum Type {
    T_U8, T_S8, T_U16, T_S16, T_U32, T_S32, T_U64, T_S64, T_F16, T_BF16, T_F16X2, T_BF16X2, T_F32, T_F64, T_TF32, T_E4M3, T_E5M2,
};
enum Kind {
    F_OUT_OF_BOUNDS = 1, F_MISALIGNED, F_UNINITIALISED, F_SHARED_RACE, F_GLOBAL_RACE, F_DIVERGENT_BARRIER, F_DEADLOCK, F_STALE_COPY,
    F_TRAP, F_ASSERT, F_SHARED_BOUNDS, F_LOCAL_BOUNDS, F_MISSING_LANES,
    F_BAD_MAP, F_GONE, F_UNFINISHED, F_LANE_RACE,
};

enum { MB_INIT, MB_INVAL, MB_ARRIVE, MB_EXPECT, MB_ARRIVE_EXPECT, MB_COMPLETE, MB_DROP, MB_COPIES, MB_COPIES_NOINC, MB_PENDING };
enum { TILE_ADDRESS, TILE_RANK, TILE_BOX, TILE_EXTENT, TILE_STRIDE, TILE_STEP, TILE_TYPE, TILE_INTERLEAVE, TILE_SWIZZLE, TILE_FILL, TILE_COPY };

extern "C" {
// Memory. Addresses: 64-bit generic or global in four vectors, 32-bit shared in two. `data` holds `n` registers, each in the
// container of its size: 1 and 2 bytes in one u16 vector, 4 in two u32, 8 in four u64.
void kw_load(Warp*, uint32_t mask, uint32_t site, int bytes, int n, u64, u64, u64, u64, void* data);
void kw_store(Warp*, uint32_t mask, uint32_t site, int bytes, int n, u64, u64, u64, u64, const void* data);
void kw_load_shared(Warp*, uint32_t mask, uint32_t site, int bytes, int n, u32, u32, void* data);
void kw_store_shared(Warp*, uint32_t mask, uint32_t site, int bytes, int n, u32, u32, const void* data);
void kw_load_4(Warp*, uint32_t mask, uint32_t site, u64, u64, u64, u64, u32* data);
void kw_store_4(Warp*, uint32_t mask, uint32_t site, u64, u64, u64, u64, u32, u32);
void kw_load_4x4(Warp*, uint32_t mask, uint32_t site, u64, u64, u64, u64, u32* data);
void kw_store_4x4(Warp*, uint32_t mask, uint32_t site, u64, u64, u64, u64, const u32* data);
void kw_load_shared_4(Warp*, uint32_t mask, uint32_t site, u32, u32, u32* data);
void kw_store_shared_4(Warp*, uint32_t mask, uint32_t site, u32, u32, u32, u32);
uint64_t kw_load_uniform(Warp*, uint32_t mask, uint32_t site, int bytes, uint64_t address);
uint64_t kw_load_shared_uniform(Warp*, uint32_t mask, uint32_t site, int bytes, uint32_t address);
void kw_load_local(Warp*, uint32_t mask, uint32_t site, int bytes, int n, u64, u64, u64, u64, void* data);
void kw_store_local(Warp*, uint32_t mask, uint32_t site, int bytes, int n, u64, u64, u64, u64, const void* data);
void kw_atomic(Warp*, uint32_t mask, uint32_t site, int space, int op, int type, int n, const u64* address, const void* a, const void* b,
               void* result);
void kw_copy_async(Warp*, uint32_t mask, uint32_t site, int bytes, u32, u32, u64, u64, u64, u64, u32, u32);
void kw_copy_commit(Warp*, uint32_t mask);
void kw_copy_wait(Warp*, uint32_t mask, uint32_t groups, int all);

// Barriers in shared memory, bulk copies, tiles by tensor maps; addresses are of this process.
void kw_mbarrier(Warp*, uint32_t mask, uint32_t site, int what, const u64* address, const u32* number, u64* result);
uint32_t kw_mbarrier_test(Warp*, uint32_t mask, uint32_t site, int by_parity, const u64* address, const u64* phase);
void kw_bulk_load(Warp*, uint32_t mask, uint32_t site, const u64* to, const u64* from, const u32* size, const u64* mbar, uint32_t members);
void kw_bulk_store(Warp*, uint32_t mask, uint32_t site, int op, int type, int element, const u64* to, const u64* from, const u32* size);
void kw_bulk_commit(Warp*, uint32_t mask);
void kw_bulk_wait(Warp*, uint32_t mask, uint32_t site, uint32_t left);
void kw_tile(Warp*, uint32_t mask, uint32_t site, int load, int op, int rank, const u64* shared, const u64* map, const u32* places, const u64* mbar,
             uint32_t members);
void kw_tensor_map(Warp*, uint32_t mask, uint32_t site, int field, int number, const u64* address, const u64* value);
void kw_cluster_addresses(Warp*, u32 a, u32 b, u64* out);
uint32_t kw_mapa_32(Warp*, uint32_t a, uint32_t rank);
uint64_t kw_mapa_64(Warp*, uint64_t a, uint32_t rank);
uint32_t kw_rank_of(Warp*, uint64_t a);
void kw_cluster_arrive(Warp*, uint32_t mask);
void kw_wgmma_reads(Warp*, uint32_t site, uint32_t n, uint32_t k, uint32_t bytes, uint32_t has_a, uint64_t at_a, int turn_a, uint64_t at_b, int turn_b);
void kw_wgmma_commit(Warp*);
void kw_wgmma_wait(Warp*, uint32_t site, uint32_t left);
void kw_in_flight(Warp*, uint32_t mask, uint32_t site);

// Matrices: registers of a fragment one behind the other, two vectors each (four for f64).
void kw_ldmatrix(Warp*, uint32_t mask, uint32_t site, int n, int transposed, u32, u32, u32* data);
void kw_stmatrix(Warp*, uint32_t mask, uint32_t site, int n, int transposed, u32, u32, const u32* data);
void kw_mma(Warp*, uint32_t site, int m, int n, int k, int type_a, int type_b, int type_d, int type_c, int flags, const u32* a, const u32* b,
            const u32* c, u32* d);
// One warp's sixteen rows of a warpgroup's product; `a` is a fragment, or null where a descriptor says where it lies.
void kw_wgmma(Warp*, uint32_t site, int n, int k, int type_a, int type_b, int type_d, int flags, const u32* a, uint64_t at_a, uint64_t at_b,
              u32* d);
void kw_mma_16816_f16_f32(const u32* a, const u32* b, const u32* c, u32* d);
void kw_mma_16816_bf16_f32(const u32* a, const u32* b, const u32* c, u32* d);
void kw_mma_1688_tf32_f32(const u32* a, const u32* b, const u32* c, u32* d);

// Warp-wide.
uint32_t kw_shuffle(Warp*, uint32_t mask, uint32_t site, int mode, uint32_t members, const u32* value, u32 b0, u32 b1, u32 c0, u32 c1, u32* result);
uint32_t kw_match_any(Warp*, uint32_t mask, int bytes, const void* value, u32* result);
uint32_t kw_match_all(Warp*, uint32_t mask, int bytes, const void* value, uint32_t* result);
uint32_t kw_redux(Warp*, uint32_t mask, int op, int type, u32, u32);

// Blocks and grids.
void kw_arrive(Warp*, uint32_t barrier, uint32_t threads);
void kw_trap(Warp*, uint32_t mask, uint32_t site);
void kw_missing_lanes(Warp*, uint32_t mask, uint32_t site, uint32_t members);
void kw_divergent_barrier(Warp*, uint32_t mask, uint32_t site);
void kw_printf(Warp*, uint32_t mask, u64, u64, u64, u64, u64, u64, u64, u64);
void kw_assert(Warp*, uint32_t mask, uint32_t site, u64, u64, u64, u64);
void kw_malloc(Warp*, uint32_t mask, const u64* size, u64* result);
void kw_free(Warp*, uint32_t mask, const u64* address);
uint64_t kw_clock(void);
uint64_t kw_globaltimer(void);

int kw_launch(Launch*);
}
