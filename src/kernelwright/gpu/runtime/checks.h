// Of `memory.cpp`: what is asked before each access. In the plain variant nothing is.
#pragma once
#ifndef KW_CHECKED
#define CHECKED 0
KW_INLINE uint32_t check_global(Warp*, uint32_t mask, uint32_t, int, const uint64_t*, int) { return mask; }
KW_INLINE uint32_t check_shared(Warp*, uint32_t mask, uint32_t, int, const uint64_t*, int) { return mask; }
KW_INLINE uint32_t check_stored(Warp*, uint32_t mask, uint32_t, int, int, const uint64_t*, const void*) { return mask; }
KW_INLINE uint32_t check_local(Warp*, uint32_t mask, uint32_t, int, const uint64_t*) { return mask; }
KW_INLINE uint32_t check_atomic(Warp*, uint32_t mask, uint32_t, int, const uint64_t*, int) { return mask; }
KW_INLINE bool check_uniform(Warp*, uint32_t, uint32_t, int, uint64_t, int) { return true; }
void kw_block_begins(Block*) {}
void kw_block_ends(Block*) {}
void kw_block_freed(Block*) {}
void kw_barrier_opens(Block*, uint32_t) {}
void kw_warp_arrives(Warp*, uint32_t) {}
void kw_cluster_opens(Block*) {}
void kw_grid_begins(Grid*) {}
void kw_grid_ends(Grid*) {}
uint64_t kw_shared_room(uint64_t bytes) { return bytes + 128; }
extern "C" {
void kw_copy_async(Warp* w, uint32_t mask, uint32_t, int bytes, u32 s0, u32 s1, u64 a, u64 b, u64 c, u64 d, u32 n0, u32 n1) {
    Addresses from(a, b, c, d), to(w->shared, s0, s1);
    u32 given[2] = {n0, n1};
    const uint32_t* n = (const uint32_t*)given;
    if (bytes == 16 && mask == ~0u) {
        for (int i = 0; i < 32; i++) {
            if (n[i] == 16) memcpy((void*)to.at[i], (const void*)from.at[i], 16);
            else {
                memset((void*)to.at[i], 0, 16);
                memcpy((void*)to.at[i], (const void*)from.at[i], n[i] & 15);
            }
        }
        return;
    }
    for (uint32_t m = mask; m; m &= m - 1) {
        int i = __builtin_ctz(m);
        memset((void*)to.at[i], 0, (size_t)bytes);
        memcpy((void*)to.at[i], (const void*)from.at[i], n[i] < (uint32_t)bytes ? n[i] : (uint32_t)bytes);
    }
}
void kw_copy_commit(Warp*, uint32_t) {}
void kw_divergent_barrier(Warp*, uint32_t, uint32_t) {}
void kw_copy_wait(Warp*, uint32_t, uint32_t, int) {}
}
#else
#include "checked.h"
#endif
