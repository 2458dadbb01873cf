// CUDA's runtime library for a device in software: what host code calls, as nvcc compiled it. Registration, launches, copies, errors.
//
// Memory of the device is memory of this process between guard zones, work is done when a call returns, so streams are in order and
// events have happened. Modules, launches and the list of allocations are Python's (device.py), reached through `Host`; once Python is
// gone every call says cudaErrorCudartUnloading, as NVIDIA's library does.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {
struct Host {
    void (*module)(void* module, const char* image);
    int (*launch)(void* module, const char* name, const uint32_t* extents, uint64_t shared, void** arguments, int cooperative);
    void (*allocated)(uint64_t address, uint64_t bytes, int kind);
    int (*freed)(uint64_t address);
    int (*reach)(uint64_t address, uint64_t bytes, const char* what);  // 0 not the device's, 1 inside an allocation, 2 beyond its end
    uint64_t (*symbol)(void* module, const char* name, uint64_t* bytes);
    int64_t (*attribute)(int which);
    int (*function)(void* module, const char* name, int64_t* figures);  // shared, constant, local bytes, threads, registers
    const char* (*title)();
    void (*moved)(uint64_t to, uint64_t from, uint64_t bytes, int value);  // a copy, or (from 0) a fill with bytes of this value
};
struct Module { const void* wrapper; bool read; };
struct Kernel { Module* module; std::string name; int64_t dynamic_shared = 48 << 10; };
struct Variable { Module* module; std::string name; };
struct Managed { void** place; Module* module; std::string name; };
struct Call { dim3 grid, block; size_t shared; cudaStream_t stream; };
struct Stamp { std::chrono::steady_clock::time_point at; bool recorded; };

Host* host = nullptr;
// Destroyed never: static objects of programs call us until the process ends.
auto& kernels = *new std::map<const void*, Kernel>();
auto& variables = *new std::map<const void*, Variable>();
auto& managed = *new std::vector<Managed>();
auto& memory = *new std::map<uint64_t, std::pair<uint64_t, uint64_t>>();  // address: mapping, its size
auto& library_calls = *new std::vector<std::string>();
auto& lock = *new std::recursive_mutex();
thread_local std::vector<Call> calls;
thread_local cudaError_t last = cudaSuccess;
cudaError_t sticky = cudaSuccess;

const uint64_t ZONE = 1 << 16;

cudaError_t keep(cudaError_t e) {
    if (e == cudaSuccess) return sticky;
    last = e;
    if (e == cudaErrorIllegalAddress || e == cudaErrorAssert || e == cudaErrorLaunchFailure || e == cudaErrorNotSupported) sticky = e;
    return e;
}
bool gone() { return host == nullptr; }
#define ALIVE() if (gone()) return cudaErrorCudartUnloading
#define FINE() ALIVE(); return keep(cudaSuccess)

