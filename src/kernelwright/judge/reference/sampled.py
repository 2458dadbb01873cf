"""Expectations for dear and for large tasks: fp64 on some samples of the batch, torch's own result for the rest.

Where an fp64 run of the whole would take many seconds or several times the task's memory, a few rows of the batch (chosen
by the trial's secret seed) are run in fp64 instead. Those rows are judged as always; all others are held against torch's
result at the task's dtype, with the error level that the sample showed for each magnitude, doubled, since both sides may be
off. Only for tasks that treat their samples independently, which is tried out, not assumed.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from kernelwright.core.errors import TaskError
from kernelwright.core.task import tree
from kernelwright.judge.reference import numerics
from kernelwright.judge.reference.expect import FEW_MOVED, MORE_MOVED, Expectation, Finding
from kernelwright.judge.reference.numerics import Difference, Yardstick
from kernelwright.judge.reference.reference import Reference

DEAR_SECONDS = 0.5
"""Eager time from which fp64 runs of the whole (about three times as long, several a trial) are not worth it."""
SAMPLE_SECONDS = 0.2
SAMPLED_BYTES = 192 << 20
"""Inputs and outputs from which a sample stands for all: fp64 runs of the whole would be most of a verdict's time."""
SAMPLE_BYTES = 32 << 20
"""Of a large task: an fp64 copy of all, beside what the two processes hold anyway, crowds out a laptop's memory."""


def rows_to_sample(reference: Reference, inputs: list[Any], eager_seconds: float, nbytes: int = 0) -> int:
    """How many rows of the batch stand for all of it; 0 when the whole is cheap, or the samples depend on each other."""
    batch = _batch(inputs)
    dear, large = eager_seconds >= DEAR_SECONDS, nbytes >= SAMPLED_BYTES
    if not (dear or large) or batch < 2:
        return 0
    share = min(SAMPLE_SECONDS / eager_seconds if dear else 1.0, SAMPLE_BYTES / nbytes if large else 1.0)
    count = max(1, min(batch // 2, int(batch * share)))
    rows = torch.tensor(sorted(random.Random(0).sample(range(batch), count)))
    try:
        whole = [leaf for _, leaf in reference.native(inputs)]
        part = [leaf for _, leaf in reference.native(take(inputs, rows, batch))]
    except TaskError:
        return 0
    independent = all(
        full.dim() > 0 and full.shape[0] == batch and few.shape == (count, *full.shape[1:]) and _alike(full[rows], few)
        for full, few in zip(whole, part, strict=True)
    )
    return count if independent else 0


def take(values: Any, rows: Any, batch: int) -> Any:
    """The chosen rows of everything that has the batch as its first dimension."""
    return tree.transform(values, lambda tensor: tensor[rows] if tensor.dim() and tensor.shape[0] == batch else tensor)


class SampledExpectation(Expectation):
    """An expectation whose fp64 truth covers some rows only."""

    def __init__(self, reference: Reference, inputs: list[Any], reach: int, *, label: str, count: int, seed: int) -> None:
        self.batch = _batch(inputs)
        self.rows = torch.tensor(sorted(random.Random(seed).sample(range(self.batch), count)))
        self.sample = Expectation(reference, take(inputs, self.rows, self.batch), reach, label=f"{label}, a sample in fp64")
        super().__init__(reference, inputs, reach, label=label)

    def check_outputs(self, received: Any, *, brief: bool = False) -> Finding | None:
        """Everything against torch's own result, then the sample against fp64."""
        finding = super().check_outputs(received, brief=brief)
        return finding or self.sample.check_outputs(take(received, self.rows, self.batch), brief=brief)

    @property
    def strictest(self) -> Expectation:
        return self.sample

    def relative_error(self) -> float:
        return self.sample.relative_error()

    def _wide_outputs(self) -> list[tuple[str, Any]] | None:
        return None

    def _make_yardstick(self, index: int) -> Yardstick:
        native = self.native[index][1]
        return Yardstick(native, native, self.reach, list, lender=self.sample.yardstick(index))

    def _excuse(self, difference: Difference, got: Any, want: Any, index: int, exact: bool, brief: bool) -> Difference:
        """Too dear to try noise on the whole. Integers may differ where they point at equals, and in as many places as torch's own do
        in the sample; floats of dear tasks (convolutions, products) have no steps and ties."""
        if not exact:
            return difference
        tied, _ = self._tied(got, index)
        left = difference.wrong & ~tied
        moved = (self.sample.native[index][1] != self.sample.wide[index]).double().mean()
        few = FEW_MOVED + MORE_MOVED * float(moved) * want.numel()
        return Difference(left if int(left.sum()) > few else torch.zeros_like(left), difference.worst_error, difference.bound)


def _batch(inputs: list[Any]) -> int:
    first = next((tensor for tensor in tree.tensors(inputs) if tensor.dim() > 0), None)
    return 0 if first is None else int(first.shape[0])


def _alike(left: Any, right: Any) -> bool:
    """Equal up to the roundings that another batch size may bring."""
    if not left.is_floating_point():
        return bool(torch.equal(left, right))
    scale = float(left.double().square().mean().sqrt()) if left.numel() else 0.0
    return bool(torch.allclose(left, right, 1e-3, 64 * numerics.unit(left.dtype) * scale, equal_nan=True))
