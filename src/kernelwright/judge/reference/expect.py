"""What must come out of one trial, and whether something is it: inputs in, an expectation; received outputs in, a finding out.

Order of the checks: structure, shape, dtype, values, inputs unchanged. A value beyond its bound (numerics.py) is excused
only where the reference itself cannot decide: the fp64 reference is run again under noise a few roundings in size, and a
place counts as undecided when its own answer moves there as far (a quantiser at a step). An index of tied values must point at a
value that the task's own precision cannot tell from the right one (choices.py), or be one that the reference gives under some
noise, unless the tie is of many. Everything else is a finding: a dictionary with
`status`, `reason` and perhaps `mismatch`.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from kernelwright.core.task import tree
from kernelwright.judge.reference import numerics, regions
from kernelwright.judge.reference.choices import Choice, Choices
from kernelwright.judge.reference.numerics import Difference, Yardstick
from kernelwright.judge.reference.reference import Reference

Finding = dict[str, Any]

EXCUSE_RUNS = 12
MOST_TIE_RUNS = 40
MANY_ANSWERS = 4
"""Different answers of the reference under noise that show a tie of more than one could enumerate."""
EXCUSE_SECONDS = 6.0
BRIEF_RUNS = 2
"""Runs under noise after which places that never moved are called settled, where only yes or no is asked."""
EXCUSE_NOISE = 8
"""Times the drift: what a kernel may do to an intermediate value before a discontinuity."""
STEP = 8
"""Times its bound that the reference must move under this noise to be called undecided: more than a smooth response."""
EXCUSABLE_SHARE = 0.02
"""Of a float output: more wrong places than this are not bad luck at a step."""


class Expectation:
    """The reference's answers for one set of inputs. Costs one native and one fp64 run; noise is run only when it matters."""

    def __init__(self, reference: Reference, inputs: list[Any], reach: int, *, label: str = "") -> None:
        self.reference = reference
        self.inputs = inputs
        self.reach = reach
        self.label = label
        output, after = reference.native_tree(inputs)
        untouched = all(_identical(*both) for both in zip(tree.tensors(inputs), tree.tensors(after), strict=True))
        self.inputs_after = inputs if untouched else after
        self._output = output
        self.named = tree.leaves(output, "output")
        self.native = [(name, leaf) for name, leaf in self.named if isinstance(leaf, torch.Tensor)]
        wide = self._wide_outputs()
        fits = wide is not None and [leaf.shape for _, leaf in wide] == [leaf.shape for _, leaf in self.native]
        self.wide: list[Any] = [leaf for _, leaf in wide] if wide is not None and fits else [leaf for _, leaf in self.native]
        self.is_wide = fits
        self._noise_runs: list[list[Any]] | None = None
        self._yardsticks: dict[int, Yardstick] = {}
        self._choices: list[Choice] | None = None

    def check(self, received: Any, inputs_after: list[Any] | None = None) -> Finding | None:
        """The first thing that is wrong with what a kernel returned, or None."""
        return self.check_outputs(received) or (None if inputs_after is None else self.check_inputs(inputs_after))

    def accepts(self, received: Any) -> bool:
        """Yes or no, in less time than it takes to say where."""
        return self.check_outputs(received, brief=True) is None

    def check_outputs(self, received: Any, *, brief: bool = False) -> Finding | None:
        """Structure, shapes, dtypes and values of the outputs. `brief` stops looking when there is no excuse left."""
        named = tree.leaves(received, "output")
        if [name for name, _ in named] != [name for name, _ in self.named]:
            return _finding(
                "wrong_shape", f"the kernel returns {_outline(named)} where the reference returns {_outline(self.named)}"
            )
        index = 0
        for (name, got), (_, want) in zip(named, self.named, strict=True):
            if not isinstance(want, torch.Tensor):
                if type(got) is not type(want) or (got != want and not _close(got, want)):
                    return _finding("wrong_values", f"{name} is {got!r}, the reference gives {want!r}")
                continue
            finding = self._check_tensor(name, got, want, index, brief)
            if finding:
                return finding
            index += 1
        return None

    def check_inputs(self, after: list[Any]) -> Finding | None:
        """An input may be written to only where the reference writes to it, and then with the same result."""
        mine, theirs, left = tree.tensors(self.inputs), tree.tensors(after), tree.tensors(self.inputs_after)
        if len(mine) != len(theirs):
            return _finding("cheating", "the kernel changed the list of its inputs")
        for index, (before, now, reference) in enumerate(zip(mine, theirs, left, strict=True)):
            if before.shape != now.shape or before.dtype != now.dtype:
                return _finding("cheating", f"the kernel changed the shape or dtype of input {index}")
            if _identical(before, now) or _identical(reference, now):
                continue
            if not _identical(before, reference) and torch.allclose(
                now.double(), reference.double(), 1e-5, 1e-6, equal_nan=True
            ):
                continue
            return _finding("cheating", f"the kernel overwrites its input {index}, which the reference leaves unchanged")
        return None

    def rebuild(self, tensors: list[Any]) -> Any:
        """A value of the reference's structure with these tensors in place of its own."""
        rest = iter(tensors)
        return tree.transform(self._output, lambda _: next(rest))

    @property
    def strictest(self) -> Expectation:
        """The part that is held against fp64: all of it here."""
        return self

    def relative_error(self) -> float:
        """Torch's own error against fp64 in roundings, relative to the output's scale: how well conditioned the trial is."""
        worst = 0.0
        for (_, own), truth in zip(self.native, self.wide, strict=True):
            if own.is_floating_point() and own.numel():
                mine, right = numerics.sample(own), numerics.sample(truth)
                finite = torch.isfinite(mine) & torch.isfinite(right)
                scale, error = float(right[finite].norm()), float((mine - right)[finite].norm())
                worst = max(worst, error / scale / numerics.unit(own.dtype) if scale else 0.0)
        return worst

    @property
    def nbytes(self) -> int:
        """Memory held, roughly: inputs, answers, and the runs under noise made so far."""
        held = [*tree.tensors(self.inputs), *self.wide, *(leaf for _, leaf in self.native)]
        held += [leaf for run in self._noise_runs or [] for leaf in run]
        return sum(int(tensor.numel() * tensor.element_size()) for tensor in held)

    def odd_shares(self) -> tuple[float, float]:
        """How much of the outputs is NaN, and how much infinite: by right in some tasks (a mask), a bad sign when it grows."""
        floats = [leaf for _, leaf in self.native if leaf.is_floating_point() and leaf.numel()]
        odd = [leaf for leaf in floats if not bool(torch.isfinite(leaf.sum()))]
        total = max(1, sum(leaf.numel() for leaf in floats))
        nan, infinite = (sum(int(test(leaf).sum()) for leaf in odd) for test in (torch.isnan, torch.isinf))
        return nan / total, infinite / total

    def _check_tensor(self, name: str, got: Any, want: Any, index: int, brief: bool) -> Finding | None:
        if not isinstance(got, torch.Tensor):
            return _finding("wrong_shape", f"{name} is a {type(got).__name__} where the reference returns a tensor")
        if got.shape != want.shape:
            reason = f"{name} has shape {list(got.shape)}, the reference's has {list(want.shape)}"
            return _finding("wrong_shape", reason)
        if got.dtype != want.dtype:
            return _finding("wrong_dtype", f"{name} has dtype {_dtype(got)}, the reference's has {_dtype(want)}")
        if got.numel() == 0:
            return None
        exact = not (want.is_floating_point() or want.is_complex())
        if exact:
            difference = numerics.compare_exact(got, want, self.wide[index])
        else:
            inexcusable = max(1, int(EXCUSABLE_SHARE * want.numel()))
            difference = self.yardstick(index).judge(got, inexcusable if brief else None)
        if difference.count:
            difference = self._excuse(difference, got, want, index, exact, brief)
        if brief and difference.count:
            return _finding("wrong_values", f"{name} is wrong")
        return self._report(name, got, self.wide[index] if not exact else want, difference) if difference.count else None

    def yardstick(self, index: int) -> Yardstick:
        """The bound of one output, made when it is first needed."""
        if index not in self._yardsticks:
            self._yardsticks[index] = self._make_yardstick(index)
        return self._yardsticks[index]

    def _make_yardstick(self, index: int) -> Yardstick:
        return Yardstick(self.native[index][1], self.wide[index], self.reach, lambda: [run[index] for run in self._noise()])

    def _wide_outputs(self) -> list[tuple[str, Any]] | None:
        return self.reference.wide(self.inputs)

    def _noise(self) -> list[list[Any]]:
        """Outputs under noise of half the drift; more runs when there are few elements to pool."""
        if self._noise_runs is None:
            smallest = min((leaf.numel() for _, leaf in self.native if leaf.is_floating_point()), default=1)
            runs = 2 if smallest >= numerics.FEW else 6
            size = numerics.drift(self._dtype(), self.reach) / 2
            found = [self.reference.wide(self.inputs, noise=size, seed=seed) for seed in range(1, runs + 1)]
            self._noise_runs = [[leaf for _, leaf in run] for run in found if run is not None and self._alike(run)]
        return self._noise_runs

    def _excuse(self, difference: Difference, got: Any, want: Any, index: int, exact: bool, brief: bool) -> Difference:
        """Take out the places that the reference itself cannot decide. `brief`: only as long as that may become of all of them."""
        if not exact and difference.count > max(1, EXCUSABLE_SHARE * want.numel()):
            return difference
        places = difference.wrong
        received = _answers(got, places, exact)
        far = torch.zeros(1) if exact else STEP * self.yardstick(index).bound()[places]
        answers = [_answers(self.wide[index], places, exact)]
        undecided = self._tied(got, index)[places] if exact else torch.zeros(received.shape, dtype=torch.bool)
        size = EXCUSE_NOISE * numerics.drift(self._dtype(), self.reach)
        started = time.monotonic()
        for seed in range(100, 100 + (MOST_TIE_RUNS if exact else EXCUSE_RUNS)):
            if bool(undecided.all()) or time.monotonic() - started > EXCUSE_SECONDS:
                break
            run = self.reference.wide(self.inputs, noise=size, seed=seed, everywhere=exact)
            if run is None or not self._alike(run):
                break
            answers.append(_answers(run[index][1], places, exact))
            undecided |= self._open_choice(received, answers) if exact else _jumps(received, answers, far)
            if brief and exact and len(answers) > BRIEF_RUNS and _mostly_settled(answers, undecided):
                break
        wrong = difference.wrong.clone()
        wrong[places] = ~undecided
        return Difference(wrong, difference.worst_error, difference.bound)

    def _tied(self, got: Any, index: int) -> Any:
        """Indices that point at values which are equal, in the task's own precision, to those that the reference chose."""
        own = self.native[index][1]
        if self._choices is None:
            with Choices() as choices:
                self.reference.native(self.inputs)
            self._choices = choices.found
        for choice in self._choices:
            same = choice.indices.numel() == own.numel() and torch.equal(choice.indices.reshape(-1), own.reshape(-1))
            tied = choice.tied(got) if same else None
            if tied is not None:
                return tied
        return torch.zeros(own.shape, dtype=torch.bool)

    def _open_choice(self, received: Any, answers: list[Any]) -> Any:
        """Indices: the reference gave this very answer in some run; or it gave so many that this may well be another one of the
        tied places, provided that it can be an index at all."""
        seen = torch.stack(answers).sort(dim=0).values
        distinct = 1 + (seen[1:] != seen[:-1]).sum(dim=0)
        longest = max((max(tensor.shape, default=1) for tensor in tree.tensors(self.inputs)), default=1)
        possible = (received >= seen[0].clamp(max=0)) & (received <= seen[-1].clamp(min=longest - 1))
        return (torch.stack(answers) == received).any(dim=0) | ((distinct >= MANY_ANSWERS) & possible)

    def _alike(self, run: list[tuple[str, Any]]) -> bool:
        return [leaf.shape for _, leaf in run] == [leaf.shape for _, leaf in self.native]

    def _dtype(self) -> Any:
        floats = [
            leaf.dtype for leaf in (*(leaf for _, leaf in self.native), *tree.tensors(self.inputs)) if leaf.is_floating_point()
        ]
        return floats[0] if floats else torch.float32

    def _report(self, name: str, got: Any, want: Any, difference: Difference) -> Finding:
        wrong = difference.wrong
        if got.is_complex():
            got, want = torch.view_as_real(got), torch.view_as_real(want)
        region = regions.describe(wrong)
        reason = (
            f"{name} is wrong in {difference.count} of {wrong.numel()} elements ({region}) on {self.label or 'these inputs'}"
        )
        return _finding(
            "wrong_values",
            reason,
            {
                "output": name,
                "wrong": difference.count,
                "total": wrong.numel(),
                "region": region,
                "worst_error": _plain(difference.worst_error),
                "bound": _plain(difference.bound),
                "samples": list(regions.samples(got, want, wrong)),
                "place": wrong.nonzero()[0].tolist(),
                "trial": self.label,
            },
        )


