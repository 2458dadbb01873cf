#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

__constant__ float taps[5];

__global__ void smooth(const float* __restrict__ e, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c >= cols) return;
    float sum = 0.f;
    for (int k = -2; k <= 2; k++) {
        int at = c + k;
        if (at >= 0 && at < cols) sum += taps[k + 2] * e[r * cols + at];
    }
    out[r * cols + c] = sum;
}

__global__ void normalise(float* x, int cols) {
    __shared__ float partial[64];
    float* row = x + blockIdx.x * cols;
    float s = 0.f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) s += row[c] * row[c];
    partial[threadIdx.x] = s;
    __syncthreads();
    for (int step = 32; step > 0; step >>= 1) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    float scale = rsqrtf(partial[0] + 1e-6f);
    for (int c = threadIdx.x; c < cols; c += blockDim.x) row[c] *= scale;
}

void smooth_and_normalise(const float* e, const float* filter, float* out, int rows, int cols) {
    float* temporary;
    cudaMalloc(&temporary, sizeof(float) * rows * cols);
    cudaMemcpyToSymbol(taps, filter, 5 * sizeof(float));
    smooth<<<dim3(CEIL_DIV(cols, 128), rows), 128>>>(e, temporary, rows, cols);
    normalise<<<rows, 64>>>(temporary, cols);
    cudaMemcpy(out, temporary, sizeof(float) * rows * cols, cudaMemcpyDeviceToDevice);
    cudaFree(temporary);
}

int main() { return 0; }
