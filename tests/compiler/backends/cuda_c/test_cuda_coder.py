"""The CUDA-C coder: every example of docs/sketch.md, lowered and executed as compiled, gives what the sketch's interpreter gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.compiler.backends.cuda_c import kernel
from kernelwright.compiler.backends.cuda_c.emit import lower
from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.parse import parse
from tests.compiler.backends.cuda_c.machine import call, library, needs_nvcc

PAGE = (Path(__file__).parents[4] / "docs" / "sketch.md").read_text()
EXAMPLES = {sketch.name: sketch for sketch in map(parse, re.findall(r"```python\n(.*?)```", PAGE, re.S))}
MORE = """
name = "scan_and_sort"
x = tensor([6, 70], f32, role="input", source="0")
sums = tensor([6, 70], f32, role="output")
columns = tensor([6, 70], f32, role="output")
order = tensor([6, 70], i64, role="output")
best = tensor([6], i64, role="output")

@kernel
def rows():
    for i in parallel(0, 6):
        row = load(x[i, 0:70])
        store(sums[i, 0:70], scan_sum(row, axis=0, reverse=True))
        store(order[i, 0:70], arg_sort(row, axis=0, descending=True))
        store(best[i:i + 1], arg_max(row, axis=0))

@kernel
def down():
    tile = load(x[:, :])
    store(columns[:, :], scan_max(tile, axis=0))

returns(("sums", "columns", "order", "best"))
"""

HALVES = """
name = "half_linear"
a = tensor([70, 50], f16, role="input", source="0")
b = tensor([50, 90], f16, role="input", source="1")
y = tensor([70, 90], f32, role="output")

@kernel
def product():
    for i in parallel(0, 70, 70):
        acc = full([70, 90], 0.5, f32, level="accumulator")
        for k in range(0, 50, 25):
            acc = gemm(load(a[i:i + 70, k:k + 25]), load(b[k:k + 25, :]), acc)
        store(y[i:i + 70, :], maximum(acc, 0.0))

returns("y")
"""

KEPT = """
name = "kept"
x = tensor([5, 300], f32, role="input", source="0")
ids = tensor([32], i64, role="input", source="1")
w = tensor([40, 48], f32, role="input", source="2")
scale = tensor([5], f32, role="output")
y = tensor([5, 300], f32, role="output")
z = tensor([40, 32], f32, role="output")

@kernel
def beside():
    for i in parallel(0, 5):
        total = full([128], 0.0, f32)
        for k in range(0, 300, 128):
            total = total + load(x[i, k:k + 128], pad=0.0)
        s = 1.0 / (1.0 + abs(squeeze(reduce_sum(total, axis=0), axis=0)))
        store(scale[i], s)
        for k in range(0, 300, 128):
            store(y[i, k:k + 128], load(x[i, k:k + 128], pad=0.0) * reshape(s, [1]))

@kernel
def picked():
    for i in parallel(0, 40, 8):
        at = load(ids[0:32])
        acc = full([8, 32], 0.0, f32, level="accumulator")
        for k in range(0, 48, 16):
            acc = gemm(load(w[i:i + 8, k:k + 16]), permute(load(w[pick(at), k:k + 16]), [1, 0]), acc)
        store(z[i:i + 8, 0:32], acc)

returns(("scale", "y", "z"))
"""

TURNED = """
name = "turned"
w = tensor([40, 92], f32, role="input", source="0")
y = tensor([92, 40], f32, role="output")

@kernel
def turn():
    for k in parallel(0, 92, 46):
        store(y[k:k + 46, 0:40], permute(load(w[0:40, k:k + 46], pad=0.0), [1, 0]))

