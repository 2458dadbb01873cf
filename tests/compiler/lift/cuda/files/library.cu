// Functions of CUDA's library of mathematics, and rotations by angles that the kernel computes.
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

__global__ void rotate(const float *x, float *y, int heads, int half) {
    int pair = threadIdx.x, position = blockIdx.x, head = blockIdx.y;
    float angle = position * powf(10000.f, -2.f * pair / (2.f * half)), s, c;
    sincosf(angle, &s, &c);
    const float *from = x + (position * heads + head) * 2 * half;
    float *to = y + (position * heads + head) * 2 * half;
    to[pair] = from[pair] * c - from[pair + half] * s;
    to[pair + half] = from[pair] * s + from[pair + half] * c;
}
