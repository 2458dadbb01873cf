// Kernels that memory bounds: copies and elementwise arithmetic of large arrays, and four softmaxes of rows.
#include <cuda_runtime.h>

extern "C" __global__ void copy4(const float4* x, float4* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
extern "C" __global__ void add4(const float4* a, const float4* b, float4* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float4 u = a[i], v = b[i];
        y[i] = make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w);
    }
}

struct Pair { float most, sum; };
template <class F> __device__ __forceinline__ float block_of(float v, F f, float* part, int warps) {
    for (int o = 16; o; o >>= 1) v = f(v, __shfl_xor_sync(~0u, v, o));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[threadIdx.x % warps];
    for (int o = warps / 2; o; o >>= 1) v = f(v, __shfl_xor_sync(~0u, v, o));
    __syncthreads();
    return v;
}
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ float plus(float a, float b) { return a + b; }

// One block of 256 threads a row, three passes over memory
extern "C" __global__ void softmax_passes(const float* x, float* y, int n) {
    __shared__ float part[32];
    x += (size_t)blockIdx.x * n;
    y += (size_t)blockIdx.x * n;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, x[i]);
    most = block_of(most, larger, part, 8);
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += __expf(x[i] - most);
    sum = block_of(sum, plus, part, 8);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = __expf(x[i] - most) / sum;
}
// One block of 256 threads a row of 1024, each with a vector of four
extern "C" __global__ void softmax_vectors(const float4* x, float4* y, int n) {
    __shared__ float part[32];
    const float4 v = x[(size_t)blockIdx.x * (n / 4) + threadIdx.x];
    const float most = block_of(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), larger, part, 8);
    const float4 e = make_float4(__expf(v.x - most), __expf(v.y - most), __expf(v.z - most), __expf(v.w - most));
    const float sum = block_of(e.x + e.y + e.z + e.w, plus, part, 8);
    y[(size_t)blockIdx.x * (n / 4) + threadIdx.x] = make_float4(e.x / sum, e.y / sum, e.z / sum, e.w / sum);
}
