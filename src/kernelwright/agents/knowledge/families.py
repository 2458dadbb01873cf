"""The family of a task: its ATen operators in, the kinds of kernel it needs out, the most demanding first.

The names are those that skills carry in their front matter. An operator that no row knows is no family: such a task still gets the
skills for all kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

FAMILIES: tuple[tuple[str, str], ...] = (
    ("attention", r"scaled_dot_product|flash_attention|multi_head_attention"),
    ("convolution", r"convolution|conv\d|conv_transpose|unfold|im2col|col2im"),
    (
        "matmul",
        r"^(mm|bmm|addmm|addbmm|baddbmm|matmul|linear|mv|dot|vdot|addmv|addr|einsum|outer|cdist|tensordot|.*_mm|.*_linear.*)$",
    ),
    ("recurrence", r"^(lstm|gru|rnn).*"),
    ("fft", r"fft|^stft|^istft"),
    ("linalg", r"^linalg_(?!vector_norm|norm)|cholesky|triangular_solve|^lu_|^inverse|^det$|^qr$|^svd|matrix_exp|lobpcg"),
    ("norm", r"(layer|batch|group|instance|rms)_norm|^std|^var|(linalg_)?vector_norm|^norm$|renorm|normalize"),
    ("softmax", r"softmax|softmin|logsumexp"),
    ("pooling", r"pool\dd?|_pool"),
    ("scan", r"^(cum|logcumsum)"),
    ("sort", r"^(sort|argsort|topk|kthvalue|median|mode|unique|msort|nanmedian)"),
    (
        "index",
        r"embedding|gather|scatter|index|take|masked_|bincount|histc|one_hot|nonzero|searchsorted|bucketize|where$|roll|flip",
    ),
    ("loss", r"loss|kl_div|cross_entropy|binary_cross|cosine_similarity|huber|smooth_l1"),
    ("reduction", r"^(sum|mean|prod|amax|amin|max|min|argmax|argmin|any|all|count_nonzero|nansum|aminmax|trace|frobenius.*)$"),
    ("resampling", r"upsample|interpolate|grid_sampl|pixel_(un)?shuffle|affine_grid"),
    (
        "movement",
        r"^(cat|stack|repeat|tile|pad|constant_pad_nd|reflection_pad.*|replication_pad.*|tril|triu)$",
    ),
)
"""(family, pattern over operator names), from the most to the least demanding."""

SILENT = {
    "clone",
    "copy",
    "detach",
    "equal",
    "empty",
    "empty_like",
    "t",
    "view",
    "expand",
    "permute",
    "transpose",
    "alias",
    "_to_copy",
}
"""Operators that say nothing about a task: views, and what the judge's own first run adds."""


COMMON = ("pointwise", "reduction", "movement", "index")
"""Families that nearly every task has something of: they do not make two tasks alike."""


def akin(families: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The families that two tasks share, where that makes them alike: a demanding one, or the first of each where both are common."""
    shared = tuple(family for family in families if family in others)
    telling = tuple(family for family in shared if family not in COMMON)
    if telling:
        return telling
    plain = set(families) <= set(COMMON) and set(others) <= set(COMMON)
    return shared if plain and families[:1] == others[:1] else ()


def families(operators: Iterable[str]) -> tuple[str, ...]:
    """The families of a task's operators; what is in none of them is pointwise."""
    names = {_base(name) for name in operators} - SILENT
    found = [family for family, pattern in FAMILIES if any(re.search(pattern, name) for name in names)]
    known = {name for name in names for _, pattern in FAMILIES if re.search(pattern, name)}
    if names - known or not found:
        found.append("pointwise")
    return tuple(found)


def _base(name: str) -> str:
    """`aten.add_.Tensor` and `add_` as `add`."""
    name = name.removeprefix("aten.").removeprefix("aten::").split(".")[0].lstrip("_")
    return name.rstrip("_").removeprefix("native_").removeprefix("cudnn_").removeprefix("thnn_")
