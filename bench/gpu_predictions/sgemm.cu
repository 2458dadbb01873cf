// Products of fp32 matrices in eleven structures, after their published descriptions: what `bench/gpu_predictions` predicts.
// C[M][N] = A[M][K] B[K][N]; sizes are multiples of all tiles.
#include <cuda_runtime.h>

extern "C" __global__ void naive(int M, int N, int K, const float* A, const float* B, float* C) {
    const unsigned row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 32 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = sum;
}

extern "C" __global__ void coalesced(int M, int N, int K, const float* A, const float* B, float* C) {
    const int row = blockIdx.x * 32 + threadIdx.x / 32, column = blockIdx.y * 32 + threadIdx.x % 32;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = sum;
}

extern "C" __global__ void shared_tiles(int M, int N, int K, const float* A, const float* B, float* C) {
    __shared__ float left[32 * 32], right[32 * 32];
    const int row = threadIdx.x / 32, column = threadIdx.x % 32;
    A += blockIdx.x * 32 * K;
    B += blockIdx.y * 32;
    C += blockIdx.x * 32 * N + blockIdx.y * 32;
    float sum = 0;
    for (int k = 0; k < K; k += 32) {
        left[row * 32 + column] = A[row * K + column];
        right[row * 32 + column] = B[row * N + column];
        __syncthreads();
        A += 32;
        B += 32 * N;
        for (int i = 0; i < 32; ++i) sum += left[row * 32 + i] * right[i * 32 + column];
        __syncthreads();
    }
    C[row * N + column] = sum;
}

