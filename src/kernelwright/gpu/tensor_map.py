"""Tensor maps: how copies of tiles find their elements. What `cuTensorMapEncodeTiled` is given in, 128 bytes for a kernel's parameter out.

The layout of the bytes is ours (`runtime/bulk.h`); on a device nobody looks into them either.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kernelwright.core.errors import GpuError

ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
"""By `CUtensorMapDataType`."""
_KINDS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 7, 7)
_MARK = 0x6B77746D
_SWIZZLED_BYTES = (0, 32, 64, 128)


def tensor_map(
    data_type: int,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int] = (),
    *,
    interleave: int = 0,
    swizzle: int = 0,
    fill: int = 0,
) -> bytes:
    """A map of tiles. Dimensions are innermost first, `strides` are bytes of all but the innermost; GpuError where CUDA refuses."""
    rank = len(extents)
    steps = tuple(steps) or (1,) * rank
    if not 1 <= rank <= 5 or len(box) != rank or len(steps) != rank or len(strides) != rank - 1:
        raise GpuError(f"a tensor map of {rank} dimensions with a box of {len(box)} and {len(strides)} strides")
    if not 0 <= data_type < len(ELEMENT_BYTES):
        raise GpuError(f"tensor maps of elements of type {data_type} are not known to this machine")
    if interleave:
        raise GpuError("tensor maps with an interleaved layout are not known to this machine")
    size = ELEMENT_BYTES[data_type]
    if not 0 <= swizzle < len(_SWIZZLED_BYTES):
        raise GpuError(f"tensor maps with swizzle mode {swizzle} are not known to this machine")
    if address % 16:
        raise GpuError("a tensor map's address is not a multiple of 16")
    if any(s % 16 or s <= 0 for s in strides):
        raise GpuError(f"a tensor map's strides must be positive multiples of 16 bytes, not {tuple(strides)}")
    if any(not 0 < b <= 256 for b in box):
        raise GpuError(f"a tensor map's box must be of 1 to 256 elements along each dimension, not {tuple(box)}")
    if box[0] * size % 16:
        raise GpuError(f"the innermost side of a tensor map's box is {box[0] * size} bytes, which is no multiple of 16")
    if swizzle and box[0] * size > _SWIZZLED_BYTES[swizzle]:
        raise GpuError(
            f"the innermost side of a tensor map's box is {box[0] * size} bytes, more than its swizzle of {_SWIZZLED_BYTES[swizzle]}"
        )
    five = [0] * 5
    return struct.pack(
        "<Q6B2x5I5I5II4Q16x", address, rank, size, swizzle, fill, interleave, _KINDS[data_type],
        *[*extents, *five][:5], *[*box, *five][:5], *[*steps, *five][:5], _MARK, *[*strides, *five][:4],
    )  # fmt: skip