def _mostly_settled(answers: list[Any], undecided: Any) -> bool:
    """Whether most places that are wrong so far got one and the same answer in every run: no tie, and so no excuse to come."""
    settled = (torch.stack(answers) == answers[0]).all(dim=0) & ~undecided
    return bool(2 * int(settled.sum()) > settled.numel())


def _answers(tensor: Any, places: Any, exact: bool) -> Any:
    """The values at some places; integers as int64, since positions are compared with sizes that a narrow dtype cannot hold."""
    values = numerics.real(tensor)[places]
    return values.long() if exact else values


def _finding(status: str, reason: str, mismatch: dict[str, Any] | None = None) -> Finding:
    return {"status": status, "reason": reason, "mismatch": mismatch}


def _jumps(received: Any, answers: list[Any], far: Any) -> Any:
    """Where the last run under noise is at least half as far from the truth as what was received, and farther than a smooth
    response to that noise would be."""
    truth, other = answers[0].double(), answers[-1].double()
    moved, off = (other - truth).abs(), (received.double() - truth).abs()
    return ~torch.isfinite(moved) | ((2 * moved >= off) & (moved > far))


def _identical(left: Any, right: Any) -> bool:
    """Equal as far as values go: NaN equals NaN."""
    if torch.equal(left, right):
        return True
    if left.is_floating_point() or left.is_complex():
        return bool(((left == right) | ((left != left) & (right != right))).all())
    return False


def _close(got: Any, want: Any) -> bool:
    return isinstance(got, float) and isinstance(want, float) and abs(got - want) <= 1e-5 * abs(want)


def _plain(value: Any) -> float | None:
    number = float(value)
    return number if number == number and abs(number) != float("inf") else None


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _outline(named: list[tuple[str, Any]]) -> str:
    if len(named) == 1 and named[0][0] == "output":
        return "one tensor" if isinstance(named[0][1], torch.Tensor) else f"a {type(named[0][1]).__name__}"
    return f"{len(named)} values ({', '.join(name for name, _ in named[:6])}{' …' if len(named) > 6 else ''})"