extern "C" __global__ void column_of_eight(int M, int N, int K, const float* A, const float* B, float* C) {
    __shared__ float left[64 * 8], right[8 * 64];
    const int column = threadIdx.x % 64, row = threadIdx.x / 64;
    const int a_row = threadIdx.x / 8, a_column = threadIdx.x % 8;
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * N + blockIdx.x * 64;
    float sum[8] = {};
    for (int k = 0; k < K; k += 8) {
        left[a_row * 8 + a_column] = A[a_row * K + a_column];
        right[row * 64 + column] = B[row * N + column];
        __syncthreads();
        A += 8;
        B += 8 * N;
        for (int i = 0; i < 8; ++i) {
            const float b = right[i * 64 + column];
            for (int r = 0; r < 8; ++r) sum[r] += left[(row * 8 + r) * 8 + i] * b;
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; ++r) C[(row * 8 + r) * N + column] = sum[r];
}

extern "C" __global__ void __launch_bounds__(256, 1) eight_by_eight(int M, int N, int K, const float* A, const float* B, float* C) {
    __shared__ float left[128 * 8], right[8 * 128];
    const int column = threadIdx.x % 16, row = threadIdx.x / 16;
    const int a_row = threadIdx.x / 8, a_column = threadIdx.x % 8, b_row = threadIdx.x / 128, b_column = threadIdx.x % 128;
    A += blockIdx.y * 128 * K;
    B += blockIdx.x * 128;
    C += blockIdx.y * 128 * N + blockIdx.x * 128;
    float sum[64] = {}, x[8], y[8];
    for (int k = 0; k < K; k += 8) {
        for (int o = 0; o < 128; o += 32) left[(a_row + o) * 8 + a_column] = A[(a_row + o) * K + a_column];
        for (int o = 0; o < 8; o += 2) right[(b_row + o) * 128 + b_column] = B[(b_row + o) * N + b_column];
        __syncthreads();
        A += 8;
        B += 8 * N;
        for (int i = 0; i < 8; ++i) {
            for (int r = 0; r < 8; ++r) x[r] = left[(row * 8 + r) * 8 + i];
            for (int c = 0; c < 8; ++c) y[c] = right[i * 128 + column * 8 + c];
            for (int r = 0; r < 8; ++r)
                for (int c = 0; c < 8; ++c) sum[r * 8 + c] += x[r] * y[c];
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 8; ++c) C[(row * 8 + r) * N + column * 8 + c] = sum[r * 8 + c];
}

// Vectors of four; A turned in shared memory. LINEAR: the tile of B so that a thread's columns lie apart; PAD: with an offset.
template <int TILE, int STEP, int ROWS, int COLUMNS, int LINEAR, int PAD>
__device__ __forceinline__ void vectors(int M, int N, int K, const float* A, const float* B, float* C) {
    constexpr int THREADS = TILE / ROWS * (TILE / COLUMNS), WIDE = LINEAR ? STEP * TILE : STEP * (TILE + PAD);
    __shared__ float left[TILE * STEP];
    __shared__ float right[WIDE];
    const int column = threadIdx.x % (TILE / COLUMNS), row = threadIdx.x / (TILE / COLUMNS);
    const int a_row = threadIdx.x / (STEP / 4), a_column = threadIdx.x % (STEP / 4), b_row = threadIdx.x / (TILE / 4), b_column = threadIdx.x % (TILE / 4);
    A += blockIdx.y * TILE * K;
    B += blockIdx.x * TILE;
    C += (size_t)blockIdx.y * TILE * N + blockIdx.x * TILE;
    float sum[ROWS * COLUMNS] = {}, x[ROWS], y[COLUMNS];
    for (int k = 0; k < K; k += STEP) {
#pragma unroll
        for (int o = 0; o < TILE; o += THREADS / (STEP / 4)) {
            const float4 v = *reinterpret_cast<const float4*>(&A[(a_row + o) * K + a_column * 4]);
            left[(a_column * 4 + 0) * TILE + a_row + o] = v.x;
            left[(a_column * 4 + 1) * TILE + a_row + o] = v.y;
            left[(a_column * 4 + 2) * TILE + a_row + o] = v.z;
            left[(a_column * 4 + 3) * TILE + a_row + o] = v.w;
        }
#pragma unroll
        for (int o = 0; o < STEP; o += THREADS / (TILE / 4)) {
            const float4 v = *reinterpret_cast<const float4*>(&B[(b_row + o) * N + b_column * 4]);
            if (LINEAR) {
                right[((b_column % 2) * 4 + (b_row + o) * 8 + 0) * 16 + b_column / 2] = v.x;
                right[((b_column % 2) * 4 + (b_row + o) * 8 + 1) * 16 + b_column / 2] = v.y;
                right[((b_column % 2) * 4 + (b_row + o) * 8 + 2) * 16 + b_column / 2] = v.z;
                right[((b_column % 2) * 4 + (b_row + o) * 8 + 3) * 16 + b_column / 2] = v.w;
            } else if (PAD) {
                float* to = &right[(b_row + o) * (TILE + PAD) + b_column * 4];
                to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
            } else {
                *reinterpret_cast<float4*>(&right[(b_row + o) * TILE + b_column * 4]) = v;
            }
        }
        __syncthreads();
        A += STEP;
        B += STEP * N;
#pragma unroll
        for (int i = 0; i < STEP; ++i) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) x[r] = left[i * TILE + row * ROWS + r];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) y[c] = LINEAR ? right[(i * 8 + c) * 16 + column] : right[i * (TILE + PAD) + column * COLUMNS + c];
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) sum[r * COLUMNS + c] += x[r] * y[c];
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < COLUMNS; c += 4)
            *reinterpret_cast<float4*>(&C[(row * ROWS + r) * N + column * COLUMNS + c]) =
                make_float4(sum[r * COLUMNS + c], sum[r * COLUMNS + c + 1], sum[r * COLUMNS + c + 2], sum[r * COLUMNS + c + 3]);
}
#define ARGUMENTS int M, int N, int K, const float *A, const float *B, float *C
extern "C" __global__ void __launch_bounds__(256) vectorized(ARGUMENTS) { vectors<128, 8, 8, 8, 0, 0>(M, N, K, A, B, C); }
extern "C" __global__ void __launch_bounds__(256) linear_order(ARGUMENTS) { vectors<128, 8, 8, 8, 1, 0>(M, N, K, A, B, C); }
extern "C" __global__ void __launch_bounds__(256) padded(ARGUMENTS) { vectors<128, 8, 8, 8, 0, 5>(M, N, K, A, B, C); }
extern "C" __global__ void __launch_bounds__(256) searched(ARGUMENTS) { vectors<128, 16, 8, 8, 0, 0>(M, N, K, A, B, C); }

