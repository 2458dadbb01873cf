// The emulator's runtime: blocks of threads on CPU cores, one fiber a thread, and the checks a GPU does not give.
//
// A worker (one OpenMP thread) runs whole blocks. A thread of a block starts on a fresh stack only when the one before it waits;
// threads that never wait share one stack. At a barrier or a warp operation a fiber switches straight to the next runnable one.
// Every memory access of kernel code arrives in `access`: shared memory is looked up in a shadow of stamps (who, and between which
// synchronisations), global memory in the list of registered allocations. The first failure ends the launch, as a fault would.
#include <dlfcn.h>
#include <link.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kw_half.h"
#include "kw_runtime.h"
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

__thread KwPlace* kw_self = nullptr;

namespace {

constexpr int kMaxThreads = 1024, kWarps = 32, kMostTogether = 512;
constexpr size_t kStack = 256 << 10, kStackTogether = 64 << 10, kSharedMost = 227 << 10, kSharedPlain = 48 << 10;
constexpr uint32_t kWho = 11;  // bits of a stamp that say who; the rest says when
constexpr uint32_t kAtomic = 2046, kMany = 2047, kWarpMany = 1024;

// ---------------------------------------------------------------- switching stacks

#if defined(__x86_64__)
typedef void* Context;
extern "C" void kw_switch(void** from, void* to);
asm(R"(
.text
.globl kw_switch
.hidden kw_switch
.type kw_switch,@function
kw_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
Context make_context(char* top, size_t, void (*entry)()) {
  void** at = (void**)((uintptr_t)top & ~uintptr_t(15));
  *--at = nullptr;          // the entry's return address: it never returns
  *--at = (void*)entry;
  for (int k = 0; k < 6; ++k) *--at = nullptr;
  return at;
}
#elif defined(__aarch64__)
typedef void* Context;
extern "C" void kw_switch(void** from, void* to);
asm(R"(
.text
.globl kw_switch
.hidden kw_switch
kw_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
Context make_context(char* top, size_t, void (*entry)()) {
  char* at = (char*)((uintptr_t)top & ~uintptr_t(15)) - 160;
  memset(at, 0, 160);
  ((void**)at)[11] = (void*)entry;  // x30
  return at;
}
#else
typedef ucontext_t* Context;
void kw_switch(Context* from, Context to) { swapcontext(*from, to); }
Context make_context(char* top, size_t size, void (*entry)()) {
  Context c = (Context)calloc(1, sizeof(ucontext_t));
  getcontext(c);
  c->uc_stack.ss_sp = top - size;
  c->uc_stack.ss_size = size;
  makecontext(c, entry, 0);
  return c;
}
#endif

// ---------------------------------------------------------------- records

enum State : uint8_t { kNew, kReady, kAtBarrier, kAtWarp, kAtSoft, kDone };

struct Worker;

struct Copy { void* to; size_t bytes; int group; unsigned char data[16]; };

struct Thread {
  KwPlace place;  // first: kw_self points here
  Worker* worker;
  Context context;
  State state;
  int id, line, predicate, verdict;
  int passed;      // barriers
  int grids;       // barriers of the whole grid
  int slot;        // of its warp operation
  uint32_t soft;   // answer of a soft rendezvous
  int groups;      // of asynchronous copies, committed so far
  std::vector<Copy> copies;
};

struct WarpOp {  // one exchange in flight: lanes of `mask` gather in `arrived`
  uint32_t mask, arrived, left;
  int line;
  bool open;
  unsigned char values[32][256];
};

struct Warp {
  uint32_t ready, started, alive, soft;
  uint32_t sync;  // time of the last warp-level synchronisation
  WarpOp ops[8];
};

struct Cell { uint32_t write, read; };  // stamps: time << kWho | who

struct Site { uintptr_t low, high; };

struct Worker {
  Thread threads[kMaxThreads];
  Warp warps[kWarps];
  Context main;
  char* stacks = nullptr;
  size_t stack = kStack, stacks_bytes = 0;
  int stacks_made = 0, free_count = 0, grids = 0;
  int free_stacks[kMaxThreads];
  int stack_of[kMaxThreads];
  const KwLaunch* launch = nullptr;
  int count = 0, started = 0, alive = 0, waiting = 0, warp_at = 0;
  int barrier_line = 0, barrier_kind = 0, first_waiting = 0;
  int dead_stack = -1;
  uint32_t time, block_start, block_sync;
  alignas(128) unsigned char* shared = nullptr;
  size_t shared_size = 0, static_top = 0;
  Cell* cells = nullptr;
  Cell* halves = nullptr;
  struct { uint32_t launch; uint32_t offset; } statics[512];
  bool failed = false;
  Site sites[1024];
};

// What every checked access needs, one load away. `sites` is null while no kernel code runs.
struct Hot {
  uintptr_t shared;
  size_t shared_size;
  Cell* cells;
  Site* sites;
  uint32_t now, begin, fence, id;  // stamps of: this moment, the block's start, its last barrier
};
__thread Hot hot __attribute__((tls_model("initial-exec")));

struct Range { uintptr_t low, high; char name[24]; };

std::vector<Range> ranges;  // sorted, disjoint
std::mutex ranges_mutex;
bool lenient = false;       // a pointer of unknown memory was passed: only known memory can be checked
std::atomic<bool> stop{false};
std::mutex error_mutex;
char error_text[1200];
int error_code = 0;
size_t shared_allowed = kSharedPlain;
std::atomic<uint32_t> launches{0};
std::vector<KwRecord> records;
uint32_t static_launch = 0;
uintptr_t host_frame = 0;   // the launching function's stack: a launch's arguments lie there

void* pages(size_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

constexpr size_t kSharedBytes = 256 << 10, kHalvesBytes = sizeof(Cell) * (128 << 10), kCellsBytes = sizeof(Cell) * (64 << 10);

Worker* make_worker(size_t stack, int threads) {
  Worker* w = new Worker();
  w->time = 1;
  w->dead_stack = -1;
  w->stack = stack;
  w->stacks_bytes = stack * threads;
  w->shared = (unsigned char*)pages(kSharedBytes);
  w->halves = (Cell*)pages(kHalvesBytes);
  w->cells = (Cell*)pages(kCellsBytes);
  w->stacks = (char*)pages(w->stacks_bytes);
  return w;
}

void drop_worker(Worker* w) {
  munmap(w->shared, kSharedBytes);
  munmap(w->halves, kHalvesBytes);
  munmap(w->cells, kCellsBytes);
  munmap(w->stacks, w->stacks_bytes);
  delete w;
}

Worker* worker_here() {
  static thread_local Worker* mine = nullptr;
  if (!mine) mine = make_worker(kStack, kMaxThreads);
  return mine;
}

Thread* self() { return (Thread*)kw_self; }

// ---------------------------------------------------------------- failures

void leave(Worker* w) {  // abandons the block: back to the worker's own stack
  Context dummy;
#if !defined(__x86_64__) && !defined(__aarch64__)
  ucontext_t here;
  dummy = &here;
#endif
  kw_switch(&dummy, w->main);
  __builtin_unreachable();
}

void set_error(int code, const char* text) {
  std::lock_guard<std::mutex> lock(error_mutex);
  if (error_code == 0) {
    error_code = code;
    snprintf(error_text, sizeof error_text, "%s", text);
  }
}

// `pc` is turned into a source line by whoever reads the message (addr2line): "@+0x…:library@"
void fail_at(uintptr_t pc, int line, const char* format, ...) {
  Thread* t = self();
  char what[700], where[400], text[1100];
  va_list list;
  va_start(list, format);
  vsnprintf(what, sizeof what, format, list);
  va_end(list);
  if (pc) {
    Dl_info info;
    uintptr_t base = dladdr((void*)pc, &info) ? (uintptr_t)info.dli_fbase : 0;
    snprintf(where, sizeof where, "@+0x%zx:%s@", (size_t)(pc - 1 - base), base ? info.dli_fname : "");
  } else {
    snprintf(where, sizeof where, "line %d", line);
  }
  snprintf(text, sizeof text, "kernel %s, %s: thread (%u, %u, %u) of block (%u, %u, %u) %s", t->worker->launch->name, where,
           t->place.threadIdx[0], t->place.threadIdx[1], t->place.threadIdx[2], t->place.blockIdx[0], t->place.blockIdx[1],
           t->place.blockIdx[2], what);
  set_error(719, text);
  t->worker->failed = true;
  stop = true;
  leave(t->worker);
}

// ---------------------------------------------------------------- scheduling

void fiber_main();

void start(Worker* w, int id) {
  Thread& t = w->threads[id];
  const KwLaunch* l = w->launch;
  t.worker = w;
  t.id = id;
  t.state = kReady;
  t.place.threadIdx[0] = id % l->block[0];
  t.place.threadIdx[1] = id / l->block[0] % l->block[1];
  t.place.threadIdx[2] = id / l->block[0] / l->block[1];
  Warp& warp = w->warps[id / 32];
  warp.started |= 1u << id % 32;
}

int take_stack(Worker* w) {
  if (w->free_count) return w->free_stacks[--w->free_count];
  return w->stacks_made++;
}

// Chooses who runs next: a ready lane of the same warp first, then new threads, then other warps. -1: nobody can run.
int choose(Worker* w) {
  for (int k = 0; k <= (w->count - 1) / 32; ++k) {
    int at = w->warp_at + k;
    const int warps = (w->count + 31) / 32;
    if (at >= warps) at -= warps;
    Warp& warp = w->warps[at];
    if (warp.ready) {
      w->warp_at = at;
      return at * 32 + __builtin_ctz(warp.ready);
    }
    if (w->started < w->count && w->started / 32 == at) {
      w->warp_at = at;
      return w->started;
    }
    if (warp.soft && !(w->started < w->count && w->started / 32 <= at)) {
      // nobody of this warp can run: those who asked who is with them are together now, one line at a time
      const int first = __builtin_ctz(warp.soft);
      const int line = w->threads[at * 32 + first].line;
      uint32_t together = 0;
      for (uint32_t m = warp.soft; m; m &= m - 1) {
        const int lane = __builtin_ctz(m);
        if (w->threads[at * 32 + lane].line == line) together |= 1u << lane;
      }
      for (uint32_t m = together; m; m &= m - 1) {
        Thread& t = w->threads[at * 32 + __builtin_ctz(m)];
        t.soft = together;
        t.state = kReady;
      }
      warp.soft &= ~together;
      warp.ready |= together;
      w->warp_at = at;
      return at * 32 + first;
    }
  }
  return -1;
}

void stuck(Worker* w) {
  int barrier = -1, lane = -1;
  for (int k = 0; k < w->count; ++k) {
    if (w->threads[k].state == kAtBarrier && barrier < 0) barrier = k;
    if (w->threads[k].state == kAtWarp && lane < 0) lane = k;
  }
  Thread& t = w->threads[lane >= 0 ? lane : barrier];
  kw_self = &t.place;
  if (lane >= 0) {
    const WarpOp& op = w->warps[lane / 32].ops[t.slot];
    char other[120] = "";
    const uint32_t missing = op.mask & w->warps[lane / 32].alive & ~op.arrived;
    if (missing) {
      Thread& m = w->threads[lane / 32 * 32 + __builtin_ctz(missing)];
      snprintf(other, sizeof other, "; lane %d waits at line %d instead", __builtin_ctz(missing), m.line);
    }
    fail_at(0, t.line, "waits for ever in a warp operation with mask 0x%08x: lanes 0x%08x never come%s (divergence)", op.mask,
            missing, other);
  }
  fail_at(0, t.line, "waits for ever at a barrier that others never reach (barrier divergence)");
}

void go(Worker* w, Context* from) {
  const int next = choose(w);
  if (next < 0) stuck(w);
  Thread& t = w->threads[next];
  if (!(w->warps[next / 32].started >> next % 32 & 1)) {
    start(w, next);
    w->started = next + 1;
    const int stack = take_stack(w);
    w->stack_of[next] = stack;
    t.context = make_context(w->stacks + w->stack * (stack + 1), w->stack, fiber_main);
  }
  w->warps[next / 32].ready &= ~(1u << next % 32);
  kw_self = &t.place;
  hot.id = next;
  kw_switch(from, t.context);
}

void block_synced(Worker* w) {
  w->block_sync = w->time;
  hot.now = hot.fence = w->time << kWho;
}

// Lanes of one warp that wait while others, which took part in earlier barriers, have left this one out and ended
void refuse_divergence(Worker* w) {
  for (int first = 0; first < w->count; first += 32) {
    int waits = -1, gone = -1;
    for (int k = first; k < std::min(first + 32, w->count); ++k) {
      if (w->threads[k].state == kAtBarrier) waits = k;
      if (w->threads[k].state == kDone && w->threads[k].passed) gone = k;
    }
    if (waits >= 0 && gone >= 0) {
      kw_self = &w->threads[waits].place;
      fail_at(0, w->threads[waits].line, "is at a barrier that thread %d of its warp has passed by (barrier divergence)", gone);
    }
  }
}

void release_barrier(Worker* w) {
  if (w->alive != w->count) refuse_divergence(w);
  int sum = 0, all = 1, any = 0;
  for (int k = 0; k < w->count; ++k) {
    const Thread& t = w->threads[k];
    if (t.state == kAtBarrier) {
      sum += t.predicate != 0;
      all &= t.predicate != 0;
      any |= t.predicate != 0;
    }
  }
  const int verdict = w->barrier_kind == 1 ? sum : w->barrier_kind == 2 ? all : any;
  for (int k = 0; k < w->count; ++k) {
    Thread& t = w->threads[k];
    if (t.state == kAtBarrier) {
      t.verdict = verdict;
      ++t.passed;
      t.state = kReady;
      w->warps[k / 32].ready |= 1u << k % 32;
    }
  }
  w->waiting = 0;
  ++w->time;
  block_synced(w);
}

void release_warp(Worker* w, int warp_number, WarpOp& op) {
  Warp& warp = w->warps[warp_number];
  op.open = false;
  op.left = op.arrived;
  warp.sync = ++w->time;
  hot.now = w->time << kWho;
  for (uint32_t m = op.arrived; m; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    Thread& t = w->threads[warp_number * 32 + lane];
    if (t.state == kAtWarp) {
      t.state = kReady;
      warp.ready |= 1u << lane;
    }
  }
}

void finish(Thread* t) {
  Worker* w = t->worker;
  const int number = t->id / 32;
  Warp& warp = w->warps[number];
  t->state = kDone;
  warp.alive &= ~(1u << t->id % 32);
  --w->alive;
  for (WarpOp& op : warp.ops)
    if (op.open && op.arrived == (op.mask & warp.alive) && op.arrived) release_warp(w, number, op);
  if (w->waiting && w->waiting == w->alive) release_barrier(w);
}

void fiber_main() {
  for (;;) {
    Thread* t = self();
    Worker* w = t->worker;
    w->launch->body(w->launch->closure);
    t = self();
    w = t->worker;
    finish(t);
    if (w->alive == 0) leave(w);
    // a thread that has not begun can have this stack
    if (w->started < w->count && !w->warps[w->started / 32].ready) {
      const int next = w->started++;
      start(w, next);
      w->stack_of[next] = w->stack_of[t->id];
      w->warp_at = next / 32;
      kw_self = &w->threads[next].place;
      hot.id = next;
      continue;
    }
    w->free_stacks[w->free_count++] = w->stack_of[t->id];  // nobody can take it before we have left it: one OS thread
    Context dummy;
#if !defined(__x86_64__) && !defined(__aarch64__)
    ucontext_t here;
    dummy = &here;
#endif
    go(w, &dummy);
  }
}

void run_block(Worker* w, const KwLaunch* l, uint64_t number) {
  w->launch = l;
  w->count = int(l->block[0] * l->block[1] * l->block[2]);
  w->started = 0;
  w->alive = w->count;
  w->waiting = 0;
  w->warp_at = 0;
  w->stacks_made = w->free_count = 0;
  w->failed = false;
  w->grids = 0;
  if (w->time > (1u << (32 - kWho)) - (1u << 16)) {  // stamps would overflow soon: forget them all
    memset(w->cells, 0, sizeof(Cell) * (64 << 10));
    w->time = 1;
  }
  w->block_start = ++w->time;
  hot = {(uintptr_t)w->shared, w->shared_size, w->cells, w->sites, 0, w->block_start << kWho, 0, 0};
  block_synced(w);
  KwPlace place;
  place.blockIdx[0] = number % l->grid[0];
  place.blockIdx[1] = number / l->grid[0] % l->grid[1];
  place.blockIdx[2] = number / l->grid[0] / l->grid[1];
  memcpy(place.blockDim, l->block, sizeof place.blockDim);
  memcpy(place.gridDim, l->grid, sizeof place.gridDim);
  for (int k = 0; k < w->count; ++k) {
    w->threads[k].place = place;
    w->threads[k].state = kNew;
    w->threads[k].passed = w->threads[k].groups = w->threads[k].grids = 0;
    w->threads[k].copies.clear();
  }
  for (int k = 0; k < (w->count + 31) / 32; ++k) {
    Warp& warp = w->warps[k];
    warp.ready = warp.started = warp.soft = 0;
    const int lanes = std::min(32, w->count - 32 * k);
    warp.alive = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.sync = w->block_start;
    for (WarpOp& op : warp.ops) op.open = false, op.left = 0;
  }
#if !defined(__x86_64__) && !defined(__aarch64__)
  ucontext_t here;
  w->main = &here;
#endif
  go(w, &w->main);
  kw_self = nullptr;
  hot.sites = nullptr;
  hot.shared_size = 0;
}

// ---------------------------------------------------------------- a grid that meets

// A cooperative launch: all blocks at once, each on an OS thread of its own, which sleeps while its block waits for the others
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t waiting = 0, total = 0, round = 0;
  bool left = false;  // a block has ended: whoever waits from now on waits in vain
} meeting;

void meet(Worker* w, int line) {
  bool left;
  {
    std::unique_lock<std::mutex> lock(meeting.mutex);
    const uint64_t round = meeting.round;
    if (++meeting.waiting == meeting.total) {
      meeting.waiting = 0;
      ++meeting.round;
      meeting.changed.notify_all();
    } else {
      meeting.changed.wait(lock, [&] { return meeting.round != round || meeting.left || stop; });
    }
    left = meeting.left && meeting.round == round;
  }
  if (stop) {
    w->failed = true;
    leave(w);
  }
  if (left) fail_at(0, line, "waits for ever at grid.sync(): another block has ended without it");
}

void run_together(const KwLaunch* l, uint64_t blocks) {
  meeting.waiting = 0;
  meeting.total = blocks;
  meeting.left = false;
  std::vector<std::thread> threads;
  for (uint64_t b = 0; b < blocks; ++b)
    threads.emplace_back([l, b] {
      Worker* w = make_worker(kStackTogether, int(l->block[0] * l->block[1] * l->block[2]));
      w->static_top = (l->shared + 127) / 128 * 128;
      w->shared_size = l->shared;
      run_block(w, l, b);
      drop_worker(w);
      std::lock_guard<std::mutex> lock(meeting.mutex);
      meeting.left = true;
      meeting.changed.notify_all();
    });
  for (std::thread& thread : threads) thread.join();
}

// ---------------------------------------------------------------- checked accesses

const Range* find(uintptr_t at) {
  auto it = std::upper_bound(ranges.begin(), ranges.end(), at, [](uintptr_t a, const Range& r) { return a < r.low; });
  if (it == ranges.begin()) return nullptr;
  --it;
  return at < it->high ? &*it : nullptr;
}

__attribute__((noinline)) void race(Thread* t, uintptr_t pc, const char* doing, const char* done, uint32_t stamp, size_t offset) {
  char who[64];
  const uint32_t other = stamp & ((1u << kWho) - 1);
  const uint32_t* b = t->place.blockDim;
  if (other < kWarpMany)
    snprintf(who, sizeof who, "thread (%u, %u, %u)", other % b[0], other / b[0] % b[1], other / b[0] / b[1]);
  else
    snprintf(who, sizeof who, "%s", other == kAtomic ? "an atomic operation" : "other threads");
  fail_at(pc, 0, "%s byte %zu of shared memory, which %s %s with no barrier in between (race)", doing, offset, who, done);
}

// True if what the stamp tells happened before this thread's last synchronisation with its author
inline bool ordered(const Thread* t, uint32_t stamp) {
  const Worker* w = t->worker;
  if (stamp < w->block_sync << kWho) return true;
  const uint32_t who = stamp & ((1u << kWho) - 1);
  if (who == (uint32_t)t->id) return true;
  const uint32_t warp = who < kWarpMany ? who / 32 : who < kWarpMany + kWarps ? who - kWarpMany : ~0u;
  return warp == (uint32_t)t->id / 32 && stamp < w->warps[warp].sync << kWho;
}

// kind: 0 read, 1 write, 2 atomic
void check_cell(Thread* t, Cell* c, size_t bytes, int kind, uintptr_t pc, size_t offset) {
  Worker* w = t->worker;
  const uint32_t now = w->time << kWho, fence = w->block_sync << kWho;
  if (kind != 1 && c->write < w->block_start << kWho)
    fail_at(pc, 0, "reads byte %zu of shared memory, which nothing in this block has written (uninitialised)", offset);
  const uint32_t writer = c->write & ((1u << kWho) - 1);
  if (!ordered(t, c->write) && bytes > 1 && !(kind == 2 && writer == kAtomic))
    race(t, pc, kind == 0 ? "reads" : kind == 1 ? "writes" : "updates", "wrote", c->write, offset);
  if (kind != 0) {
    if (!ordered(t, c->read) && bytes > 1) race(t, pc, kind == 1 ? "writes" : "updates", "read", c->read, offset);
    c->write = now | (kind == 2 ? kAtomic : t->id);
    return;
  }
  const uint32_t who = c->read & ((1u << kWho) - 1);
  if (c->read < fence || who == (uint32_t)t->id) {
    c->read = now | t->id;
    return;
  }
  const uint32_t warp = who < kWarpMany ? who / 32 : who < kWarpMany + kWarps ? who - kWarpMany : ~0u;
  c->read = now | (warp == (uint32_t)t->id / 32 ? kWarpMany + warp : kMany);
}

// A cell is four bytes; one that is accessed in halves says so, and its two half cells say the rest
constexpr uint32_t kSplit = ~0u;

__attribute__((noinline)) void shared_slow(Thread* t, size_t offset, size_t bytes, int kind, uintptr_t pc) {
  Worker* w = t->worker;
  Cell* c = w->cells + offset / 4;
  Cell* halves = w->halves + offset / 4 * 2;
  if (bytes >= 4 && c->write != kSplit) return check_cell(t, c, bytes, kind, pc, offset);
  if (c->write != kSplit) {
    halves[0] = halves[1] = *c;
    c->write = kSplit;
  }
  if (bytes >= 4 || offset % 4 < 2) check_cell(t, halves, bytes, kind, pc, offset);
  if (bytes >= 4 || offset % 4 >= 2) check_cell(t, halves + 1, bytes, kind, pc, offset);
  if (bytes >= 4 && kind == 1) *c = halves[0];
}

inline __attribute__((always_inline)) void shared_access(size_t offset, size_t bytes, int kind, uintptr_t pc) {
  const uint32_t fence = hot.fence, mine = hot.now | hot.id;
  if (bytes < 4 || kind == 2) {
    shared_slow(self(), offset, bytes, kind, pc);
    if (bytes > 4) shared_slow(self(), offset + 4, bytes, kind, pc);
    return;
  }
  for (size_t k = 0; k < bytes; k += 4) {
    Cell* c = hot.cells + (offset + k) / 4;
    if (c->write < fence) {
      const uint32_t read = c->read;
      if (kind == 1) {
        if (read < fence) {
          c->write = mine;
          continue;
        }
      } else if (c->write >= hot.begin) {
        if (read < fence) {
          c->read = mine;
          continue;
        }
        const uint32_t who = read & ((1u << kWho) - 1);
        if (who == kMany) continue;
        if (who == hot.id || who == kWarpMany + hot.id / 32) {
          c->read = hot.now | who;
          continue;
        }
      }
    }
    shared_slow(self(), offset + k, 4, kind, pc);
  }
}

__attribute__((noinline)) void global_slow(Thread* t, uintptr_t at, size_t bytes, int kind, uintptr_t pc, Site& site) {
  Worker* w = t->worker;
  const uintptr_t stacks = (uintptr_t)w->stacks;
  if (at - stacks < w->stacks_bytes) {
    site = {stacks, stacks + w->stacks_bytes};
    return;
  }
  if (at - (uintptr_t)w < sizeof(Worker)) return;
  if (at - host_frame < size_t(256 << 10)) {
    site = {host_frame, host_frame + (256 << 10)};
    return;
  }
  const char* doing = kind == 0 ? "reads" : kind == 1 ? "writes" : "updates";
  const uintptr_t shared = (uintptr_t)w->shared;
  if (at - shared < size_t(256 << 10)) {
    fail_at(pc, 0, "%s %zu bytes at %zu of shared memory, of which the block has %zu (out of bounds)", doing, bytes, at - shared,
            w->shared_size);
  }
  if (const Range* r = find(at)) {
    if (at + bytes <= r->high) {
      site = {r->low, r->high};
      return;
    }
  }
  if (lenient) return;
  const Range* near = nullptr;
  size_t best = ~size_t(0);
  for (const Range& r : ranges) {
    const size_t gap = at < r.low ? r.low - at : at + bytes - r.high;
    if (gap < best && r.name[0] != '.') best = gap, near = &r;
  }
  if (near == nullptr)
    fail_at(pc, 0, "%s %zu bytes at %p, which is no memory of the device (out of bounds)", doing, bytes, (void*)at);
  else if (at < near->low)
    fail_at(pc, 0, "%s %zu bytes %zu bytes before the start of %s of %zu bytes (out of bounds)", doing, bytes, near->low - at,
            near->name[0] ? near->name : "an allocation", near->high - near->low);
  else
    fail_at(pc, 0, "%s %zu bytes at byte %zu of %s of %zu bytes (out of bounds)", doing, bytes, at - near->low,
            near->name[0] ? near->name : "an allocation", near->high - near->low);
}

inline __attribute__((always_inline)) void access(const void* p, size_t bytes, int kind, uintptr_t pc) {
  const uintptr_t at = (uintptr_t)p;
  const size_t offset = at - hot.shared;
  if (offset < hot.shared_size && offset + bytes <= hot.shared_size) return shared_access(offset, bytes, kind, pc);
  if (!hot.sites) return;
  Site& site = hot.sites[(pc ^ pc >> 10) & 1023];
  if (at >= site.low && at + bytes <= site.high) return;
  global_slow(self(), at, bytes, kind, pc, site);
}

struct Segments { uintptr_t here; std::vector<Range> found; };

// The library that a kernel lies in: its constants and device variables are memory of the device
int add_segment(dl_phdr_info* info, size_t, void* data) {
  auto* segments = (Segments*)data;
  const uintptr_t here = segments->here;
  bool ours = false;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const auto& p = info->dlpi_phdr[k];
    const uintptr_t low = info->dlpi_addr + p.p_vaddr;
    ours |= p.p_type == PT_LOAD && here >= low && here < low + p.p_memsz;
  }
  if (ours)
    for (int k = 0; k < info->dlpi_phnum; ++k) {
      const auto& p = info->dlpi_phdr[k];
      if (p.p_type != PT_LOAD) continue;
      Range r{info->dlpi_addr + p.p_vaddr, info->dlpi_addr + p.p_vaddr + p.p_memsz, ".library"};
      segments->found.push_back(r);
    }
  return 0;
}

void insert(Range r) {
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), [&](const Range& o) { return o.low < r.high && r.low < o.high; }),
               ranges.end());
  ranges.insert(std::upper_bound(ranges.begin(), ranges.end(), r, [](const Range& a, const Range& b) { return a.low < b.low; }), r);
}

