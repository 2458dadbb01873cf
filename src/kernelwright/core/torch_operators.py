"""Torch's operators by what they cost a kernel: those that compute nothing, a library's routines, and the rest.

In: names such as `aten::addmm`. Out: which of them count as library calls, and which a track forbids: "pure" allows allocation, views
and copies; "hybrid" also GEMM, convolution and the routines that every numerical library has (sorting, FFT, factorisations). The judge
asks this of what a candidate was seen to call, the compiler before it leaves an operator to torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOCATION = _names("""
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided _empty_affine_quantized zeros zeros_like new_zeros ones
    ones_like new_ones full full_like new_full zero_ zero fill_ fill arange scalar_tensor eye resize_ resize_as_ set_ tensor
""")
COPIES = _names("""
    clone copy_ copy contiguous _to_copy to type_as lift_fresh lift lift_fresh_copy _copy_from item _local_scalar_dense is_nonzero float
    half double resolve_conj resolve_neg is_pinned _pin_memory pin_memory _reshape_copy _has_compatible_shallow_copy_type _version
    constant_pad_nd_view
""")
VIEWS = _names("""
    view view_as reshape _reshape_alias _unsafe_view as_strided transpose t permute expand expand_as squeeze unsqueeze select slice narrow
    split split_with_sizes chunk unbind detach detach_ alias flatten unflatten movedim moveaxis swapaxes swapdims diagonal unfold numpy_T
    mT mH adjoint real imag view_as_real view_as_complex tensor_split hsplit vsplit dsplit data squeeze_ unsqueeze_ transpose_ t_
    as_strided_ broadcast_to atleast_1d atleast_2d atleast_3d ravel requires_grad_ size stride storage_offset dim numel sym_size
    sym_stride sym_numel is_contiguous is_same_size output_nr is_leaf retain_grad result_type can_cast _nested_tensor_size prim_layout
    device layout
""")
FREE = ALLOCATION | COPIES | VIEWS
"""Operators that compute nothing."""
MOVING = _names("""
    clone copy_ _to_copy zero_ fill_ zeros zeros_like full ones full_like new_zeros new_full
""")
"""Free operators that touch every byte of their result: they explain time inside libtorch."""

LIBRARY = re.compile(
    r"^(_?(addmm|addmm_activation|mm|bmm|baddbmm|addbmm|matmul|linear|dot|vdot|mv|addmv|addr|ger|einsum|tensordot|inner|outer|chain_matmul)_?"
    r"|_?scaled_mm|_grouped_mm|bilinear|_trilinear|kron|_?conv\w*|mkldnn_\w*conv\w*|mkldnn_\w*linear\w*|_?convolution\w*|slow_conv\w*|thnn_conv\w*"
    r"|_weight_int\w*|_int_mm|fbgemm_\w*|quantized_\w*|_sparse_mm\w*|_mkl_linear|_mps_\w*"
    r"|sort|argsort|topk|msort|kthvalue|unique\w*|_unique\w*|_?fft\w*|stft|istft|linalg_\w*|_linalg_\w*|cholesky\w*|qr|svd|lu\w*|triangular_solve|cdist|_cdist\w*|_euclidean_dist)$"
)


def judge_calls(operators: Iterable[str], track: str) -> tuple[list[str], list[str]]:
    """(library calls that count, those of them that the track forbids), from names such as `aten::addmm`."""
    computing = sorted({name for name in operators if not _is_free(name)})
    if (
        track == "source"
    ):  # somebody's program that is migrated: what its host code leaves to torch is told, not held against it
        return computing, []
    if track == "pure":
        return computing, computing
    return computing, [name for name in computing if not is_library(name)]


def _is_free(name: str) -> bool:
    space, _, operator = name.partition("::")
    if space not in ("aten", "prim", "prims", "mkldnn", "mkl", "quantized", "torch_sparse", "inductor", "cublas"):
        # An extension's own operator (torch.library) is the kernel itself; what it calls in torch is listed beside it.
        return True
    return operator in FREE or operator.startswith(("sym_", "is_", "_is_", "_assert"))


def is_library(name: str) -> bool:
    """Whether an operator is a routine of a numerical library."""
    space, _, operator = name.partition("::")
    return space in ("mkldnn", "mkl", "quantized", "cublas") or bool(LIBRARY.match(operator))
