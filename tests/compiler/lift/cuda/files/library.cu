// Functions of CUDA's library of mathematics.
__global__ void many(const float *x, const int *n, float *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned width = min((unsigned)blockDim.x, 128u);
    if (i >= count) return;
    float v = x[i];
    float a = __expf(v) + roundf(v) + fmaxf(v, 0.25f) - cbrtf(v) + exp2f(v) + hypotf(v, 2.f) + normcdff(v);
    float b = __fdividef(v, 3.f) + __frcp_rn(v * v + 1.f) + __fsqrt_rn(fabsf(v)) + __saturatef(v) + fdimf(v, 0.5f);
    int whole = max(__float2int_rd(v), n[i]);
    out[i] = a * b + (float)whole + (float)width;
}