cudaError_t allocate(void** to, size_t bytes, int kind) {
    ALIVE();
    if (!to) return keep(cudaErrorInvalidValue);
    if (!bytes) return *to = nullptr, keep(cudaSuccess);
    if (kind == 0 && bytes > (uint64_t)host->attribute(-1)) return keep(cudaErrorMemoryAllocation);
    uint64_t size = bytes + 2 * ZONE;
    void* room = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return keep(cudaErrorMemoryAllocation);
    uint64_t address = (uint64_t)room + ZONE;
    { std::lock_guard<std::recursive_mutex> held(lock); memory[address] = {(uint64_t)room, size}; }
    host->allocated(address, bytes, kind);
    *to = (void*)address;
    return keep(cudaSuccess);
}
cudaError_t release(void* address) {
    ALIVE();
    if (!address) return keep(cudaSuccess);
    std::lock_guard<std::recursive_mutex> held(lock);
    auto found = memory.find((uint64_t)address);
    if (found == memory.end()) return keep(cudaErrorInvalidValue);
    host->freed((uint64_t)address);
    munmap((void*)found->second.first, found->second.second);
    memory.erase(found);
    return keep(cudaSuccess);
}
// A side of a copy: what should be the device's must be all in one allocation.
bool fits(const void* at, size_t bytes, bool device, const char* what) {
    int found = host->reach((uint64_t)at, bytes, what);
    return found == 1 || (found == 0 && !device);
}
cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    ALIVE();
    if (sticky) return sticky;
    if (!bytes) return cudaSuccess;
    bool d = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, s = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!to || !from || !fits(to, bytes, d, "a copy writes") || !fits(from, bytes, s, "a copy reads")) return keep(cudaErrorInvalidValue);
    host->moved((uint64_t)to, (uint64_t)from, bytes, 0);
    memmove(to, from, bytes);
    return cudaSuccess;
}
cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
    for (size_t y = 0; y < height; y++)
        if (cudaError_t e = copy((char*)to + y * to_pitch, (const char*)from + y * from_pitch, width, kind)) return e;
    return cudaSuccess;
}
cudaError_t fill(void* to, int value, size_t bytes) {
    ALIVE();
    if (sticky) return sticky;
    if (!bytes) return cudaSuccess;
    if (!to || !fits(to, bytes, true, "cudaMemset writes")) return keep(cudaErrorInvalidValue);
    host->moved((uint64_t)to, 0, bytes, value);
    memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t place(const void* symbol, size_t bytes, size_t offset, void** to) {
    ALIVE();
    auto found = variables.find(symbol);
    if (found == variables.end()) return keep(cudaErrorInvalidSymbol);
    uint64_t size = 0, address = host->symbol(found->second.module, found->second.name.c_str(), &size);
    if (!address) return keep(cudaErrorInvalidSymbol);
    if (offset + bytes > size) return keep(cudaErrorInvalidValue);
    *to = (char*)address + offset;
    return cudaSuccess;
}
cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, bool cooperative, dim3 cluster = dim3(1, 1, 1)) {
    ALIVE();
    if (sticky) return sticky;
    auto found = kernels.find(function);
    if (found == kernels.end()) return keep(cudaErrorInvalidDeviceFunction);
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (!threads || threads > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
        return keep(cudaErrorInvalidConfiguration);
    if ((int64_t)shared > found->second.dynamic_shared) return keep(cudaErrorInvalidValue);
    uint32_t extents[9] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, cluster.x, cluster.y, cluster.z};
    return keep((cudaError_t)host->launch(found->second.module, found->second.name.c_str(), extents, shared, arguments, cooperative));
}
cudaError_t blocks_of(int* count, const void* function, int threads, size_t shared) {
    ALIVE();
    auto found = kernels.find(function);
    int64_t f[5] = {};
    if (found == kernels.end() || !host->function(found->second.module, found->second.name.c_str(), f)) return keep(cudaErrorInvalidDeviceFunction);
    if (threads <= 0) return keep(cudaErrorInvalidValue);
    int64_t warps = (threads + 31) / 32, registers = (f[4] * 32 + 255) / 256 * 256 * warps, bytes = f[0] + (int64_t)shared + 1024;
    int64_t most = host->attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    for (int64_t room : {host->attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / (32 * warps), host->attribute(cudaDevAttrMaxRegistersPerMultiprocessor) / registers,
                         host->attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / bytes})
        most = room < most ? room : most;
    *count = threads > 1024 ? 0 : (int)most;
    return cudaSuccess;
}
}  // namespace

