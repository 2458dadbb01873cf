"""Large and dear tasks whose samples do not depend on each other: what is known of a few rows stands for all of them.

In: a reference and its first run. Out: `Rows` where the batch is one (tried out, not assumed), and two kinds of expectation:

- `BlockExpectation`, for trials: the inputs are one block of rows over and over, each time begun at another row that nobody can foresee.
  The reference answers for the block alone, in fp64 as always; every element of the candidate's answer is held against it;
- `RowsExpectation`, for calls on data that are independent throughout: some rows in fp64, all others against torch's own result with the
  error level that those rows showed for each magnitude, doubled, since both sides may be off. Block by block, so that no second copy
  of a gigabyte is needed.

Of the candidate nothing is saved: it runs on the whole batch, and every position of its answer is compared.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernelwright.core.errors import TaskError
from kernelwright.core.task import tree
from kernelwright.judge.reference import numerics
from kernelwright.judge.reference.expect import FEW_MOVED, MORE_MOVED, Expectation, Finding
from kernelwright.judge.reference.numerics import Difference, Yardstick
from kernelwright.judge.reference.reference import Reference
from kernelwright.judge.timing.turned import Turned

DEAR_SECONDS = 0.05
"""Eager time from which fp64 runs of the whole (about three times as long, several a trial) are most of a verdict."""
DEAR_BLOCK_SECONDS = 0.015
LARGE_BYTES = 24 << 20
"""Inputs and outputs from which drawing and comparing the whole, trial by trial, are most of a verdict."""
BLOCK_BYTES = 8 << 20
PIECE_BYTES = 64 << 20
FEWEST_ROWS, FEWEST_BLOCKS = 2, 3
PROBED = 64
"""Rows on which it is tried whether they depend on others."""


@dataclass(frozen=True)
class Rows:
    """How a task treats its batch: `batch` rows in all, carried by these of its input tensors; `block` rows stand for all."""

    batch: int
    carried: tuple[int, ...]
    block: int
    piece: int
    """Rows that are compared at a time where all differ."""

    def part(self, inputs: list[Any], start: int, stop: int) -> list[Any]:
        """These rows of the inputs, as views; what carries no rows is whole."""
        return self._each(inputs, lambda tensor: tensor[start:stop])

    def pick(self, inputs: list[Any], rows: Any) -> list[Any]:
        """The chosen rows of the inputs, in memory of their own."""
        return self._each(inputs, lambda tensor: tensor[rows])

    def turned(self, seed: int) -> Turned:
        """A whole batch made of one block: where each repetition begins."""
        dice = random.Random(seed)
        return Turned(self.batch, self.carried, tuple(dice.randrange(self.block) for _ in range(0, self.batch, self.block)))

    def _each(self, inputs: list[Any], change: Any) -> list[Any]:
        count = [-1]

        def apply(tensor: Any) -> Any:
            count[0] += 1
            return change(tensor) if count[0] in self.carried else tensor

        return [tree.transform(item, apply) for item in inputs]


def find_rows(
    reference: Reference, inputs: list[Any], outputs: Sequence[Any], eager_seconds: float, nbytes: int
) -> Rows | None:
    """The task's rows; None where the whole is cheap, or samples depend on each other. `outputs` are those of the inputs."""
    dear, large = eager_seconds >= DEAR_SECONDS, nbytes >= LARGE_BYTES
    batches = {int(leaf.shape[0]) if leaf.dim() else 0 for leaf in outputs}
    if not (dear or large) or len(batches) != 1:
        return None
    batch = batches.pop()
    share = min(DEAR_BLOCK_SECONDS / eager_seconds if dear else 1.0, BLOCK_BYTES / nbytes if large else 1.0)
    block = max(FEWEST_ROWS, int(batch * share))
    if batch < FEWEST_BLOCKS * block:
        return None
    every = tuple(place for place, one in enumerate(tree.tensors(inputs)) if one.dim() and one.shape[0] == batch)
    piece = max(block, int(batch * min(1.0, PIECE_BYTES / max(nbytes, 1))))
    for carried in dict.fromkeys(option for option in (every, every[:1]) if option):
        found = Rows(batch, carried, block, piece)
        if _independent(reference, found, inputs, outputs):
            return found
    return None


def _independent(reference: Reference, rows: Rows, inputs: list[Any], outputs: Sequence[Any]) -> bool:
    """Whether a few rows alone come out as they do among all others."""
    count = min(rows.block, PROBED)
    chosen = torch.tensor(sorted(random.Random(0).sample(range(rows.batch), count)))
    try:
        part = [leaf for _, leaf in reference.native(rows.pick(inputs, chosen))]
    except TaskError:
        return False
    return len(part) == len(outputs) and all(
        few.shape == (count, *full.shape[1:]) and _alike(full[chosen], few) for full, few in zip(outputs, part, strict=True)
    )


