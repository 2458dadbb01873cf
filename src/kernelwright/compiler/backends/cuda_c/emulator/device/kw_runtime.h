// What kernel code and the emulator's runtime (runtime.cpp) say to each other. Kernel code is compiled with every memory access
// reported (__tsan_read4 and its relatives, all defined in runtime.cpp); the runtime is compiled without.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
// A thread's place in its launch, first in its record: read by kw_threadIdx_x and the like without a reported access
struct KwPlace { uint32_t threadIdx[3], blockIdx[3], blockDim[3], gridDim[3]; };
extern __thread KwPlace* kw_self __attribute__((tls_model("initial-exec")));

struct KwLaunch {
  int line;
  const char* name;
  uint32_t grid[3], block[3];
  size_t shared;
  void (*body)(void*);  // runs one thread of the kernel
  void* closure;
  const char* templates;  // explicit template arguments, described: "float;16;"
  int cooperative;        // all blocks at once: the grid can be synchronised
};
int kw_launch(const KwLaunch* launch, const void* const* pointers, int count);

// Whoever wants to know what is launched with which arguments sets an observer. Kinds: 0 pointer, 1 signed, 2 unsigned, 3 float, 4 bool,
// 5 an accessor of torch (`i` axes; `p` leads to the data's address, the sizes and the strides, each `bytes` long), 9 anything else
struct KwArgument { int32_t kind, bytes; int64_t i; double d; const void* p; };
typedef void (*KwObserver)(const KwLaunch* launch, const KwArgument* arguments, int count);
void kw_set_observer(KwObserver observer);
void kw_observe(const KwLaunch* launch, const KwArgument* arguments, int count);

void* kw_static_shared(int number, size_t bytes);
void* kw_dynamic_shared();

// Barriers: kind 0 plain, 1 count, 2 and, 3 or
int kw_sync(int line, int kind, int predicate);
void kw_sync_grid(int line);
void kw_sync_warp(int line, uint32_t mask);
uint32_t kw_active_mask(int line);
int kw_lane();
int kw_warp();
int kw_rank();

// All lanes of `mask` give `bytes` and see what the others gave: a table of 32 slots, valid until the lane's next exchange
struct KwExchange { const unsigned char (*slots)[256]; uint32_t arrived; };
KwExchange kw_exchange(int line, uint32_t mask, const void* value, size_t bytes);

// An access that the compiler does not report itself: atomics (kind 2), copies (0 read, 1 write)
void kw_touch(const void* at, size_t bytes, int kind);

// Inline PTX with its operands
struct KwOperand { void* at; int bytes; };
void kw_ptx(int line, const char* text, KwOperand* operands, int count);
void* kw_shared_base();

// Asynchronous copies of 4, 8 or 16 bytes in groups; a wait leaves the last `pending` groups in flight
void kw_copy_async(void* to, const void* from, size_t bytes, size_t zeros);
void kw_copy_commit();
void kw_copy_wait(int pending);

// A library's routine did the work instead of a kernel; `kw_library_called` gives the distinct ones, then null
void kw_library_call(const char* name);
const char* kw_library_called(int number);

void kw_fail(const char* what, int line);
// Memory the kernels may use; a name that begins with ! is memory of the host, which they may not
void kw_register(const void* at, size_t bytes, const char* name);
void kw_forget(const void* at);
const char* kw_error();
int kw_error_code();
void kw_clear_error();
void kw_set_error(int code, const char* text);
void kw_allow_shared(size_t bytes);
// Launches so far, and each distinct one (0: there is none of this number)
struct KwRecord { char name[200]; uint32_t grid[3], block[3]; uint64_t shared; };
uint64_t kw_launch_count();
int kw_launch_record(int number, KwRecord* into);
}

// x86-64: read through the thread register, so that the compiler sees a constant of this thread and hoists it out of loops
#if defined(__x86_64__)
#define KW_PLACE(name, axis, at)                                                                       \
  __attribute__((always_inline)) static inline uint32_t kw_##name##_##axis() {                          \
    uint32_t value;                                                                                     \
    asm("movq kw_self@gottpoff(%%rip), %q0\n\tmovq %%fs:(%q0), %q0\n\tmovl %c1(%q0), %0" : "=&r"(value) \
        : "i"(offsetof(KwPlace, name) + 4 * at));                                                       \
    return value;                                                                                       \
  }
#else
#define KW_PLACE(name, axis, at) \
  __attribute__((always_inline)) static inline uint32_t kw_##name##_##axis() { return kw_self->name[at]; }
#endif
KW_PLACE(threadIdx, x, 0) KW_PLACE(threadIdx, y, 1) KW_PLACE(threadIdx, z, 2)
KW_PLACE(blockIdx, x, 0) KW_PLACE(blockIdx, y, 1) KW_PLACE(blockIdx, z, 2)
KW_PLACE(blockDim, x, 0) KW_PLACE(blockDim, y, 1) KW_PLACE(blockDim, z, 2)
KW_PLACE(gridDim, x, 0) KW_PLACE(gridDim, y, 1) KW_PLACE(gridDim, z, 2)