void record(const KwLaunch* l) {
  KwRecord r;
  memset(&r, 0, sizeof r);
  snprintf(r.name, sizeof r.name, "%s", l->name);
  memcpy(r.grid, l->grid, sizeof r.grid);
  memcpy(r.block, l->block, sizeof r.block);
  r.shared = l->shared;
  for (const KwRecord& known : records)
    if (!memcmp(&known, &r, sizeof r)) return;
  if (records.size() < 64) records.push_back(r);
}

}  // namespace

// ---------------------------------------------------------------- what kernel code calls

extern "C" {

static KwObserver observer = nullptr;
void kw_set_observer(KwObserver wanted) { observer = wanted; }
void kw_observe(const KwLaunch* l, const KwArgument* arguments, int count) {
  if (observer) observer(l, arguments, count);
}

int kw_launch(const KwLaunch* l, const void* const* pointers, int count) {
  const uint64_t threads = uint64_t(l->block[0]) * l->block[1] * l->block[2];
  const uint64_t blocks = uint64_t(l->grid[0]) * l->grid[1] * l->grid[2];
  char text[300];
  if (error_code) return error_code;
  if (threads == 0 || threads > 1024 || l->block[2] > 64 || blocks == 0 || l->grid[0] > 0x7fffffffu || l->grid[1] > 65535 || l->grid[2] > 65535) {
    snprintf(text, sizeof text, "kernel %s, line %d: invalid launch configuration: grid (%u, %u, %u), block (%u, %u, %u)", l->name,
             l->line, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
    set_error(9, text);
    return 9;
  }
  if (l->shared > shared_allowed) {
    snprintf(text, sizeof text,
             "kernel %s, line %d: %zu bytes of dynamic shared memory, but %zu are allowed%s", l->name, l->line, l->shared, shared_allowed,
             l->shared <= kSharedMost ? " (cudaFuncSetAttribute can ask for more)" : "");
    set_error(1, text);
    return 1;
  }
  record(l);
  if (!find((uintptr_t)l->body)) {
    Segments mine{(uintptr_t)l->body, {}};
    dl_iterate_phdr(add_segment, &mine);
    for (const Range& r : mine.found) insert(r);
  }
  lenient = false;
  for (int k = 0; k < count; ++k) {
    const Range* r = pointers[k] ? find((uintptr_t)pointers[k]) : nullptr;
    if (r && r->name[0] == '!') {  // the host's memory
      snprintf(text, sizeof text, "kernel %s, line %d: a pointer argument leads into the host's memory (%s); the device cannot read it",
               l->name, l->line, r->name + 1);
      set_error(700, text);
      return 700;
    }
    if (pointers[k] && !r && !find((uintptr_t)pointers[k] - 1)) lenient = true;
  }
  static_launch = ++launches;
  host_frame = (uintptr_t)__builtin_frame_address(0);
  stop = false;
  if (l->cooperative) {
    if (blocks > kMostTogether) {
      snprintf(text, sizeof text, "kernel %s, line %d: a cooperative launch of %zu blocks, more than run at once", l->name, l->line, size_t(blocks));
      set_error(720, text);
      return 720;
    }
    run_together(l, blocks);
    return error_code;
  }
#pragma omp parallel if (blocks > 1)
  {
    Worker* w = worker_here();
    memset(w->sites, 0, sizeof w->sites);  // allocations may have come and gone
    w->static_top = (l->shared + 127) / 128 * 128;
    w->shared_size = l->shared;
#pragma omp for schedule(dynamic, 1)
    for (uint64_t b = 0; b < blocks; ++b)
      if (!stop.load(std::memory_order_relaxed)) run_block(w, l, b);
  }
  return error_code;
}

void* kw_static_shared(int number, size_t bytes) {
  Worker* w = self()->worker;
  auto& entry = w->statics[number & 511];
  if (entry.launch != static_launch) {
    entry.launch = static_launch;
    entry.offset = uint32_t(w->static_top);
    w->static_top += (bytes + 127) / 128 * 128;
    // the gap up to the next array is out of bounds only past the last one; races and uninitialised reads see the rest
    w->shared_size = std::max(w->shared_size, entry.offset + bytes);
    hot.shared_size = w->shared_size;
    if (w->static_top > kSharedPlain + 128 && w->static_top - (w->launch->shared + 127) / 128 * 128 > kSharedPlain + 127)
      fail_at(0, w->launch->line, "needs %zu bytes of static shared memory; a block may have 49152", w->static_top);
    if (w->static_top > kSharedMost) fail_at(0, w->launch->line, "needs %zu bytes of shared memory; a block may have 232448", w->static_top);
  }
  return w->shared + entry.offset;
}

void* kw_dynamic_shared() { return self()->worker->shared; }

int kw_sync(int line, int kind, int predicate) {
  Thread* t = self();
  Worker* w = t->worker;
  if (w->waiting == 0) {
    w->barrier_line = line;
    w->barrier_kind = kind;
    w->first_waiting = t->id;
  } else if (w->barrier_line != line) {
    fail_at(0, line, "is at this barrier while thread %d waits at the one in line %d (barrier divergence)", w->first_waiting,
            w->barrier_line);
  }
  t->state = kAtBarrier;
  t->line = line;
  t->predicate = predicate;
  if (++w->waiting == w->alive) {
    release_barrier(w);
    w->warps[t->id / 32].ready &= ~(1u << t->id % 32);
    return t->verdict;
  }
  go(w, &t->context);
  return t->verdict;
}

void kw_sync_grid(int line) {
  Thread* t = self();
  Worker* w = t->worker;
  if (!w->launch->cooperative) fail_at(0, line, "calls grid.sync() in a kernel that cudaLaunchCooperativeKernel did not launch");
  kw_sync(line, 0, 0);
  if (++t->grids > w->grids) {  // the first of the block to come this far waits for all of it
    w->grids = t->grids;
    meet(w, line);
  }
}

static std::vector<std::string> library_names;
void kw_library_call(const char* name) {
  std::lock_guard<std::mutex> lock(error_mutex);
  if (std::find(library_names.begin(), library_names.end(), name) == library_names.end()) library_names.push_back(name);
}
const char* kw_library_called(int number) {
  return number >= 0 && number < int(library_names.size()) ? library_names[number].c_str() : nullptr;
}

KwExchange kw_exchange(int line, uint32_t mask, const void* value, size_t bytes) {
  Thread* t = self();
  Worker* w = t->worker;
  const int number = t->id / 32, lane = t->id % 32;
  Warp& warp = w->warps[number];
  if (!(mask >> lane & 1)) fail_at(0, line, "takes part in a warp operation whose mask 0x%08x does not name it", mask);
  WarpOp* op = nullptr;
  for (WarpOp& each : warp.ops)
    if (each.open && each.mask == mask && each.line == line && !(each.arrived >> lane & 1)) op = &each;
  if (!op) {
    for (WarpOp& each : warp.ops)
      if (!each.open && each.left == 0) {
        op = &each;
        break;
      }
    if (!op) fail_at(0, line, "starts more warp operations at once than the emulator follows");
    op->open = true;
    op->mask = mask;
    op->line = line;
    op->arrived = 0;
  }
  memcpy(op->values[lane], value, bytes);
  op->arrived |= 1u << lane;
  t->slot = int(op - warp.ops);
  t->line = line;
  if (op->arrived == (op->mask & warp.alive)) {
    release_warp(w, number, *op);
  } else {
    t->state = kAtWarp;
    go(w, &t->context);
  }
  op->left &= ~(1u << lane);
  return {op->values, op->arrived};
}

void kw_sync_warp(int line, uint32_t mask) {
  char nothing = 0;
  kw_exchange(line, mask, &nothing, 1);
}

uint32_t kw_active_mask(int line) {
  Thread* t = self();
  Worker* w = t->worker;
  t->state = kAtSoft;
  t->line = line;
  w->warps[t->id / 32].soft |= 1u << t->id % 32;
  go(w, &t->context);
  return t->soft;
}

int kw_lane() { return self()->id % 32; }
int kw_warp() { return self()->id / 32; }
int kw_rank() { return self()->id; }

void kw_touch(const void* at, size_t bytes, int kind) { access(at, bytes, kind, (uintptr_t)__builtin_return_address(0)); }

void kw_fail(const char* what, int line) {
  if (self()) fail_at(0, line, "%s", what);
  set_error(719, what);
}

void kw_register(const void* at, size_t bytes, const char* name) {
  std::lock_guard<std::mutex> lock(ranges_mutex);
  if (!at || !bytes) return;
  Range r{(uintptr_t)at, (uintptr_t)at + bytes, ""};
  if (name) snprintf(r.name, sizeof r.name, "%s", name);
  insert(r);
}

void kw_forget(const void* at) {
  std::lock_guard<std::mutex> lock(ranges_mutex);
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), [&](const Range& r) { return r.low == (uintptr_t)at; }), ranges.end());
}

