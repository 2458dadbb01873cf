// The runtime's own view of blocks and grids; translated kernels do not see it.
#pragma once
#include <atomic>
#include <mutex>
#include <vector>
#include "machine.h"

struct Block;

struct Grid {
    Launch* launch;
    std::atomic<uint64_t> next_block, progress;
    std::atomic<int> stopped;
    std::mutex lock;
    alignas(16) uint32_t workspace[8];
    void* checks;  // of the checked variant
};

struct Barrier {
    uint32_t warps, extra, expected, value, kind, any;
};

// Blocks that run side by side on one thread of the host, in the order of their rank.
struct Cluster {
    std::vector<Block*> blocks;
    uint64_t arrived = 0, phase = 0;
    uint32_t running = 0;
};

struct Block {
    Launch* launch;
    Grid* grid;
    uint64_t number, shared_bytes, turns;
    uint32_t warp_count, running, rounds;  // rounds in which nothing but spinning was seen
    std::vector<Warp*> warps;
    std::vector<uint8_t> state;  // of each warp
    uint8_t* memory;             // all of the block's own memory
    uint8_t* shared;
    Barrier barriers[17];
    std::vector<uint64_t> counts, site_counts;  // of this block's worker, added up at its end
    void* checks;
    Cluster* cluster = nullptr;
    bool gone = false;
};

void kw_fault(Warp* w, uint32_t kind, uint32_t site, int lane, uint64_t address, uint64_t detail);
void kw_stop_grid(Warp* w);

// Of the variant: called when a block begins and ends, and when a barrier lets its warps go.
void kw_block_begins(Block*);
void kw_block_ends(Block*);
void kw_block_freed(Block*);
void kw_barrier_opens(Block*, uint32_t barrier);
void kw_warp_arrives(Warp*, uint32_t barrier);
void kw_cluster_opens(Block*);
void kw_grid_begins(Grid*);
void kw_grid_ends(Grid*);
uint64_t kw_shared_room(uint64_t bytes);
