// The part of CUDA's runtime interface that kernels' host code uses: memory is the CPU's, streams and events are done at once.
#pragma once
#include "kw_cuda.h"

enum cudaError_t {
  cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101, cudaErrorLaunchOutOfResources = 701, cudaErrorLaunchFailure = 719, cudaErrorNotSupported = 801
};
typedef cudaError_t cudaError;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaDeviceAttr { cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16, cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81, cudaDevAttrCooperativeLaunch = 95, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
typedef struct KwStream* cudaStream_t;
typedef struct KwEvent* cudaEvent_t;
#define cudaStreamNonBlocking 1
#define cudaStreamDefault 0
#define cudaEventDefault 0
#define cudaEventDisableTiming 2
#define cudaSharedmemCarveoutMaxShared 100

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], major, minor, multiProcessorCount,
      maxThreadsPerMultiProcessor, l2CacheSize, regsPerMultiprocessor, cooperativeLaunch, concurrentKernels;
};

namespace kw { static inline cudaError_t last() { return cudaError_t(kw_error_code()); } }
static inline cudaError_t cudaGetLastError() { return kw::last(); }
static inline cudaError_t cudaPeekAtLastError() { return kw::last(); }
static inline cudaError_t cudaDeviceSynchronize() { return kw::last(); }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return kw::last(); }
static inline const char* cudaGetErrorString(cudaError_t e) {
  const char* text = kw_error();
  return e == cudaSuccess ? "no error" : text ? text : "unspecified launch failure";
}
static inline const char* cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaErrorLaunchFailure"; }
template <typename T> static inline cudaError_t cudaMalloc(T** p, size_t bytes) {
  *p = (T*)malloc(bytes ? bytes : 1);
  if (*p) { memset((void*)*p, 0xfe, bytes); kw_register(*p, bytes, "a cudaMalloc"); }  // not zeros: nobody may rely on them
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFree(void* p) { kw_forget(p); free(p); return cudaSuccess; }
template <typename T> static inline cudaError_t cudaMallocAsync(T** p, size_t bytes, cudaStream_t) { return cudaMalloc(p, bytes); }
static inline cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
template <typename T> static inline cudaError_t cudaMallocManaged(T** p, size_t bytes, unsigned = 1) { return cudaMalloc(p, bytes); }
template <typename T> static inline cudaError_t cudaMallocHost(T** p, size_t bytes) { return cudaMalloc(p, bytes); }
static inline cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
static inline cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind = cudaMemcpyDefault) { memmove(to, from, n); return cudaSuccess; }
static inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind = cudaMemcpyDefault, cudaStream_t = 0) { return cudaMemcpy(to, from, n); }
static inline cudaError_t cudaMemset(void* p, int v, size_t n) { memset(p, v, n); return cudaSuccess; }
static inline cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t = 0) { return cudaMemset(p, v, n); }
template <typename T> static inline cudaError_t cudaMemcpyToSymbol(T& to, const void* from, size_t n, size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) {
  memcpy((char*)&to + offset, from, n); return cudaSuccess; }
template <typename T> static inline cudaError_t cudaMemcpyToSymbolAsync(T& to, const void* from, size_t n, size_t offset = 0, cudaMemcpyKind k = cudaMemcpyHostToDevice, cudaStream_t = 0) {
  return cudaMemcpyToSymbol(to, from, n, offset, k); }
template <typename T> static inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& from, size_t n, size_t offset = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  memcpy(to, (const char*)&from + offset, n); return cudaSuccess; }
template <typename T> static inline cudaError_t cudaGetSymbolAddress(void** p, T& symbol) { *p = (void*)&symbol; return cudaSuccess; }
template <typename F> static inline cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute a, int v) {
  if (a == cudaFuncAttributeMaxDynamicSharedMemorySize) kw_allow_shared(size_t(v));
  return kw::last(); }
// cudaLaunchKernel, which takes a kernel's arguments by address: the rewriter takes the cast to void* off the kernel's name
namespace kw {
template <typename... A, size_t... K>
inline void launch_each(Launch launch, void (*f)(A...), void** values, std::index_sequence<K...>) {
  launch(f, *(std::remove_reference_t<A>*)values[K]...);
}
template <typename... A>
inline cudaError_t launch_by_address(int line, const char* name, void (*f)(A...), dim3 grid, dim3 block, void** values, size_t shared = 0, cudaStream_t = 0) {
  launch_each(Launch(line, name, grid, block, shared), f, values, std::index_sequence_for<A...>());
  return last();
}
template <typename... A>
inline cudaError_t launch_together(int line, const char* name, void (*f)(A...), dim3 grid, dim3 block, void** values, size_t shared = 0, cudaStream_t = 0) {
  Launch launch(line, name, grid, block, shared);
  launch.launch.cooperative = 1;
  launch_each(launch, f, values, std::index_sequence_for<A...>());
  return last();
}
}  // namespace kw
template <typename F> static inline cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache) { return cudaSuccess; }
static inline cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = nullptr; return cudaSuccess; }
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { *s = nullptr; return cudaSuccess; }
static inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
static inline cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = nullptr; return cudaSuccess; }
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { *e = nullptr; return cudaSuccess; }
static inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0) { return cudaSuccess; }
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) { *ms = 0; return cudaSuccess; }
static inline cudaError_t cudaGetDevice(int* d) { *d = 0; return cudaSuccess; }
static inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
static inline cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
static inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "emulated device");
  p->totalGlobalMem = size_t(16) << 30; p->sharedMemPerBlock = 49152; p->sharedMemPerBlockOptin = 166912; p->sharedMemPerMultiprocessor = 167936;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536; p->warpSize = 32; p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024; p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647; p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->major = 8; p->minor = 0; p->multiProcessorCount = 8; p->maxThreadsPerMultiProcessor = 2048; p->l2CacheSize = 40 << 20; p->cooperativeLaunch = p->concurrentKernels = 1;
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int) {
  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0);
  *v = a == cudaDevAttrMultiProcessorCount ? p.multiProcessorCount : a == cudaDevAttrWarpSize ? 32 : a == cudaDevAttrMaxThreadsPerBlock ? 1024
     : a == cudaDevAttrComputeCapabilityMajor ? 8 : a == cudaDevAttrMaxSharedMemoryPerBlockOptin ? int(p.sharedMemPerBlockOptin)
     : a == cudaDevAttrCooperativeLaunch ? 1 : a == cudaDevAttrMaxSharedMemoryPerBlock ? 49152 : a == cudaDevAttrMaxSharedMemoryPerMultiprocessor ? int(p.sharedMemPerMultiprocessor) : 0;
  return cudaSuccess;
}
template <typename F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, F, int threads, size_t) { *n = 2048 / (threads > 0 ? threads : 1); return cudaSuccess; }
template <typename F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F, size_t = 0, int = 0) { *grid = 16; *block = 256; return cudaSuccess; }
