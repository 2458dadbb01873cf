"""TileLang kernels written in the ways people write them: lifted, checked, and run in the interpreter against their references; some are
lowered to C++ and judged; and what is refused, with its line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.compiler.language import language
from kernelwright.compiler.lift import lift
from kernelwright.core.errors import CannotLift
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.judge import Judge
from kernelwright.run.drafts import state_of
from kernelwright.sketch.interpret.compare import compare

HERE = Path(__file__).parent
QUICK = {"matmul_bias_relu"}
"""The others take part in `make test-all`; each lift starts a process with torch and TileLang in it."""
NAMES = sorted(path.stem for path in (HERE / "kernels").glob("*.py"))


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES])
def test_lifted_sketch_agrees_with_the_reference(name: str) -> None:
    path = HERE / "kernels" / f"{name}.py"
    task = Task.from_path(HERE / "tasks" / f"{name}.py")
    lifted = lift(path.read_text(), "tilelang", task, path=str(path))
    loaded = load_task(task)
    found = compare(lifted.sketch, loaded.construct(0), loaded.draw(3)[0])
    assert found.agrees, found.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_lowered_to_cpp_it_is_correct(name: str) -> None:
    path = HERE / "kernels" / f"{name}.py"
    task = Task.from_path(HERE / "tasks" / f"{name}.py")
    lifted = lift(path.read_text(), "tilelang", task, path=str(path))
    kernel = language("cpp").lower(lifted.sketch, state=state_of(load_task(task)))
    with Judge(threads=1) as judge:
        verdict = judge.verify(task, kernel, timing=False)
    assert verdict.status.value == "correct", verdict.reason


BLOCK = """import tilelang
import tilelang.language as T
import torch

def get_inputs():
    return [torch.randn(64, 32)]

@tilelang.jit(out_idx=[1])
def make():
    @T.prim_func
    def main(X: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")):
        with T.Kernel(4, threads=32) as bx:
            s = T.alloc_shared((16, 32), "float32")
            r = T.alloc_fragment((16,), "float32")
            T.copy(X[bx * 16, 0], s)
BODY
            T.copy(s, Y[bx * 16, 0])
    return main

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return make()(x)
"""
REFUSED = {
    "a race": ("for i, j in T.Parallel(16, 32):\n    r[i] = s[i, j]", "write one place of r", 17),
    "a loop over data": ("T.reduce_max(s, r, dim=1)\nfor k in T.serial(T.cast(r[0], 'int32')):\n    s[k, 0] = 0.0",
                         "bounds come from data", 17),
    "threads by number": ("tx = T.get_thread_binding(0)\ns[0, tx] = 0.0", "counts its threads", 17),
    "a while loop": ("T.reduce_max(s, r, dim=1)\nwhile r[0] > 1.0:\n    r[0] = r[0] * 0.5", "a while loop", 17),
    "the caller's tensor": ("T.copy(s, X[bx * 16, 0])", "belongs to the caller", 16),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "a race" else pytest.mark.slow) for n in REFUSED])
def test_refused_with_line_and_reason(name: str) -> None:
    body, reason, line = REFUSED[name]
    indented = "\n".join(" " * 12 + each for each in body.splitlines())
    with pytest.raises(CannotLift, match=reason) as refusal:
        lift(BLOCK.replace("BODY", indented), "tilelang", path="foreign.py")
    assert refusal.value.line == line, refusal.value
