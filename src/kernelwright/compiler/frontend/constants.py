"""Constant tensors of a module that is not part of its state: recognised where they follow a rule, else written into the sketch.

In: a tensor that the module made for itself (a mask, positions, a table). Out: a value. Masks and positions may be as large as they
like, because they are computed from coordinates; only tables without a rule cost room in the kernel file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    import torch


def collapsed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with extent 1 along every axis on which it does not depend."""
    for axis, extent in enumerate(tensor.shape):
        if extent > 1 and _same(tensor, tensor.narrow(axis, 0, 1).expand(tensor.shape)):
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def recognised(tensor: torch.Tensor, dtype: DType) -> v.Value | None:
    """A collapsed tensor as one number, as a ramp or as a triangle; None if it is none of these."""
    shape = tuple(tensor.shape)
    if not tensor.numel():
        return b.const(0, dtype, shape)
    if tensor.numel() == 1:
        return v.Const(shape, dtype, tensor.reshape(-1)[0].item())
    return _ramp(tensor, dtype) or _triangle(tensor, dtype)


def _same(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Equal everywhere, NaN with NaN, and zeros of one sign."""
    import torch

    equal = (x == y) & (torch.signbit(x) == torch.signbit(y)) if x.is_floating_point() else x == y
    return bool((equal | (x.isnan() & y.isnan())).all()) if x.is_floating_point() else bool(equal.all())


def _ramp(tensor: torch.Tensor, dtype: DType) -> v.Value | None:
    """start + step * position along the only long axis, in whole numbers (arange and its kin)."""
    import torch

    long = [axis for axis, extent in enumerate(tensor.shape) if extent > 1]
    if len(long) != 1 or tensor.dtype == torch.bool:
        return None
    flat = tensor.reshape(-1).double()
    start, step = flat[0].item(), (flat[1] - flat[0]).item()
    whole = start.is_integer() and step.is_integer() and abs(start) + abs(step) * len(flat) < 2**24
    if not whole or not torch.equal(flat, start + step * torch.arange(len(flat), dtype=torch.float64)):
        return None
    made = b.position(tuple(tensor.shape), long[0])
    made = b.mul(made, int(step)) if step != 1 else made
    return b.cast(b.add(made, int(start)) if start else made, dtype)


def _triangle(tensor: torch.Tensor, dtype: DType) -> v.Value | None:
    """One number up to a diagonal of the matrices and another beyond it (causal masks)."""
    import torch

    long = [axis for axis, extent in enumerate(tensor.shape) if extent > 1]
    if len(long) != 2:
        return None
    matrix = tensor.reshape([tensor.shape[axis] for axis in long])
    rows, columns = matrix.shape
    corners = _distinct(matrix)
    if corners is None:
        return None
    i, j = torch.arange(rows).unsqueeze(1), torch.arange(columns)
    for below, beyond in (corners, corners[::-1]):
        # where the first row and the first column change from one number to the other tells the diagonal
        width = int(_is(matrix[0], below).sum())
        depth = int(_is(matrix[:, 0], beyond).sum())
        offset = width - 1 if width else -depth
        if bool((_is(matrix, below) == (j - i <= offset)).all()):
            shape = tuple(tensor.shape)
            gap = b.sub(b.position(shape, long[1]), b.position(shape, long[0]))
            test = b.apply("le", gap, offset, dtype=DType.bool, compute=gap.dtype)
            return test if dtype == DType.bool and below is True else b.where(test, below, beyond, dtype)
    return None


def _is(x: torch.Tensor, value: Any) -> torch.Tensor:
    return x.isnan() if value != value else x == value


def _distinct(matrix: torch.Tensor) -> tuple[Any, Any] | None:
    """The two numbers of a matrix that has two."""
    first = matrix[0, 0].item()
    others = matrix[~_is(matrix, first)]
    if not len(others):
        return None
    second = others[0].item()
    return (first, second) if bool(_is(others, second).all()) else None
