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
from collections.abc import Iterator
from typing import Any

import torch

from kernelwright.core.errors import TaskError
from kernelwright.core.task import tree
from kernelwright.judge.reference import numerics, regions
from kernelwright.judge.reference.choices import RETIED, Choice, Choices, Retied
from kernelwright.judge.reference.numerics import Difference, Yardstick
from kernelwright.judge.reference.reference import Reference
from kernelwright.judge.reference.systematic import habit

Finding = dict[str, Any]

EXCUSE_RUNS = 12
CANCELLED_RUNS = 3
MOST_TIE_RUNS = 40
FEW_MOVED, MORE_MOVED = 4, 3
"""Places of an integer output that may differ: a few, and so many times those that torch's own arithmetic moves on this input."""
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
        self._output = output = reference.native_tree(inputs)[0]
        self.named = tree.leaves(output, "output")
        self.native = [(name, leaf) for name, leaf in self.named if isinstance(leaf, torch.Tensor)]
        wide = self._wide_outputs()
        fits = wide is not None and [leaf.shape for _, leaf in wide] == [leaf.shape for _, leaf in self.native]
        self.wide: list[Any] = [leaf for _, leaf in wide] if wide is not None and fits else [leaf for _, leaf in self.native]
        self.is_wide = fits
        self._noise_runs: list[list[Any]] | None = None
        self._yardsticks: dict[int, Yardstick] = {}
        self._choices: list[Choice] | None = None
        self._slack: list[Any] = []
        self.ordinary = False
        """Whether the inputs are such that honest roundings have no direction: those that the task draws, or normal ones."""

    def check(
        self, received: Any, inputs_after: list[Any] | None = None, part: tuple[int, int] | None = None
    ) -> Finding | None:
        """The first thing that is wrong with what a kernel returned, or None."""
        return self.check_outputs(received) or (None if inputs_after is None else self.check_inputs(inputs_after, part))

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

    def check_inputs(self, after: list[Any], part: tuple[int, int] | None = None) -> Finding | None:
        """An input may be written to only where the reference writes to it, and then with the same result. `part`: only these rows of it,
        where a task has rows (rows.py)."""
        return self._unchanged(self.inputs, after)

    def _unchanged(self, inputs: list[Any], after: list[Any]) -> Finding | None:
        mine, theirs = tree.tensors(inputs), tree.tensors(after)
        if len(mine) != len(theirs):
            return _finding("cheating", "the kernel changed the list of its inputs")
        left: list[Any] = []
        for index, (before, now) in enumerate(zip(mine, theirs, strict=True)):
            if before.shape != now.shape or before.dtype != now.dtype:
                return _finding("cheating", f"the kernel changed the shape or dtype of input {index}")
            if _identical(before, now):
                continue
            left = left or tree.tensors(self.reference.native_tree(inputs)[1])
            reference = left[index]
            if _identical(reference, now):
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

    def _batch_shaped(self, received: Any, batch: int) -> Finding | None:
        """What is wrong with the structure and the shapes of an answer for so many rows."""
        named = tree.leaves(received, "output")
        if [name for name, _ in named] != [name for name, _ in self.named]:
            return _finding(
                "wrong_shape", f"the kernel returns {_outline(named)} where the reference returns {_outline(self.named)}"
            )
        for (name, got), (_, want) in zip(named, self.named, strict=True):
            if isinstance(want, torch.Tensor):
                if not isinstance(got, torch.Tensor):
                    return _finding("wrong_shape", f"{name} is a {type(got).__name__} where the reference returns a tensor")
                if tuple(got.shape) != (batch, *want.shape[1:]):
                    shape = [batch, *want.shape[1:]]
                    return _finding("wrong_shape", f"{name} has shape {list(got.shape)}, the reference's has {shape}")
        return None

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
        if not difference.count and self.ordinary and self.is_wide and not exact:
            said = habit(got, want, self.wide[index], self.reach)
            if said:
                return _finding("wrong_values", f"{name} is within its bounds on {self.label or 'these inputs'}, but {said}")
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
        if exact:
            return self._excuse_exact(difference, got, index, brief)
        difference = self._without_cancelled(difference, got, index)
        if difference.count > max(1, EXCUSABLE_SHARE * want.numel()):
            return self._as_other_ties(difference, got, index)
        places = difference.wrong
        received = _answers(got, places, exact)
        far = STEP * self.yardstick(index).bound()[places]
        answers = [_answers(self.wide[index], places, exact)]
        undecided = torch.zeros(received.shape, dtype=torch.bool)
        for run in self._excuse_runs(EXCUSE_RUNS, everywhere=False):
            answers.append(_answers(run[index][1], places, exact))
            undecided |= _jumps(received, answers, far)
            if bool(undecided.all()):
                break
        wrong = difference.wrong.clone()
        wrong[places] = ~undecided
        left = self._as_other_ties(Difference(wrong, difference.worst_error, difference.bound), got, index)
        return self._as_torch_itself(left, got, index)

    def _without_cancelled(self, difference: Difference, got: Any, index: int) -> Difference:
        """Without the places where the truth is zero because terms cancel (`x.square() - x * x`), or vanish beside others in fp64
        itself (`1 + tanh(x)` far below zero): there an honest kernel shows its roundings, and has as much as roundings make of it."""
        got, truth = numerics.real(got), numerics.real(self.wide[index])
        places = difference.wrong & (truth == 0) & torch.isfinite(got)
        if not self.is_wide or not bool(places.any()):
            return difference
        reals = [t for t in tree.tensors(self.inputs) if t.is_floating_point() and t.numel()]
        largest = max((float(torch.nan_to_num(t, 0.0, 0.0, 0.0).abs().max()) for t in reals), default=0.0)
        most = torch.full(truth.shape, torch.finfo(torch.float64).eps * largest, dtype=torch.float64)
        for seed in range(1, CANCELLED_RUNS + 1):
            size = numerics.drift(self._dtype(), self.reach)
            run = self.reference.wide(self.inputs, noise=size, seed=seed, within=True)
            if run is not None and self._alike(run):
                made = numerics.real(run[index][1]).double().abs()
                most = torch.maximum(most, torch.where(torch.isfinite(made), made * EXCUSE_NOISE, 0.0))
        wrong = difference.wrong & ~(places & (got.double().abs() <= most))
        return Difference(wrong, difference.worst_error, difference.bound)

    def _excuse_exact(self, difference: Difference, got: Any, index: int, brief: bool) -> Difference:
        """Integers. A choice is right if what it points at is as good; anything else (counts, bins, draws) must be an answer that the
        reference gives under noise of the size of its own roundings, or lie between such answers, and not in more places than torch's
        own arithmetic moves on this input."""
        places, wide = difference.wrong, self.wide[index]
        tied, choosing = self._tied(got, index)
        undecided = tied[places]
        received = _answers(got, places, True)
        answers = [_answers(wide, places, True), _answers(self.native[index][1], places, True)]
        most = int((self.native[index][1] != wide).sum()) if self.is_wide else 0
        for number, run in enumerate(self._excuse_runs(MOST_TIE_RUNS, everywhere=choosing)):
            if bool(undecided.all()) and (choosing or difference.count <= FEW_MOVED + MORE_MOVED * most):
                break
            answers.append(_answers(run[index][1], places, True))
            most = max(most, int((run[index][1] != wide).sum()))
            stack = torch.stack(answers)
            fits = (stack == received).any(0) if choosing else (received >= stack.amin(0)) & (received <= stack.amax(0))
            undecided |= fits
            if brief and number > BRIEF_RUNS and _mostly_settled(answers[2:], undecided):
                break
        if not choosing and difference.count > FEW_MOVED + MORE_MOVED * most:
            return difference
        wrong = difference.wrong.clone()
        wrong[places] = ~undecided
        return self._as_other_ties(Difference(wrong, difference.worst_error, difference.bound), got, index)

    def _excuse_runs(self, most: int, *, everywhere: bool) -> Iterator[list[tuple[str, Any]]]:
        """The reference under noise that a kernel may make in an intermediate value, as long as there is time."""
        size = EXCUSE_NOISE * numerics.drift(self._dtype(), self.reach)
        started = time.monotonic()
        for seed in range(100, 100 + most):
            run = self.reference.wide(self.inputs, noise=size, seed=seed, everywhere=everywhere)
            if run is None or not self._alike(run) or time.monotonic() - started > EXCUSE_SECONDS:
                return
            yield run

    def _as_other_ties(self, difference: Difference, got: Any, index: int) -> Difference:
        """Without the places where the reference gives what was received once equals change places that torch promises no order for."""
        if not difference.count or (self._choices is not None and not self._choices):
            return difference
        wrong = difference.wrong.clone()
        mine = numerics.real(got)
        exact = not mine.is_floating_point()
        for kind in range(RETIED):
            with Retied(kind) as mode:
                try:
                    run = self.reference.native(self.inputs)
                except TaskError:
                    return difference
            if not mode.ties or not self._alike(run):
                break
            other = numerics.real(run[index][1])
            if exact:
                wrong &= mine != other
            else:
                near = 2 * numerics.RELATIVE * numerics.unit(other.dtype) * other.double().abs()
                wrong &= ~((mine.double() - other.double()).abs() <= near)
            if not bool(wrong.any()):
                break
        return Difference(wrong, difference.worst_error, difference.bound)

    def _as_torch_itself(self, difference: Difference, got: Any, index: int) -> Difference:
        """Nothing wrong, where torch's own result is beyond the bound in more places, and farther."""
        if not difference.count or not self.is_wide:
            return difference
        own, truth = (numerics.real(side).double() for side in (self.native[index][1], self.wide[index]))
        bound = self.yardstick(index).bound()
        theirs = ((own - truth).abs() / bound).nan_to_num(0.0, 0.0, 0.0)
        mine = ((numerics.real(got).double() - truth).abs() / bound)[difference.wrong]
        beyond = int((theirs > 1).sum())
        if difference.count <= beyond and bool((mine <= 2 * theirs.max()).all()):
            return Difference(torch.zeros_like(difference.wrong), difference.worst_error, difference.bound)
        return difference

    def _tied(self, got: Any, index: int) -> tuple[Any, bool]:
        """Indices that point at values which are equal, as far as torch's own values are right, to those that the reference chose; and
        whether this output is a choice at all."""
        own = self.native[index][1]
        if self._choices is None:
            with Choices() as choices:
                self.reference.native(self.inputs)
            with Choices() as wide:
                self.reference.wide(self.inputs)
            self._choices = choices.found
            fits = [one.source.shape for one in wide.found] == [one.source.shape for one in choices.found]
            self._slack = [_own_error(*both) for both in zip(choices.found, wide.found, strict=True)] if fits else []
        for number, choice in enumerate(self._choices):
            same = choice.indices.numel() == own.numel() and torch.equal(choice.indices.reshape(-1), own.reshape(-1))
            tied = choice.tied(got, self._slack[number] if self._slack else 0.0) if same else None
            if tied is not None:
                return tied, True
        return torch.zeros(own.shape, dtype=torch.bool), False

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
                "heat": regions.heat(wrong),
            },
        )


def _mostly_settled(answers: list[Any], undecided: Any) -> bool:
    """Whether most places that are wrong so far got one and the same answer in every run: no tie, and so no excuse to come."""
    settled = (torch.stack(answers) == answers[0]).all(dim=0) & ~undecided
    return bool(2 * int(settled.sum()) > settled.numel())


def _own_error(native: Choice, wide: Choice) -> Any:
    """How far torch's values are off where it chooses, along each line of candidates: a choice among such is open."""
    if not native.source.is_floating_point():
        return 0.0
    off = (native.source.detach().double() - wide.source.detach().double()).abs()
    off = torch.where(torch.isfinite(off), off, 0.0)
    return numerics.SAFETY * off.square().mean(native.dim, keepdim=True).sqrt()


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