uint64_t kw_launch_count() { return launches; }
int kw_launch_record(int number, KwRecord* into) {
  if (number < 0 || size_t(number) >= records.size()) return 0;
  *into = records[number];
  return 1;
}

const char* kw_error() { return error_code ? error_text : nullptr; }
int kw_error_code() { return error_code; }
void kw_clear_error() { error_code = 0; }
void kw_set_error(int code, const char* text) { set_error(code, text); }
void kw_allow_shared(size_t bytes) {
  if (bytes > kSharedMost) {
    set_error(1, "cudaFuncSetAttribute: more dynamic shared memory than a block can have (232448 bytes)");
    return;
  }
  shared_allowed = std::max(shared_allowed, bytes);
}

// ---------------------------------------------------------------- asynchronous copies

// A copy is carried out when its group is waited for; until then the target keeps what it had
void kw_copy_async(void* to, const void* from, size_t bytes, size_t zeros) {
  access(from, bytes - zeros, 0, (uintptr_t)__builtin_return_address(0));
  Thread* t = self();
  if (t->copies.size() > 4096) kw_copy_wait(0);
  Copy c{to, bytes, t->groups, {}};
  memcpy(c.data, from, bytes - zeros);
  memset(c.data + bytes - zeros, 0, zeros);
  t->copies.push_back(c);
}
void kw_copy_commit() { ++self()->groups; }
void kw_copy_wait(int pending) {
  Thread* t = self();
  const int upto = t->groups - pending;
  size_t kept = 0;
  for (size_t k = 0; k < t->copies.size(); ++k) {
    Copy& c = t->copies[k];
    if (c.group < upto || pending == 0) {
      access(c.to, c.bytes, 1, (uintptr_t)__builtin_return_address(0));
      memcpy(c.to, c.data, c.bytes);
    } else {
      t->copies[kept++] = c;
    }
  }
  t->copies.resize(kept);
}

}  // extern "C"

