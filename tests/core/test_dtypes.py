"""The table of element types against PyTorch's own."""

import itertools

import pytest
import torch

from kernelwright.core.dtypes import DType, from_torch, promoted
from kernelwright.core.operations import REDUCTIONS, neutral


def torch_dtype(dtype: DType) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.torch_name)
    return found


@pytest.mark.parametrize("dtype", DType)
def test_rows_say_what_torch_says(dtype: DType) -> None:
    theirs = torch_dtype(dtype)
    assert (dtype.size, dtype.is_float) == (theirs.itemsize, theirs.is_floating_point)
    assert from_torch(theirs) is from_torch(dtype.torch_name) is dtype
    if dtype.is_float:
        assert dtype.epsilon == torch.finfo(theirs).eps
    elif dtype.is_integer:
        assert (dtype.lowest, dtype.highest) == (torch.iinfo(theirs).min, torch.iinfo(theirs).max)


def test_a_dtype_that_no_sketch_has() -> None:
    assert from_torch(torch.complex64) is None


def test_two_dtypes_meet_as_in_torch() -> None:
    for a, b in itertools.product(DType, DType):
        assert promoted(a, b) is from_torch(torch.promote_types(torch_dtype(a), torch_dtype(b))), (a, b)


@pytest.mark.parametrize("op", [op for op in REDUCTIONS if op != "logsumexp"])
@pytest.mark.parametrize("dtype", DType)
def test_reductions_start_from_what_changes_nothing(op: str, dtype: DType) -> None:
    from kernelwright.sketch.interpret.operations import binary

    if (dtype is DType.bool and op not in ("any", "all")) or (dtype is not DType.bool and op in ("any", "all")):
        return
    x = torch.tensor([0, 1, 1, 0], dtype=torch_dtype(dtype))
    start = torch.full((), neutral(op, dtype), dtype=x.dtype)
    assert torch.equal(binary(REDUCTIONS[op].step, start.expand(4), x), x)