extern "C" {
void kw_host(Host* given) { host = given; }
void kw_failed(int error) { keep((cudaError_t)error); }
void kw_reset() { sticky = last = cudaSuccess; }
void kw_library_call(const char* name) {  // of a library's header: what it did is told once
    for (auto& known : library_calls)
        if (known == name) return;
    library_calls.push_back(name);
}
const char* kw_library_called(int k) { return k < (int)library_calls.size() ? library_calls[k].c_str() : nullptr; }

// ---- what nvcc's own code calls
void** __cudaRegisterFatBinary(void* wrapper) { return (void**)new Module{wrapper, false}; }
void __cudaRegisterFatBinaryEnd(void** handle) {
    auto* module = (Module*)handle;
    if (gone()) return;
    host->module(module, ((const char* const*)module->wrapper)[1]);  // magic and version, then the image
    for (auto& m : managed)
        if (m.module == module) { uint64_t size; *m.place = (void*)host->symbol(module, m.name.c_str(), &size); }
}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void** handle, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
    kernels[function] = Kernel{(Module*)handle, name};
}
void __cudaRegisterVar(void** handle, char* variable, char*, const char* name, int, size_t, int, int) { variables[variable] = {(Module*)handle, name}; }
void __cudaRegisterManagedVar(void** handle, void** variable, char*, const char* name, int, size_t, int, int) {
    variables[variable] = {(Module*)handle, name};
    managed.push_back({variable, (Module*)handle, name});
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
    calls.push_back({grid, block, shared, (cudaStream_t)stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    if (calls.empty()) return cudaErrorMissingConfiguration;
    Call c = calls.back();
    calls.pop_back();
    *grid = c.grid; *block = c.block; *shared = c.shared; *(cudaStream_t*)stream = c.stream;
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* f, dim3 g, dim3 b, void** a, size_t s, cudaStream_t) { return launch(f, g, b, a, s, false); }
cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 g, dim3 b, void** a, size_t s, cudaStream_t) { return launch(f, g, b, a, s, true); }
cudaError_t __cudaGetKernel(const void** kernel, const void* function) { *kernel = function; return cudaSuccess; }
cudaError_t __cudaLaunchKernel(const void* k, dim3 g, dim3 b, void** a, size_t s, cudaStream_t) { return launch(k, g, b, a, s, false); }
#if CUDART_VERSION >= 11080
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* f, void** a) {
    bool cooperative = false;
    dim3 cluster(1, 1, 1);
    for (unsigned k = 0; k < c->numAttrs; k++) {
        if (c->attrs[k].id == cudaLaunchAttributeCooperative) cooperative = c->attrs[k].val.cooperative != 0;
        if (c->attrs[k].id == cudaLaunchAttributeClusterDimension) cluster = dim3(c->attrs[k].val.clusterDim.x, c->attrs[k].val.clusterDim.y, c->attrs[k].val.clusterDim.z);
    }
    return launch(f, c->gridDim, c->blockDim, a, c->dynamicSmemBytes, cooperative, cluster);
}
#endif

