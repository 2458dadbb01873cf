"""A batch that is one block of rows over and over, each repetition begun at another row: how a large task's inputs travel for a trial.

In: a block of inputs. Out: the whole batch, in memory of the caller's choice. The referee knows where each repetition begins and so what
belongs where (`reference/rows.py`); the worker with the kernel gets the block and these numbers instead of a gigabyte. Bound at import,
as in stopwatch.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

_arange, _copy, _narrow = torch.arange, torch.Tensor.copy_, torch.Tensor.narrow


@dataclass(frozen=True)
class Turned:
    """`carried`: which of the input tensors, in their order, have rows; `shifts`: the row of the block with which a repetition begins."""

    batch: int
    carried: tuple[int, ...]
    shifts: tuple[int, ...]

    @classmethod
    def from_message(cls, told: Any) -> Turned | None:
        """What `as_message` gave, or None."""
        return None if told is None else cls(int(told["batch"]), tuple(told["carried"]), tuple(told["shifts"]))

    def as_message(self) -> dict[str, Any]:
        """As data that can travel."""
        return {"batch": self.batch, "carried": list(self.carried), "shifts": list(self.shifts)}

    def starts(self, block: int) -> range:
        """The first row of each repetition."""
        return range(0, self.batch, block)

    def order(self, start: int, block: int) -> Any:
        """Rows of the block as they come in the repetition that begins at a row of the batch."""
        return (_arange(min(block, self.batch - start)) + self.shifts[start // block]) % block

    def layout(self, block: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and strides of the whole of which this is a block: dimensions that lie outside of the rows lie farther apart."""
        rows, first = block.shape[0], block.stride(0)
        strides = [stride * self.batch // rows if stride > first else stride for stride in block.stride()]
        return (self.batch, *block.shape[1:]), (first, *strides[1:])

    def fill(self, whole: Any, block: Any) -> None:
        """The repetitions into memory for the whole batch."""
        rows = block.shape[0]
        for number, start in enumerate(self.starts(rows)):
            count, shift = min(rows, self.batch - start), self.shifts[number]
            head = min(count, rows - shift)
            _copy(_narrow(whole, 0, start, head), _narrow(block, 0, shift, head))
            if count > head:
                _copy(_narrow(whole, 0, start + head, count - head), _narrow(block, 0, 0, count - head))