returns("y")
"""

pytestmark = needs_nvcc


def _tensors(sketch: nodes.Sketch) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    dtypes: dict[str, Any] = {"f32": torch.float32, "f16": torch.float16, "i64": torch.int64, "bf16": torch.bfloat16}
    found = {}
    for tensor in sketch.tensors:
        shape = [int(evaluate(extent, sizes)) for extent in tensor.shape]
        dtype = dtypes[str(tensor.dtype)]
        if tensor.role in ("input", "param"):
            found[tensor.name] = torch.randint(0, 20, shape) if dtype is torch.int64 else torch.randn(shape).to(dtype)
        elif tensor.role in ("output", "temp"):
            fill = -1 if dtype is torch.int64 else float("nan")
            found[tensor.name] = torch.full(shape, fill, dtype=dtype)
    return found


def _run(sketch: nodes.Sketch, folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Outputs as compiled, and by the interpreter."""
    built = kernel.source(sketch)
    tensors = _tensors(sketch)
    given = {t.name: tensors[t.name].clone() for t in sketch.tensors if t.role in ("input", "param")}
    opened = library(built.text, folder)
    for step in built.steps:
        assert isinstance(step, kernel.Entry)
        call(opened[step.name], *(tensors[name] for name in step.tensors))
    return tensors, interpreter.run(sketch, given)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples(name: str, tmp_path: Path) -> None:
    sketch = EXAMPLES[name]
    if any(size.dynamic for size in sketch.sizes):
        pytest.skip("sizes at run time are for another test")
    found, wanted = _run(sketch, tmp_path)
    for output, value in wanted.items():
        torch.testing.assert_close(found[output], value, rtol=1e-4, atol=1e-5)


def test_scans_and_sorts(tmp_path: Path) -> None:
    found, wanted = _run(parse(MORE), tmp_path)
    for output, value in wanted.items():
        torch.testing.assert_close(found[output], value, rtol=1e-4, atol=1e-5)


def test_numbers_kept_beside_a_write_and_sums_that_begin_at_zero(tmp_path: Path) -> None:
    found, wanted = _run(parse(KEPT), tmp_path)
    for output, value in wanted.items():
        torch.testing.assert_close(found[output], value, rtol=1e-4, atol=1e-4)


def test_tiles_are_turned_in_shared_memory(tmp_path: Path) -> None:
    found, wanted = _run(parse(TURNED), tmp_path)
    torch.testing.assert_close(found["y"], wanted["y"], rtol=0, atol=0)


def test_products_are_blocked_in_registers() -> None:
    text = kernel.source(EXAMPLES["linear_relu"]).text
    assert "__shared__ float left[" in text
    assert "sum[i][j] += x[i] * y[j]" in text


def test_half_products_use_tensor_cores(tmp_path: Path) -> None:
    sketch = parse(HALVES)
    assert "wmma::mma_sync" in kernel.source(sketch).text
    found, wanted = _run(sketch, tmp_path)
    torch.testing.assert_close(found["y"], wanted["y"], rtol=1e-3, atol=1e-3)


def test_rows_are_reduced_by_shuffles() -> None:
    assert "swap_lanes(" in kernel.source(EXAMPLES["layernorm"]).text


def test_the_file_stands_alone() -> None:
    text = lower(EXAMPLES["softmax"])
    compile(text, "kernel.py", "exec")
    assert "import kernelwright" not in text
    assert "y = x.new_empty(64, 1000)" in text, "on the device of its input"
    assert "class ModelNew" in text


def test_every_shared_function_has_a_cuda_form() -> None:
    """Elements are written by the C++ coder: what it may name must exist here too."""
    from kernelwright.compiler.backends.cpp import prelude_sections
    from kernelwright.compiler.backends.cuda_c.prelude_sections import sections
    from kernelwright.compiler.lower import c_expressions
    from kernelwright.compiler.lower.c_family import elements

    text = "".join(Path(str(module.__file__)).read_text() for module in (c_expressions, elements))
    named = set(re.findall(r"\w+", text)) & set(prelude_sections.sections())
    assert named | {f"{name}_of" for name in c_expressions.MATH_FUNCTIONS} <= set(sections())