// ---- memory
cudaError_t cudaMalloc(void** p, size_t n) { return allocate(p, n, 0); }
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) { return allocate(p, n, 0); }
cudaError_t cudaMallocManaged(void** p, size_t n, unsigned) { return allocate(p, n, 1); }
cudaError_t cudaMallocHost(void** p, size_t n) { return allocate(p, n, 2); }
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) { return allocate(p, n, 2); }
cudaError_t cudaMallocPitch(void** p, size_t* pitch, size_t width, size_t height) { *pitch = (width + 511) / 512 * 512; return allocate(p, *pitch * height, 0); }
cudaError_t cudaFree(void* p) { return release(p); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return release(p); }
cudaError_t cudaFreeHost(void* p) { return release(p); }
cudaError_t cudaHostRegister(void* p, size_t n, unsigned) { ALIVE(); host->allocated((uint64_t)p, n, 3); return keep(cudaSuccess); }
cudaError_t cudaHostUnregister(void* p) { ALIVE(); host->freed((uint64_t)p); return keep(cudaSuccess); }
cudaError_t cudaHostGetDevicePointer(void** to, void* p, unsigned) { *to = p; FINE(); }
cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind k) { return copy(d, s, n, k); }
cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t) { return copy(d, s, n, k); }
cudaError_t cudaMemcpyPeer(void* d, int, const void* s, int, size_t n) { return copy(d, s, n, cudaMemcpyDeviceToDevice); }
cudaError_t cudaMemcpy2D(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind k) { return copy_rows(d, dp, s, sp, w, h, k); }
cudaError_t cudaMemcpy2DAsync(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind k, cudaStream_t) { return copy_rows(d, dp, s, sp, w, h, k); }
cudaError_t cudaMemset(void* d, int v, size_t n) { return fill(d, v, n); }
cudaError_t cudaMemsetAsync(void* d, int v, size_t n, cudaStream_t) { return fill(d, v, n); }
cudaError_t cudaMemset2D(void* d, size_t pitch, int v, size_t w, size_t h) {
    for (size_t y = 0; y < h; y++)
        if (cudaError_t e = fill((char*)d + y * pitch, v, w)) return e;
    return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* d, size_t pitch, int v, size_t w, size_t h, cudaStream_t) { return cudaMemset2D(d, pitch, v, w, h); }
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* s, size_t n, size_t offset, cudaMemcpyKind) {
    void* to;
    cudaError_t e = place(symbol, n, offset, &to);
    if (!e) host->moved((uint64_t)to, (uint64_t)s, n, 0), memcpy(to, s, n);
    return e;
}
cudaError_t cudaMemcpyFromSymbol(void* d, const void* symbol, size_t n, size_t offset, cudaMemcpyKind) {
    void* from;
    cudaError_t e = place(symbol, n, offset, &from);
    if (!e) host->moved((uint64_t)d, (uint64_t)from, n, 0), memcpy(d, from, n);
    return e;
}
cudaError_t cudaMemcpyToSymbolAsync(const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t) { return cudaMemcpyToSymbol(y, s, n, o, k); }
cudaError_t cudaMemcpyFromSymbolAsync(void* d, const void* y, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t) { return cudaMemcpyFromSymbol(d, y, n, o, k); }
cudaError_t cudaGetSymbolAddress(void** to, const void* symbol) { return place(symbol, 0, 0, to); }
cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
    ALIVE();
    auto found = variables.find(symbol);
    if (found == variables.end()) return keep(cudaErrorInvalidSymbol);
    uint64_t bytes = 0;
    host->symbol(found->second.module, found->second.name.c_str(), &bytes);
    *size = bytes;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { ALIVE(); *free = *total = (size_t)host->attribute(-1); return cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
    ALIVE();
    memset(a, 0, sizeof *a);
    a->type = host->reach((uint64_t)p, 1, nullptr) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    a->devicePointer = a->type == cudaMemoryTypeDevice ? (void*)p : nullptr;
    a->hostPointer = a->type == cudaMemoryTypeDevice ? nullptr : (void*)p;
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) { FINE(); }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { FINE(); }
#else
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t) { FINE(); }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { FINE(); }
#endif

