"""Candidates that do no work, judged like any other: a task that one of them passes cannot tell, and is flagged with the
reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from kernelwright.core.task import tree
from kernelwright.judge.reference.expect import Expectation
from kernelwright.judge.reference.reference import Reference

Null = Callable[[Expectation], Any]


def flags(reference: Reference, expectations: Iterable[Expectation]) -> list[str]:
    """One sentence for each null candidate that all of these trials would let pass. Trials are computed one by one, and only as
    long as a null candidate is left: most tasks need the first one or two."""
    left: dict[str, Null] = {}
    for number, expectation in enumerate(expectations):
        if number == 0:
            left = _nulls(reference, expectation)
        left = {reason: null for reason, null in left.items() if _passes(null, expectation)}
        if not left:
            break
    return [f"this task cannot tell a kernel from one that {reason}" for reason in left]


def _passes(null: Null, expectation: Expectation) -> bool:
    try:
        answer = null(expectation)
    except Exception:
        return False
    return answer is not None and expectation.accepts(answer)


def _nulls(reference: Reference, first: Expectation) -> dict[str, Null]:
    nulls: dict[str, Null] = {
        "returns zeros": lambda trial: _filled(trial, lambda tensor: torch.zeros_like(tensor)),
        "returns one constant": lambda trial: trial.rebuild(_constants(first, trial)),
        "returns uninitialised memory": lambda trial: _filled(trial, _garbage),
        "returns an input unchanged": _identity,
    }
    for dtype in (torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        nulls[f"computes in {name}"] = lambda trial, dtype=dtype: _narrow(reference, trial, dtype)  # type: ignore[misc]
    return nulls


def _filled(trial: Expectation, fill: Callable[[Any], Any]) -> Any:
    return trial.rebuild([fill(tensor) for _, tensor in trial.native])


def _constants(first: Expectation, trial: Expectation) -> list[Any]:
    """Every output filled with the mean of the right answer to the first trial, which no kernel could know."""
    answers = []
    for (_, known), (_, tensor) in zip(first.native, trial.native, strict=True):
        exact = not known.is_floating_point()
        value = 0 if not known.numel() else known.flatten()[0].item() if exact else float(known.double().mean())
        answers.append(torch.full_like(tensor, value))
    return answers


def _garbage(tensor: Any) -> Any:
    """What freshly allocated memory holds: any bits."""
    dice = torch.Generator().manual_seed(0)
    count = tensor.numel() * tensor.element_size()
    bits = torch.randint(0, 256, (count,), generator=dice, dtype=torch.uint8)
    if tensor.dtype == torch.bool:
        bits = bits % 2
    return bits.view(tensor.dtype).reshape(tensor.shape) if count else torch.zeros_like(tensor)


def _identity(trial: Expectation) -> Any:
    """Each output answered by the first input of its shape and dtype; nothing when one has none."""
    given = tree.tensors(trial.inputs)
    answers = []
    for _, tensor in trial.native:
        fitting = [item for item in given if item.shape == tensor.shape and item.dtype == tensor.dtype]
        if not fitting:
            return None
        answers.append(fitting[0])
    return trial.rebuild(answers)


def _narrow(reference: Reference, trial: Expectation, dtype: Any) -> Any:
    """The reference with everything it computes rounded to a narrower dtype. Nothing when the task is that narrow anyway. The sums inside
    an operator stay wide, as on hardware that multiplies that dtype; a CPU computes in fp32 and is 30 times faster so (2048 x 2048
    products in fp16 took 44 s)."""
    floats = [tensor for _, tensor in trial.native if tensor.is_floating_point()]
    if not floats or all(torch.finfo(tensor.dtype).eps >= torch.finfo(torch.float16).eps for tensor in floats):
        return None
    rounded = _Rounded(dtype)
    state = {name: rounded.narrow(value) for name, value in reference.model.state_dict().items()}
    inputs = tree.transform(trial.inputs, lambda tensor: rounded.narrow(tensor.clone()))
    with torch.no_grad(), rounded:
        output = torch.func.functional_call(reference.model, state, tuple(inputs))
    return trial.rebuild([item.to(want.dtype) for item, (_, want) in zip(tree.tensors(output), trial.native, strict=True)])


class _Rounded(TorchDispatchMode):  # type: ignore[misc]
    """Rounds what operators compute. Views and writes into what is there already are left alone."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self._dtype = dtype

    def narrow(self, value: Any) -> Any:
        """A tensor's values as the narrower dtype has them, in the dtype that it has."""
        if not isinstance(value, torch.Tensor) or value.dtype not in (torch.float32, torch.float64):
            return value
        return value.to(self._dtype).to(value.dtype)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(value.alias_info is not None for value in func._schema.returns):
            return result
        return tree_map(self.narrow, result)