class BlockExpectation(Expectation):
    """What must come out of a whole batch that is one block over and over. As an Expectation it is the block's."""

    def __init__(self, reference: Reference, inputs: list[Any], reach: int, *, label: str, rows: Rows, seed: int) -> None:
        super().__init__(reference, inputs, reach, label=label)
        self.rows, self.turned = rows, rows.turned(seed)
        self._right: list[Any] = []

    def check_outputs(self, received: Any, *, brief: bool = False) -> Finding | None:
        """Every repetition against the block's answer; `brief` asks about an answer to the block itself (null candidates)."""
        if brief:
            return super().check_outputs(received, brief=True)
        return self._batch_shaped(received, self.rows.batch) or self._check_repetitions(received)

    def _check_repetitions(self, received: Any) -> Finding | None:
        ordinary, self._right = self.ordinary, []
        try:
            for number, start in enumerate(self.turned.starts(self.rows.block)):
                stop = min(start + self.rows.block, self.rows.batch)
                if self._right and self._same_as_first(received, start, stop, self.turned.shifts[number]):
                    continue
                answer = self._turned_back(received, start, stop, number)
                finding = super().check_outputs(answer)
                if finding:
                    return _shifted(finding, start, self.turned.shifts[number], self.rows.block)
                self._right = self._right or tree.tensors(answer)
                self.ordinary = False  # what is systematic shows in the first repetition
        finally:
            self.ordinary, self._right = ordinary, []
        return None

    def _same_as_first(self, received: Any, start: int, stop: int, shift: int) -> bool:
        """Whether a repetition is bit for bit the first one, which was right."""
        head = min(stop - start, self.rows.block - shift)
        return all(
            torch.equal(one[start : start + head], right[shift : shift + head])
            and torch.equal(one[start + head : stop], right[: stop - start - head])
            for one, right in zip(tree.tensors(received), self._right, strict=True)
        )

    def _turned_back(self, received: Any, start: int, stop: int, number: int) -> Any:
        """A repetition in the block's own order. What a last, shorter one lacks is taken from the first."""
        shift, right = self.turned.shifts[number], iter(self._right)

        def back(tensor: Any) -> Any:
            part, first = tensor[start:stop], next(right, None)
            if stop - start < self.rows.block and first is not None:
                part = torch.cat([part, first.roll(-shift, 0)[stop - start :]])
            return part.roll(shift, 0)

        return tree.transform(received, back)

    def check_inputs(self, after: list[Any], part: tuple[int, int] | None = None) -> Finding | None:
        """As ever, for the rows from `part[0]` to `part[1]`."""
        if part is None:
            return super().check_inputs(after)
        places = torch.cat([self.turned.order(start, self.rows.block) for start in range(*part, self.rows.block)])
        return self._unchanged(self.rows.pick(self.inputs, places[: part[1] - part[0]]), after)


class RowsExpectation(Expectation):
    """What must come out of a whole batch of rows that all differ."""

    def __init__(self, reference: Reference, inputs: list[Any], reach: int, *, label: str, rows: Rows, seed: int) -> None:
        self.rows, self.whole = rows, inputs
        self.chosen = torch.tensor(sorted(random.Random(seed).sample(range(rows.batch), rows.block)))
        super().__init__(reference, rows.pick(inputs, self.chosen), reach, label=f"{label}, a sample in fp64")
        self.told = label

    def check_outputs(self, received: Any, *, brief: bool = False) -> Finding | None:
        """Everything against torch's own result, then the sample against fp64."""
        finding = self._batch_shaped(received, self.rows.batch)
        for start in () if finding else range(0, self.rows.batch, self.rows.piece):
            stop = min(start + self.rows.piece, self.rows.batch)
            part = _Lent(self, self.rows.part(self.whole, start, stop), f"{self.told}, rows {start} to {stop - 1}")
            cut = slice(start, stop)
            finding = part.check_outputs(tree.transform(received, lambda tensor, cut=cut: tensor[cut]), brief=brief)  # type: ignore[misc]
            if finding:
                return finding
        return finding or super().check_outputs(tree.transform(received, lambda tensor: tensor[self.chosen]), brief=brief)

    def check_inputs(self, after: list[Any], part: tuple[int, int] | None = None) -> Finding | None:
        """As ever, for the rows from `part[0]` to `part[1]`."""
        before = self.whole if part is None else self.rows.part(self.whole, *part)
        return self._unchanged(before, after)


class _Lent(Expectation):
    """Some rows without a truth but torch's own result, and the error levels of a sample."""

    def __init__(self, sample: Expectation, inputs: list[Any], label: str) -> None:
        self._sample = sample
        super().__init__(sample.reference, inputs, sample.reach, label=label)

    def _wide_outputs(self) -> list[tuple[str, Any]] | None:
        return None

    def _make_yardstick(self, index: int) -> Yardstick:
        native = self.native[index][1]
        return Yardstick(native, native, self.reach, list, lender=self._sample.yardstick(index))

    def _excuse(self, difference: Difference, got: Any, want: Any, index: int, exact: bool, brief: bool) -> Difference:
        """Too dear to try noise on all rows. Integers may differ where they point at equals, and in as many places as torch's own do
        in the sample; floats of dear tasks (convolutions, products) have no steps and ties."""
        if not exact:
            return difference
        tied, _ = self._tied(got, index)
        left = difference.wrong & ~tied
        moved = (self._sample.native[index][1] != self._sample.wide[index]).double().mean()
        few = FEW_MOVED + MORE_MOVED * float(moved) * want.numel()
        return Difference(left if int(left.sum()) > few else torch.zeros_like(left), difference.worst_error, difference.bound)


def _shifted(finding: Finding, start: int, shift: int, block: int) -> Finding:
    """A finding about a repetition, told of the whole batch."""
    mismatch = finding.get("mismatch")
    if mismatch and mismatch["place"]:
        row, *rest = mismatch["place"]
        finding["mismatch"] = {**mismatch, "place": [start + (row - shift) % block, *rest]}
    finding["reason"] += f", among rows {start} to {start + block - 1}"
    return finding


def _alike(left: Any, right: Any) -> bool:
    """Equal up to the roundings that another batch size may bring."""
    if not left.is_floating_point():
        return bool(torch.equal(left, right))
    scale = float(left.double().square().mean().sqrt()) if left.numel() else 0.0
    return bool(torch.allclose(left, right, 1e-3, 64 * numerics.unit(left.dtype) * scale, equal_nan=True))
