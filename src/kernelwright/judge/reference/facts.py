"""The first run of a reference: what goes in and comes out, how long it takes, what it has to move and compute.

In: a reference and a seed. Out: the facts that the plan, the clock and the roofline work with, as one dictionary that can travel;
or a TaskError for a task that cannot be judged at all (random, nothing but NaN).
"""

from __future__ import annotations

import time
from typing import Any

import torch

from kernelwright.core.errors import TaskError
from kernelwright.core.task import tree
from kernelwright.judge.reference import numerics
from kernelwright.judge.reference.reference import Reference
from kernelwright.judge.reference.rows import Rows, find_rows

TICKS = 0.05
"""Seconds of processor time from which they can be trusted."""
LONG = 0.5
"""Seconds of a call that need not be measured again: a network of several seconds is run no more often than the facts need."""


def first_run(reference: Reference, seed: int, workloads: list[list[Any]]) -> tuple[dict[str, Any], float, Rows | None]:
    """The facts, how much of the output is NaN on the task's own inputs (`workloads`, drawn under `seed`), and its rows."""
    task = reference.loaded.task
    for inputs in workloads[1:]:
        reference.native(inputs)
    outputs, work = reference.measured(workloads[0])
    started = _Elapsed()
    returned, given_away = reference.native_tree(workloads[0])
    seconds = started.seconds()
    again = [(name, leaf) for name, leaf in tree.leaves(returned, "output") if isinstance(leaf, torch.Tensor)]
    if any(not _same(one, two) for (_, one), (_, two) in zip(outputs, again, strict=True)):
        raise TaskError(task.path, "forward is random: two runs on the same inputs differ")
    nan_share = _nan_share(outputs)
    if nan_share == 1.0:
        raise TaskError(task.path, "the reference returns nothing but NaN on its own inputs")
    state = reference.model.state_dict()
    aliases = _aliases(returned, given_away)
    del returned, given_away, again  # a large task's outputs are not held twice while the rest is found out
    given = tree.tensors(workloads[0])
    floats = [tensor for _, tensor in outputs if tensor.is_floating_point()] or [t for t in given if t.is_floating_point()]
    facts: dict[str, Any] = {
        "task": task.name,
        "hash": task.hash,
        "inputs": tree.describe(workloads[0]),
        "outputs": tree.describe([tensor for _, tensor in outputs]),
        "shapes": len(workloads),
        "parameters": sum(value.numel() for value in reference.model.parameters()),
        "input_bytes": _bytes(given),
        "output_bytes": _bytes([tensor for _, tensor in outputs]),
        "parameter_bytes": _bytes(list(state.values())),
        "flops": work.flops,
        "least_flops": round(work.least_flops),
        "longest_reduction": work.reach,
        "operators": sorted(work.operators),
        "dtype": str(floats[0].dtype).removeprefix("torch.") if floats else "int64",
        "eager_seconds": seconds,
        "state": {name: list(value.shape) for name, value in state.items()},
        "seed": seed,
        "aliases_inputs": aliases,
    }
    answers = [tensor for _, tensor in outputs]
    del outputs, floats
    if seconds <= LONG:
        facts["eager_seconds"] = eager_seconds(reference, workloads[0])
    size = facts["input_bytes"] + facts["output_bytes"]
    rows = None if aliases else find_rows(reference, workloads[0], answers, facts["eager_seconds"], size)
    facts["rows"] = None if rows is None else {"batch": rows.batch, "block": rows.block, "carried": list(rows.carried)}
    return facts, nan_share, rows


class _Elapsed:
    """Seconds since it was made: on the wall, or of the process's threads where that is less. On a busy machine waiting is most of the time
    on the wall, and what is planned by it would be that hour's. Processor time comes in ticks of some milliseconds: of a short call it says
    nothing, not even that it was more than nothing."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        wall, processor = time.perf_counter() - self._wall, time.process_time() - self._processor
        return min(wall, processor) if processor >= TICKS else wall


def _aliases(output: Any, inputs: list[Any]) -> bool:
    """Whether the reference returned (a view of) an input: then a kernel may do so too."""
    places = {tensor.untyped_storage().data_ptr() for tensor in tree.tensors(inputs)}
    return any(tensor.numel() and tensor.untyped_storage().data_ptr() in places for tensor in tree.tensors(output))


def eager_seconds(reference: Reference, inputs: list[Any]) -> float:
    """Best of a few calls: a rough figure for planning, not a measurement."""
    best, spent = float("inf"), 0.0
    for _ in range(5):
        copies = tree.transform(inputs, lambda tensor: tensor.clone())
        started = _Elapsed()
        reference.loaded.forward(reference.model, copies)
        best = min(best, started.seconds())
        spent += started.seconds()
        if spent > LONG:
            break
    return best


def _same(left: Any, right: Any) -> bool:
    """Equal but for roundings: libraries may add up in another order when memory is aligned otherwise."""
    if left.shape != right.shape or torch.equal(left, right):
        return bool(left.shape == right.shape)
    if not left.is_floating_point():
        return float((left != right).double().mean()) <= 0.01
    apart = size = 0.0
    with numerics.one_thread():
        for piece in numerics.pieces(left.shape):
            one, two = (side[piece].double().nan_to_num(0.0, 0.0, 0.0) for side in (left, right))
            apart += float((one - two).square().sum())
            size += float(one.square().sum())
    return apart <= 1e-4 * size


def _nan_share(outputs: list[tuple[str, Any]]) -> float:
    floats = [tensor for _, tensor in outputs if tensor.is_floating_point() and tensor.numel()]
    total = sum(tensor.numel() for tensor in floats)
    return sum(int(torch.isnan(tensor).sum()) for tensor in floats) / total if total else 0.0


def _bytes(tensors: list[Any]) -> int:
    return int(sum(tensor.numel() * tensor.element_size() for tensor in tensors))
