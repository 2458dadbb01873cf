"""The fundamental types of PTX and their sizes."""

from __future__ import annotations

TYPE_BYTES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "b128": 16,
    "f16": 2,
    "f16x2": 4,
    "bf16": 2,
    "bf16x2": 4,
    "tf32": 4,
    "f32": 4,
    "f32x2": 8,
    "f64": 8,
    "e4m3": 1,
    "e5m2": 1,
    "e4m3x2": 2,
    "e5m2x2": 2,
    "u16x2": 4,
    "s16x2": 4,
    "pred": 1,
}

SPECIALS = {
    "%tid",
    "%ntid",
    "%ctaid",
    "%nctaid",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%lanemask_eq",
    "%lanemask_lt",
    "%lanemask_le",
    "%lanemask_gt",
    "%lanemask_ge",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%clusterid",
    "%nclusterid",
    "%cluster_ctaid",
    "%cluster_nctaid",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%is_explicit_cluster",
    "%total_smem_size",
    "%dynamic_smem_size",
    "%aggr_smem_size",
    "%current_graph_exec",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    *(f"%envreg{i}" for i in range(32)),
}
"""Special registers, without their component."""


def type_bytes(name: str) -> int:
    """Bytes of one value of a type, named without its dot."""
    return TYPE_BYTES[name]