// ---- streams and events: all is done when a call returns
cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = (cudaStream_t) new char; FINE(); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return cudaStreamCreate(s); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) { return cudaStreamCreate(s); }
cudaError_t cudaStreamDestroy(cudaStream_t) { FINE(); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { FINE(); }
cudaError_t cudaStreamQuery(cudaStream_t) { FINE(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { FINE(); }
cudaError_t cudaStreamGetPriority(cudaStream_t, int* p) { *p = 0; FINE(); }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* s) { *s = cudaStreamCaptureStatusNone; FINE(); }
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void* data, unsigned) { f(s, sticky, data); FINE(); }
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t f, void* data) { f(data); FINE(); }
cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = (cudaEvent_t) new Stamp{}; FINE(); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return cudaEventCreate(e); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { delete (Stamp*)e; FINE(); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) { *(Stamp*)e = {std::chrono::steady_clock::now(), true}; FINE(); }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) { return cudaEventRecord(e, s); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { FINE(); }
cudaError_t cudaEventQuery(cudaEvent_t) { FINE(); }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {  // of this processor: it says nothing of the device
    if (!((Stamp*)a)->recorded || !((Stamp*)b)->recorded) return keep(cudaErrorInvalidResourceHandle);
    *ms = std::chrono::duration<float, std::milli>(((Stamp*)b)->at - ((Stamp*)a)->at).count();
    FINE();
}

// ---- the device
cudaError_t cudaDeviceSynchronize() { FINE(); }
cudaError_t cudaDeviceReset() { FINE(); }
cudaError_t cudaInitDevice(int, unsigned, unsigned) { FINE(); }
cudaError_t cudaSetDevice(int device) { return device ? keep(cudaErrorInvalidDevice) : keep(cudaSuccess); }
cudaError_t cudaSetDeviceFlags(unsigned) { FINE(); }
cudaError_t cudaGetDevice(int* device) { *device = 0; FINE(); }
cudaError_t cudaGetDeviceCount(int* count) { *count = 1; FINE(); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
    ALIVE();
    int64_t found = host->attribute((int)which);
    if (found < 0) return keep(cudaErrorInvalidValue);
    *value = (int)found;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
    ALIVE();
    auto ask = [](cudaDeviceAttr a) { int64_t v = host->attribute(a); return (int)(v < 0 ? 0 : v); };
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", host->title());
    p->totalGlobalMem = (size_t)host->attribute(-1);
    p->sharedMemPerBlock = (size_t)ask(cudaDevAttrMaxSharedMemoryPerBlock);
    p->sharedMemPerBlockOptin = (size_t)ask(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    p->sharedMemPerMultiprocessor = (size_t)ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    p->regsPerBlock = p->regsPerMultiprocessor = ask(cudaDevAttrMaxRegistersPerMultiprocessor);
    p->warpSize = ask(cudaDevAttrWarpSize);
    p->maxThreadsPerBlock = ask(cudaDevAttrMaxThreadsPerBlock);
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024; p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff; p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = (size_t)ask(cudaDevAttrTotalConstantMemory);
    p->major = ask(cudaDevAttrComputeCapabilityMajor); p->minor = ask(cudaDevAttrComputeCapabilityMinor);
    p->multiProcessorCount = ask(cudaDevAttrMultiProcessorCount);
    p->maxThreadsPerMultiProcessor = ask(cudaDevAttrMaxThreadsPerMultiProcessor);
    p->maxBlocksPerMultiProcessor = ask(cudaDevAttrMaxBlocksPerMultiprocessor);
    p->l2CacheSize = ask(cudaDevAttrL2CacheSize);
    p->memoryBusWidth = ask(cudaDevAttrGlobalMemoryBusWidth);
    p->concurrentKernels = p->unifiedAddressing = p->managedMemory = p->cooperativeLaunch = p->canMapHostMemory = p->concurrentManagedAccess = 1;
#if CUDART_VERSION < 13000
    p->clockRate = ask(cudaDevAttrClockRate); p->memoryClockRate = ask(cudaDevAttrMemoryClockRate);
#endif
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* low, int* high) { *low = *high = 0; FINE(); }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { FINE(); }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) { *value = 8 << 20; FINE(); }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { FINE(); }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { *can = 0; FINE(); }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return keep(cudaErrorInvalidDevice); }
cudaError_t cudaDriverGetVersion(int* version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaProfilerStart() { FINE(); }
cudaError_t cudaProfilerStop() { FINE(); }

// ---- kernels
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute which, int value) {
    ALIVE();
    auto found = kernels.find(function);
    if (found == kernels.end()) return keep(cudaErrorInvalidDeviceFunction);
    if (which == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value > host->attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) return keep(cudaErrorInvalidValue);
        found->second.dynamic_shared = value > 48 << 10 ? value : 48 << 10;
    }
    return keep(cudaSuccess);
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { FINE(); }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { FINE(); }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { FINE(); }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* function) {
    ALIVE();
    auto found = kernels.find(function);
    int64_t f[5] = {};
    if (found == kernels.end() || !host->function(found->second.module, found->second.name.c_str(), f)) return keep(cudaErrorInvalidDeviceFunction);
    memset(a, 0, sizeof *a);
    a->sharedSizeBytes = (size_t)f[0]; a->constSizeBytes = (size_t)f[1]; a->localSizeBytes = (size_t)f[2];
    a->maxThreadsPerBlock = (int)f[3]; a->numRegs = (int)f[4];
    a->maxDynamicSharedSizeBytes = (int)found->second.dynamic_shared;
    a->ptxVersion = a->binaryVersion = (int)(10 * host->attribute(cudaDevAttrComputeCapabilityMajor) + host->attribute(cudaDevAttrComputeCapabilityMinor));
    return keep(cudaSuccess);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void* f, int threads, size_t shared) { return blocks_of(n, f, threads, shared); }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void* f, int threads, size_t shared, unsigned) { return blocks_of(n, f, threads, shared); }