#include "kw_ptx.h"

extern "C" {

void* kw_shared_base() { return self() ? self()->worker->shared : nullptr; }

// ---------------------------------------------------------------- what the compiler calls

#define KW_RA (uintptr_t) __builtin_return_address(0)
#define KW_BOTH(n)                                                                  \
  void __tsan_read##n(void* p) { access(p, n, 0, KW_RA); }                          \
  void __tsan_write##n(void* p) { access(p, n, 1, KW_RA); }                         \
  void __tsan_unaligned_read##n(void* p) { access(p, n, 0, KW_RA); }                \
  void __tsan_unaligned_write##n(void* p) { access(p, n, 1, KW_RA); }               \
  void __tsan_volatile_read##n(void* p) { access(p, n, 0, KW_RA); }                 \
  void __tsan_volatile_write##n(void* p) { access(p, n, 1, KW_RA); }
KW_BOTH(1) KW_BOTH(2) KW_BOTH(4) KW_BOTH(8) KW_BOTH(16)
void __tsan_read_range(void* p, size_t n) { access(p, n, 0, KW_RA); }
void __tsan_write_range(void* p, size_t n) { access(p, n, 1, KW_RA); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Atomic operations of host code (reference counts, guards of statics); device atomics come by kw_touch
#define KW_ATOMIC(n, T)                                                                                                          \
  T __tsan_atomic##n##_load(const volatile T* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }                           \
  void __tsan_atomic##n##_store(volatile T* p, T v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); }                           \
  T __tsan_atomic##n##_exchange(volatile T* p, T v, int) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }                 \
  T __tsan_atomic##n##_fetch_add(volatile T* p, T v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }                 \
  T __tsan_atomic##n##_fetch_sub(volatile T* p, T v, int) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); }                 \
  T __tsan_atomic##n##_fetch_and(volatile T* p, T v, int) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }                 \
  T __tsan_atomic##n##_fetch_or(volatile T* p, T v, int) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }                   \
  T __tsan_atomic##n##_fetch_xor(volatile T* p, T v, int) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); }                 \
  int __tsan_atomic##n##_compare_exchange_strong(volatile T* p, T* e, T v, int, int) {                                           \
    return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                      \
  }                                                                                                                              \
  int __tsan_atomic##n##_compare_exchange_weak(volatile T* p, T* e, T v, int, int) {                                             \
    return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                      \
  }
KW_ATOMIC(8, uint8_t) KW_ATOMIC(16, uint16_t) KW_ATOMIC(32, uint32_t) KW_ATOMIC(64, uint64_t)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}
