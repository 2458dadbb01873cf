"""CUDA-C kernels written in the ways people write them, lifted: the sketch computes what the task's reference computes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from kernelwright.compiler.lift import Lifted, lift
from kernelwright.core.errors import CannotLift
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.sketch.interpret.compare import compare

FOLDER = Path(__file__).parent / "kernels"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.py"))]
QUICK = {"softmax_shuffle"}
"""The others take part in `make test-all`; each lift starts a process and a compiler."""


def reference(path: Path) -> str:
    """The task of a file: everything but the extension and ModelNew."""
    head, _, rest = path.read_text().partition("class ModelNew")
    model = head[head.index("class Model(") :]
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
        + model
        + rest[rest.index("def get_inputs") :]
    )


def task(name: str) -> Task:
    return Task.from_source(reference(FOLDER / f"{name}.py"), path=f"{name}.py")


@cache
def reading(name: str) -> Lifted:
    return lift((FOLDER / f"{name}.py").read_text(), "cuda_c", task(name), path=f"{name}.py")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES])
def test_the_lifted_sketch_computes_the_reference(name: str) -> None:
    loaded = load_task(task(name))
    result = compare(reading(name).sketch, loaded.construct(3), loaded.draw(5)[0])
    assert result.agrees, result.reason


@pytest.mark.slow
def test_a_product_of_shared_tiles_is_a_product_again() -> None:
    assert "Gemm" in repr(reading("matmul_tiled").sketch)


@pytest.mark.slow
def test_inputs_given_as_text_take_the_place_of_a_task() -> None:
    text = (FOLDER / "relu_float4.py").read_text()
    found = lift(text, "cuda_c", inputs="f32[5,7]", path="relu_float4.py")
    (given,) = [tensor for tensor in found.sketch.tensors if tensor.role == "input"]
    assert "[5, 7]" in str([getattr(extent, "value", extent) for extent in given.shape])


def test_a_loop_that_ends_by_data_is_refused_with_the_line_of_the_file() -> None:
    text = (FOLDER / "sum_middle_axis.py").read_text()
    changed = text.replace("for (int i = 0; i < D1; ++i) {", "for (int i = 0; acc < 3.f && i < D1; ++i) {")
    assert changed != text
    with pytest.raises(CannotLift, match="depends on data") as caught:
        lift(changed, "cuda_c", task("sum_middle_axis"), path="sum.py")
    assert "acc < 3.f" in changed.splitlines()[caught.value.line - 1]
    assert str(caught.value).startswith(f"sum.py:{caught.value.line}: ")


@pytest.mark.slow
def test_a_forward_that_looks_at_numbers_in_cpp_is_refused() -> None:
    text = (FOLDER / "relu_float4.py").read_text()
    changed = text.replace("int n = x.numel();", "int n = x.numel() - (x.max().item<float>() > 1e30f ? 1 : 0);")
    assert changed != text
    with pytest.raises(CannotLift, match="looks at the numbers"):
        lift(changed, "cuda_c", task("relu_float4"), path="relu.py")


STRANGERS = Path(__file__).parents[2] / "backends/foreign/cuda_c"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", sorted(STRANGERS.glob("*.py")), ids=lambda path: path.stem)
def test_files_of_strangers_are_lifted_right_or_refused_with_their_line(path: Path) -> None:
    found: Lifted | CannotLift
    try:
        found = lift(path.read_text(), "cuda_c", path=path.name, seconds=500)
    except CannotLift as refusal:
        found = refusal
    if isinstance(found, CannotLift):
        assert found.line > 0, found.reason
        return
    loaded = load_task(Task.from_source(reference(path), path=path.name))
    result = compare(found.sketch, loaded.construct(3), loaded.draw(5)[0])
    assert result.agrees, result.reason
