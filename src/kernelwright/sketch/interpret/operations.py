"""What each sketch operation means, in torch: the tables the interpreter looks things up in.

In: tensors of equal dtype. Out: a tensor with the dtype that `nodes` promises. Nothing here knows about loops or memory.
f16 and bf16 maths is done in f32 and rounded once per operation, which is what correctly rounded half arithmetic gives.
"""

from __future__ import annotations

import torch

from kernelwright.core.errors import SketchError
from kernelwright.core.operations import BINARY, UNARY, neutral
from kernelwright.sketch.nodes import DType

TORCH_DTYPE: dict[DType, torch.dtype] = {dtype: getattr(torch, dtype.torch_name) for dtype in DType}
DTYPE = {found: dtype for dtype, found in TORCH_DTYPE.items()}
HALVES = (torch.float16, torch.bfloat16)

_INTEGER_DIVISIONS = ("floordiv", "mod", "fmod")


def unary(op: str, x: torch.Tensor) -> torch.Tensor:
    """One elementwise operation of one tile."""
    if op == "sqrt" and not x.is_floating_point():
        raise SketchError(f"sqrt of {x.dtype} needs a cast to a float first")
    function = getattr(torch, UNARY[op].torch_name)
    if x.dtype in HALVES:
        result = function(x.float())
        return result if result.dtype == torch.bool else result.to(x.dtype)
    return function(x)


def binary(op: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """One elementwise operation of two tiles of one dtype; division of integers by zero gives an unspecified number."""
    if op == "div" and not a.is_floating_point():
        raise SketchError("`/` divides floats; use `//` for integers, or cast first")
    if op in _INTEGER_DIVISIONS and not a.is_floating_point():
        b = torch.where(b == 0, torch.ones_like(b), b)
    function = getattr(torch, BINARY[op].torch_name)
    if a.dtype in HALVES:
        result = function(a.float(), b.float())
        return result if result.dtype == torch.bool else result.to(a.dtype)
    return function(a, b)


def reduce(op: str, x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """A reduction that keeps the reduced axes and the dtype."""
    if not axes:
        return x
    if any(x.shape[axis] == 0 for axis in axes):
        shape = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
        return torch.full(shape, neutral(op, DTYPE[x.dtype]), dtype=x.dtype)
    match op:
        case "sum":
            return torch.sum(x, dim=axes, keepdim=True, dtype=x.dtype)
        case "prod":
            for axis in axes:
                x = torch.prod(x, dim=axis, keepdim=True, dtype=x.dtype)
            return x
        case "max":
            return torch.amax(x, dim=axes, keepdim=True)
        case "min":
            return torch.amin(x, dim=axes, keepdim=True)
        case "any":
            return torch.any(x, dim=axes, keepdim=True)
        case "all":
            return torch.all(x, dim=axes, keepdim=True)
    raise SketchError(f"unknown reduction reduce_{op}")


def arg_reduce(op: str, x: torch.Tensor, axis: int) -> torch.Tensor:
    """Position of the first extreme along an axis, NaN first of all."""
    return (torch.argmax if op == "max" else torch.argmin)(x, dim=axis, keepdim=True)


def scan(op: str, x: torch.Tensor, axis: int, reverse: bool, exclusive: bool) -> torch.Tensor:
    """A running reduction along an axis."""
    if x.shape[axis] == 0:
        return x
    work = torch.flip(x, (axis,)) if reverse else x
    match op:
        case "sum":
            done = torch.cumsum(work, axis, dtype=x.dtype)
        case "prod":
            done = torch.cumprod(work, axis, dtype=x.dtype)
        case "max":
            done = torch.cummax(work, axis).values
        case "min":
            done = torch.cummin(work, axis).values
        case "logsumexp":
            done = torch.logcumsumexp(work, axis)
        case _:
            raise SketchError(f"unknown scan scan_{op}")
    if exclusive:
        first = torch.full_like(done.narrow(axis, 0, 1), neutral(op, DTYPE[x.dtype]))
        done = torch.cat([first, done.narrow(axis, 0, x.shape[axis] - 1)], dim=axis)
    return torch.flip(done, (axis,)) if reverse else done


def gemm(a: torch.Tensor, b: torch.Tensor, acc: torch.Tensor | None) -> torch.Tensor:
    """`a @ b + acc`, in the accumulator's dtype."""
    if a.ndim != b.ndim or a.ndim not in (2, 3) or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise SketchError(f"gemm needs [m, k] and [k, n] tiles, not {list(a.shape)} and {list(b.shape)}")
    if acc is not None:
        dtype = acc.dtype
    elif a.is_floating_point():
        dtype = torch.float64 if a.dtype == torch.float64 else torch.float32
    else:
        dtype = torch.int32
    product = torch.matmul(a.to(dtype), b.to(dtype))
    return product if acc is None else acc + product
