"""The part of a product kernel that runs on tensor cores: when it may, and the CUDA text of its steps.

A block of 64 x 64 is shared by eight warps (wmma, 16 x 16 x 16); sums are floats, and go through shared memory to the threads that
store them. In: the product of a sketch. Out: the half type of its operands, and texts that product_kernel.py puts together.
"""

from __future__ import annotations

from kernelwright.compiler.lower.tile_values import VIEWS, Value
from kernelwright.sketch.nodes import DType

NARROW = {DType.f16: ("__half", "__float2half({})"), DType.bf16: ("__nv_bfloat16", "__float2bfloat16({})")}
BEGIN = """// eight warps, each 16 x 32 of the block's 64 x 64 on tensor cores
__shared__ __align__(32) {kind} left[64][24];
__shared__ __align__(32) {kind} right[16][72];
__shared__ __align__(32) float products[64][68];
nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> cores[2];
nvcuda::wmma::fill_fragment(cores[0], 0.0f);
nvcuda::wmma::fill_fragment(cores[1], 0.0f);
nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, {kind}, nvcuda::wmma::row_major> core_left;
nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, {kind}, nvcuda::wmma::row_major> core_right;
const int core_row = threadIdx.x / 64 * 16, core_column = threadIdx.x / 32 % 2 * 32;"""
STEP = """nvcuda::wmma::load_matrix_sync(core_left, &left[core_row][0], 24);
#pragma unroll
for (int half_tile = 0; half_tile < 2; ++half_tile) {
nvcuda::wmma::load_matrix_sync(core_right, &right[0][core_column + 16 * half_tile], 72);
nvcuda::wmma::mma_sync(cores[half_tile], core_left, core_right, cores[half_tile]);
}"""
END = """nvcuda::wmma::store_matrix_sync(&products[core_row][core_column], cores[0], 68, nvcuda::wmma::mem_row_major);
nvcuda::wmma::store_matrix_sync(&products[core_row][core_column + 16], cores[1], 68, nvcuda::wmma::mem_row_major);
__syncthreads();
#pragma unroll
for (int i = 0; i < 4; ++i) {
#pragma unroll
for (int j = 0; j < 4; ++j) sum[i][j] += products[ty * 4 + i][tx + 16 * j];
}"""


def element_type(product: Value) -> DType | None:
    """f16 or bf16 if both operands are numbers of that type, summed in float."""
    kinds = {_narrow(operand) for operand in product.args[:2]}
    return kinds.pop() if len(kinds) == 1 and product.dtype is DType.f32 else None


def _narrow(value: Value) -> DType | None:
    """The half type that an operand's elements fit into exactly."""
    if value.dtype in NARROW:
        return value.dtype
    if value.op == "cast" and value.args[0].dtype in NARROW:
        return value.args[0].dtype
    if value.op in VIEWS:
        return _narrow(value.args[0])
    if value.op == "where":  # padding with zeros
        branches = [x for x in value.args[1:] if not (x.op == "const" and x.data == 0)]
        return _narrow(branches[0]) if len(branches) == 1 else None
    return None
