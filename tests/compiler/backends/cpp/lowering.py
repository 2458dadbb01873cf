"""Lower, build, run, compare with the interpreter: the one question all tests of the C++ coder ask."""

from __future__ import annotations

import types
from typing import Any

import torch

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.interpret.operations import TORCH_DTYPE


def built(sketch: nodes.Sketch, state: Any = ()) -> types.ModuleType:
    """The kernel file of a sketch as a loaded module."""
    module = types.ModuleType("kernel_under_test")
    exec(compile(lower(sketch, state=state), "kernel_under_test.py", "exec"), module.__dict__)
    return module


def arguments(sketch: nodes.Sketch, seed: int = 0) -> list[torch.Tensor]:
    """Random inputs in the order forward takes them; integers are small, so that they can index."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    inputs = sorted((t for t in sketch.tensors if t.role == "input"), key=lambda t: int(t.source))
    result = []
    for tensor in inputs:
        shape = [int(evaluate(i, sizes)) for i in tensor.shape]
        dtype = TORCH_DTYPE[tensor.dtype]
        if dtype.is_floating_point:
            result.append(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype))
        else:
            result.append(torch.randint(0, 2 if dtype == torch.bool else 4, shape, generator=generator).to(dtype))
    return result


def assert_same(got: Any, wanted: Any, *, rtol: float | None = None, atol: float | None = None) -> None:
    if isinstance(wanted, tuple | list):
        assert type(got) is type(wanted)
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            assert_same(g, w, rtol=rtol, atol=atol)
        return
    loose = {"rtol": rtol, "atol": atol} if rtol is not None else {}
    torch.testing.assert_close(got, wanted, equal_nan=True, **loose)


def check(sketch: nodes.Sketch, inputs: list[torch.Tensor] | None = None, **tolerance: float) -> types.ModuleType:
    """The kernel gives what the interpreter gives; called twice, to see that nothing is left over from the first call."""
    module = built(sketch)
    model = module.ModelNew()
    inputs = arguments(sketch) if inputs is None else inputs
    state = {}
    generator = torch.Generator().manual_seed(7)
    for name, tensor in model.state_dict().items():
        state[name] = torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype)
    model.load_state_dict(state)
    wanted = interpreter.call(sketch, [x.clone() for x in inputs], state)
    before = [x.clone() for x in inputs]
    assert_same(model(*inputs), wanted, **tolerance)
    assert_same(model(*inputs), wanted, **tolerance)
    assert_same(tuple(inputs), tuple(before))
    return module
