"""The table of scalar operations against PyTorch: what a row says of dtypes is what its function does."""

import pytest
import torch

from kernelwright.core.dtypes import DType, from_torch
from kernelwright.core.errors import SketchError
from kernelwright.core.operations import BINARY, UNARY, Operation, of_torch
from kernelwright.sketch.dtypes import binary_dtype, unary_dtype

ROWS = [*UNARY.values(), *BINARY.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", DType)
def test_what_a_row_takes_torch_takes_and_gives_the_same(row: Operation, dtype: DType) -> None:
    if not row.accepts(dtype):
        with pytest.raises(SketchError):
            (unary_dtype if row.arity == 1 else binary_dtype)(row.name, dtype)
        return
    operands = [torch.ones(3, dtype=getattr(torch, dtype.torch_name))] * row.arity
    given = from_torch(getattr(torch, row.torch_name)(*operands).dtype)
    assert given is (unary_dtype if row.arity == 1 else binary_dtype)(row.name, dtype)


def test_rows_are_found_by_the_name_that_torch_has_for_them() -> None:
    assert [of_torch(name) for name in ("remainder", "bitwise_not", "no_such")] == [BINARY["mod"], UNARY["invert"], None]
