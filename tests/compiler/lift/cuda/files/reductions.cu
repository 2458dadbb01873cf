// Row sums in two ways and a product, as a tutorial has them: templates, macros, typedefs, a benchmark in main.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

typedef float real;
#define CHECK(call)                                                            \
    do {                                                                       \
        cudaError_t status = (call);                                           \
        if (status != cudaSuccess) {                                           \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

template <typename T> struct Add {
    __device__ T operator()(T a, T b) const { return a + b; }
};

template <int THREADS, typename T, typename Op> __device__ T reduce_block(T value, Op op) {
    __shared__ T parts[THREADS / 32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value = op(value, __shfl_down_sync(0xffffffff, value, step));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    T total = parts[0];
    for (int k = 1; k < THREADS / 32; k++) total = op(total, parts[k]);
    return total;
}

template <int THREADS> __global__ void __launch_bounds__(THREADS) row_sums(const real *x, real *sums, size_t cols) {
    real mine = 0;
    for (size_t c = threadIdx.x; c < cols; c += THREADS) mine += x[blockIdx.x * cols + c];
    real total = reduce_block<THREADS>(mine, Add<real>());
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void row_sums_vectors(const float4 *x, real *sums, int quarter) {
    extern __shared__ real parts[];
    real mine = 0;
    for (int c = threadIdx.x; c < quarter; c += blockDim.x) {
        float4 four = x[blockIdx.x * quarter + c];
        mine += four.x + four.y + four.z + four.w;
    }
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) parts[threadIdx.x] += parts[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

template <int TILE> __global__ void product(const real *A, const real *B, real *C, int M, int N, int K) {
    __shared__ real a[TILE][TILE], b[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    real sum = 0;
    for (int at = 0; at < K; at += TILE) {
        a[threadIdx.y][threadIdx.x] = row < M && at + threadIdx.x < K ? A[row * K + at + threadIdx.x] : 0;
        b[threadIdx.y][threadIdx.x] = col < N && at + threadIdx.y < K ? B[(at + threadIdx.y) * N + col] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}

void run_row_sums(const real *x, real *sums, int rows, size_t cols) {
    row_sums<128><<<rows, 128>>>(x, sums, cols);
    CHECK(cudaGetLastError());
}

void run_row_sums_vectors(const real *x, real *sums, int rows, int cols, int threads) {
    row_sums_vectors<<<rows, threads, threads * sizeof(real)>>>(reinterpret_cast<const float4 *>(x), sums, cols / 4);
    CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    const int rows = 4096, cols = 4096;
    std::vector<real> x(rows * cols, 1.f), sums(rows);
    real *device_x, *device_sums;
    CHECK(cudaMalloc(&device_x, x.size() * sizeof(real)));
    CHECK(cudaMalloc(&device_sums, rows * sizeof(real)));
    CHECK(cudaMemcpy(device_x, x.data(), x.size() * sizeof(real), cudaMemcpyHostToDevice));
    for (int k = 0; k < 100; k++) run_row_sums(device_x, device_sums, rows, cols);
    CHECK(cudaMemcpy(sums.data(), device_sums, rows * sizeof(real), cudaMemcpyDeviceToHost));
    printf("%f\n", sums[0]);
    return 0;
}
