// Asynchronous copies into shared memory: the data arrive at the wait and not before, so that a forgotten wait is seen.
#pragma once
#include "cuda_runtime.h"

static inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) { kw_copy_async(to, from, bytes, zeros); }
static inline void __pipeline_commit() { kw_copy_commit(); }
static inline void __pipeline_wait_prior(int pending) { kw_copy_wait(pending); }