// ---- errors
cudaError_t cudaGetLastError() {
    if (gone()) return cudaErrorCudartUnloading;
    cudaError_t e = sticky ? sticky : last;
    last = cudaSuccess;
    return e;
}
cudaError_t cudaPeekAtLastError() { return sticky ? sticky : last; }
#define ERRORS(X)                                                                                                                          \
    X(InvalidValue, "invalid argument") X(MemoryAllocation, "out of memory") X(InitializationError, "initialization error") \
    X(CudartUnloading, "driver shutting down") X(InvalidConfiguration, "invalid configuration argument") X(InvalidSymbol, "invalid device symbol") \
    X(InvalidDevice, "invalid device ordinal") X(InvalidDeviceFunction, "invalid device function") X(MissingConfiguration, "missing configuration") \
    X(InvalidResourceHandle, "invalid resource handle") X(IllegalAddress, "an illegal memory access was encountered")                     \
    X(Assert, "device-side assert triggered") X(LaunchFailure, "unspecified launch failure") X(NotSupported, "operation not supported")   \
    X(LaunchTimeout, "the launch timed out and was terminated") X(MisalignedAddress, "misaligned address")
const char* cudaGetErrorString(cudaError_t e) {
    switch (e) {
#define X(n, text) case cudaError##n: return text;
        case cudaSuccess: return "no error";
        ERRORS(X)
#undef X
        default: return "unrecognized error code";
    }
}
const char* cudaGetErrorName(cudaError_t e) {
    switch (e) {
#define X(n, text) case cudaError##n: return "cudaError" #n;
        case cudaSuccess: return "cudaSuccess";
        ERRORS(X)
#undef X
        default: return "unrecognized error code";
    }
}
}

// ---- of the driver: tensor maps, by whatever way a program gets the function
#include <cuda.h>
extern "C" {
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
    static const uint8_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}, kinds[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 7, 7};
    static const uint32_t widest[] = {1 << 30, 32, 64, 128};
    struct {  // as in runtime/bulk.h
        uint64_t address;
        uint8_t rank, element, swizzle, fill, interleave, type, unused[2];
        uint32_t extent[5], box[5], step[5], mark;
        uint64_t stride[4];
        uint8_t rest[16];
    } t = {};
    static_assert(sizeof t == sizeof(CUtensorMap));
    if (!map || (int)type >= (int)sizeof sizes || rank < 1 || rank > 5 || (uint64_t)address % 16 || interleave || (int)swizzle > 3) return CUDA_ERROR_INVALID_VALUE;
    t.address = (uint64_t)address, t.rank = (uint8_t)rank, t.element = sizes[type], t.type = kinds[type];
    t.swizzle = (uint8_t)swizzle, t.fill = (uint8_t)fill, t.mark = 0x6b77746d;
    for (cuuint32_t k = 0; k < rank; k++) {
        if (!box[k] || box[k] > 256 || !extents[k] || extents[k] > 1ull << 32) return CUDA_ERROR_INVALID_VALUE;
        t.extent[k] = (uint32_t)extents[k], t.box[k] = box[k], t.step[k] = steps[k];
        if (k && strides[k - 1] % 16) return CUDA_ERROR_INVALID_VALUE;
        if (k) t.stride[k - 1] = strides[k - 1];
    }
    if (box[0] * t.element % 16 || box[0] * t.element > widest[swizzle]) return CUDA_ERROR_INVALID_VALUE;
    memcpy(map, &t, sizeof t);
    return CUDA_SUCCESS;
}
static cudaError_t entry_point(const char* name, void** function, cudaDriverEntryPointQueryResult* found) {
    *function = !strcmp(name, "cuTensorMapEncodeTiled") ? (void*)&cuTensorMapEncodeTiled : nullptr;
    if (found) *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return *function ? cudaSuccess : keep(cudaErrorNotSupported);
}
#undef cudaGetDriverEntryPoint
#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, cudaDriverEntryPointQueryResult* found) {
    return entry_point(name, function, found);
}
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* name, void** function, unsigned long long, cudaDriverEntryPointQueryResult* found) {
    return entry_point(name, function, found);
}
#endif
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long, cudaDriverEntryPointQueryResult* found) {
    return entry_point(name, function, found);
}
}