// Warps have tiles of their own: a block of 128 x 128 by four warps of 64 x 64, a thread 8 rows by 4 columns, four times. DOUBLE: two
// tiles in shared memory, the next one loaded while this one is used.
template <bool DOUBLE> __device__ __forceinline__ void warps(int M, int N, int K, const float* A, const float* B, float* C) {
    constexpr int TILE = 128, STEP = 16, BUFFERS = DOUBLE ? 2 : 1;
    __shared__ float left[BUFFERS][STEP * TILE], right[BUFFERS][STEP * TILE];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / 2 * 64, warp_column = warp % 2 * 64;
    const int row = lane / 4 * 8, column = lane % 4 * 4;  // of a sub-tile of 64 rows and 16 columns
    const int a_row = threadIdx.x / 4, a_column = threadIdx.x % 4, b_row = threadIdx.x / 32, b_column = threadIdx.x % 32;
    A += blockIdx.y * TILE * K;
    B += blockIdx.x * TILE;
    C += (size_t)(blockIdx.y * TILE + warp_row) * N + blockIdx.x * TILE + warp_column;
    float sum[8 * 16] = {}, x[8], y[16];
    auto load = [&](int to) {
#pragma unroll
        for (int o = 0; o < TILE; o += 32) {
            const float4 v = *reinterpret_cast<const float4*>(&A[(a_row + o) * K + a_column * 4]);
            left[to][(a_column * 4 + 0) * TILE + a_row + o] = v.x;
            left[to][(a_column * 4 + 1) * TILE + a_row + o] = v.y;
            left[to][(a_column * 4 + 2) * TILE + a_row + o] = v.z;
            left[to][(a_column * 4 + 3) * TILE + a_row + o] = v.w;
        }
#pragma unroll
        for (int o = 0; o < STEP; o += 4)
            *reinterpret_cast<float4*>(&right[to][(b_row + o) * TILE + b_column * 4]) = *reinterpret_cast<const float4*>(&B[(b_row + o) * N + b_column * 4]);
        A += STEP;
        B += STEP * N;
    };
    auto multiply = [&](int from) {
#pragma unroll
        for (int i = 0; i < STEP; ++i) {
#pragma unroll
            for (int r = 0; r < 8; ++r) x[r] = left[from][i * TILE + warp_row + row + r];
#pragma unroll
            for (int s = 0; s < 4; ++s)
#pragma unroll
                for (int c = 0; c < 4; ++c) y[s * 4 + c] = right[from][i * TILE + warp_column + s * 16 + column + c];
#pragma unroll
            for (int r = 0; r < 8; ++r)
#pragma unroll
                for (int c = 0; c < 16; ++c) sum[r * 16 + c] += x[r] * y[c];
        }
    };
    if (DOUBLE) {
        load(0);
        __syncthreads();
        for (int k = 0, now = 0; k < K; k += STEP, now ^= 1) {
            if (k + STEP < K) load(now ^ 1);
            multiply(now);
            __syncthreads();
        }
    } else {
        for (int k = 0; k < K; k += STEP) {
            load(0);
            __syncthreads();
            multiply(0);
            __syncthreads();
        }
    }
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int s = 0; s < 4; ++s)
            *reinterpret_cast<float4*>(&C[(row + r) * N + s * 16 + column]) =
                make_float4(sum[r * 16 + s * 4], sum[r * 16 + s * 4 + 1], sum[r * 16 + s * 4 + 2], sum[r * 16 + s * 4 + 3]);
}
extern "C" __global__ void __launch_bounds__(128) warp_tiles(ARGUMENTS) { warps<false>(M, N, K, A, B, C); }
extern "C" __global__ void __launch_bounds__(128) two_buffers(ARGUMENTS) { warps<true>(M, N, K, A, B, C); }
