"""A sketch against its reference: the interpreter's result beside torch's own, in one number.

In: a sketch, a live module and its inputs. Out: a `Comparison`. This is the designer's self-check (is the *design* right?), not a
verdict: the judge alone decides about kernels.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.interpret import interpreter

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Greatest error that is taken for rounding, as a fraction of the largest expected magnitude; integers must be equal."""


@dataclass(frozen=True)
class Comparison:
    """Whether the results agree, the largest error (relative to the largest expected value), and what differs."""

    agrees: bool
    error: float
    reason: str
    seconds: float


def compare(sketch: nodes.Sketch, model: torch.nn.Module, arguments: Sequence[Any], *, strict: bool = True) -> Comparison:
    """Runs the module and the sketch on the same inputs. A fault while the sketch runs (a race, a read of unwritten memory, a
    load outside) is a result too, not an exception."""
    with torch.no_grad():
        wanted = model(*pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, list(arguments)))
    started = time.monotonic()
    try:
        found = interpreter.call(sketch, pytree.tree_leaves(list(arguments)), model.state_dict(keep_vars=False), strict=strict)
    except SketchError as error:
        return Comparison(False, float("inf"), str(error), time.monotonic() - started)
    seconds = time.monotonic() - started
    wanted_leaves, wanted_tree = pytree.tree_flatten(wanted)
    found_leaves, found_tree = pytree.tree_flatten(found)
    if len(wanted_leaves) != len(found_leaves) or (str(wanted_tree) != str(found_tree)):
        return Comparison(False, float("inf"), "the returned structure differs", seconds)
    worst = 0.0
    for number, (want, got) in enumerate(zip(wanted_leaves, found_leaves, strict=True)):
        distance, reason = difference(want, got)
        worst = max(worst, distance)
        if reason:
            return Comparison(False, worst, f"output {number}: {reason}", seconds)
    return Comparison(True, worst, "", seconds)


def difference(want: Any, got: Any) -> tuple[float, str]:
    """The error of one output, and why it is too much."""
    if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
        return (0.0, "") if want == got else (float("inf"), f"{got} instead of {want}")
    if want.shape != got.shape or want.dtype != got.dtype:
        return float("inf"), f"{list(got.shape)} {got.dtype} instead of {list(want.shape)} {want.dtype}"
    if not want.numel():
        return 0.0, ""
    if not want.is_floating_point():
        wrong = int((want != got).sum())
        return (float("inf"), f"{wrong} elements differ") if wrong else (0.0, "")
    a, b = want.double(), got.double()
    if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
        return float("inf"), "NaN or infinity where the reference has none, or none where it has"
    finite = a.isfinite()
    if not torch.equal(a[~finite & ~a.isnan()], b[~finite & ~a.isnan()]):
        return float("inf"), "infinities of the wrong sign"
    if not bool(finite.any()):
        return 0.0, ""
    error = float((a - b)[finite].abs().max() / a[finite].abs().max().clamp_min(1e-30))
    return error, "" if error <= TOLERANCE[want.dtype] else f"the largest error is {error:.2g} of the largest value"
