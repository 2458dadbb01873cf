"""The TileLang coder: sketches in, files whose kernels give what the sketch's own interpreter gives.

The kernels run in one child process, because the interpreter takes TileLang's place for good where it is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.compiler.language import language
from kernelwright.sketch.parse import parse

pytest.importorskip("tilelang", reason="the extra tilelang is not installed")

PAGE = Path(__file__).parents[4] / "docs" / "sketch.md"
CHILD = Path(__file__).parents[1] / "interpreted.py"


def _sketch(shape: str, body: str, *, out: str = "", dtype: str = "f32", out_dtype: str = "", more: str = "") -> str:
    inner = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return (
        f'x = tensor([{shape}], {dtype}, role="input", source="0")\n'
        f'y = tensor([{out or shape}], {out_dtype or dtype}, role="output")\n{more}'
        f'\n@kernel\ndef work():\n{inner}\n\nreturns("y")\n'
    )


MEAN_BESIDE_LARGEST = _sketch(
    "2, 8, 64",
    "t = load(x[:, :, :])\nmean = reduce_sum(t, axis=2) / 64.0\nstore(y[:, 0:1, :], reduce_max(exp(t - mean), axis=1))",
    out="2, 1, 64",
)
PRODUCT = _sketch(
    "40, 70",
    "for i in parallel(0, 40, 20):\n    acc = full([20, 50], 0.0, f32, level='accumulator')\n"
    "    for k in range(0, 70, 35):\n"
    "        acc = gemm(load(x[i:i + 20, k:k + 35]), permute(load(w[:, k:k + 35]), [1, 0]), acc)\n"
    "    store(y[i:i + 20, :], acc)",
    out="40, 50",
    more='w = tensor([50, 70], f32, role="input", source="1")\n',
)
MEAN_BESIDE_WINDOWS = _sketch(
    "2, 8, 4, 2, 4, 2",
    "t = load(x[:, :, :, :, :, :])\nmean = reduce_sum(t, axis=(2, 3, 4, 5)) / 64.0\n"
    "store(y[:, :, :, 0:1, :, 0:1], reduce_max(t - mean, axis=(3, 5)))",
    out="2, 8, 4, 1, 4, 1",
)
CASES = {
    "rows too long for a block": _sketch(
        "3, 20000",
        "for i in parallel(0, 3):\n    r = load(x[i, :])\n    e = exp(r - reduce_max(r, axis=0))\n"
        "    store(y[i, :], e / reduce_sum(e, axis=0))",
    ),
    "a strided axis": _sketch(
        "5, 37, 33",
        "for b in parallel(0, 5):\n    store(y[b, 0:1, :], reduce_min(load(x[b, :, :]), axis=0))",
        out="5, 1, 33",
    ),
    "a product of a row": _sketch(
        "6, 40", "for i in parallel(0, 6):\n    store(y[i:i + 1], reduce_prod(load(x[i, :]), axis=0))", out="6"
    ),
    "any of a row": _sketch(
        "6, 40",
        "for i in parallel(0, 6):\n    store(y[i:i + 1], cast(reduce_any(load(x[i, :]) > 2.0, axis=0), f32))",
        out="6",
    ),
    "an exclusive scan from the end": _sketch(
        "4, 50",
        "for i in parallel(0, 4):\n    store(y[i, :], scan_sum(load(x[i, :]), axis=0, reverse=True, exclusive=True))",
    ),
    "a running maximum": _sketch("4, 50", "for i in parallel(0, 4):\n    store(y[i, :], scan_max(load(x[i, :]), axis=0))"),
    "the order of a row": _sketch(
        "6, 21",
        "for i in parallel(0, 6):\n    store(y[i, :], arg_sort(load(x[i, :]), axis=0, descending=True))",
        out_dtype="i64",
    ),
    "the place of the largest": _sketch(
        "6, 21", "for i in parallel(0, 6):\n    store(y[i:i + 1], arg_max(load(x[i, :]), axis=0))", out="6", out_dtype="i64"
    ),
    "half floats on tensor cores": _sketch(
        "50, 70",
        "for i in parallel(0, 50, 16):\n    t = gemm(load(x[i:i + 16, :], pad=0.0), load(w[:, :]))\n"
        "    store(y[i:i + 16, :], cast(t, bf16))",
        out="50, 40",
        dtype="bf16",
        more='w = tensor([70, 40], bf16, role="input", source="1")\n',
    ),
    "a mean of groups beside the largest of channels": MEAN_BESIDE_LARGEST,
    "a mean of groups beside the largest of windows": MEAN_BESIDE_WINDOWS,
    "a product of fp32 tiles, one of them turned": PRODUCT,
    "a padding that is not zero": _sketch(
        "30", "for i in parallel(0, 30):\n    store(y[i:i + 1], reduce_max(load(x[i - 2:i + 3], pad=-inf), axis=0))"
    ),
    "bf16 is rounded after each operation": _sketch(
        "7, 64",
        "for i in parallel(0, 7):\n    t = load(x[i, :])\n    store(y[i, :], exp(t * 0.3) / (t * t + 1.0))",
        dtype="bf16",
    ),
}


def _documented() -> dict[str, str]:
    blocks = re.findall(r"### ([^\n]+)\n\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return {title: text for title, text in blocks if "@kernel" in text}


@pytest.fixture(scope="module", params=["interpreter", pytest.param("emulator", marks=pytest.mark.slow)])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tilelang")
    for number, (name, text) in enumerate({**CASES, **_documented()}.items()):
        (folder / f"{number}.json").write_text(json.dumps({"name": name, "sketch": text}))
    command = [sys.executable, str(CHILD), "tilelang", str(folder), request.param]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", [*CASES, *_documented()])
def test_a_kernel_gives_what_its_sketch_says(results: dict[str, str], name: str) -> None:
    assert results[name] == "same"


def test_a_file_stands_alone_and_reads_as_tilelang() -> None:
    text = language("tilelang").lower(parse(_documented()["Matrix product with epilogue"]))
    assert "kernelwright" not in text.replace("Kernelwright", "")
    for word in ("@tilelang.jit", "T.Kernel(", "T.alloc_shared(", "T.alloc_fragment(", "T.gemm(", "T.Parallel("):
        assert word in text
    assert "class ModelNew(nn.Module)" in text
    compile(text, "kernel.py", "exec")


@pytest.mark.parametrize("sketch", [MEAN_BESIDE_LARGEST, MEAN_BESIDE_WINDOWS])
def test_a_fragment_that_is_repeated_along_other_axes_is_read_from_shared_memory(sketch: str) -> None:
    """Else TileLang has every thread do the whole of that axis, in registers, or finds no layout."""
    text = language("tilelang").lower(parse(sketch))
    means = re.search(r"T\.reduce_sum\(\w+, (\w+), dim=2\)", text)
    assert means
    assert f"T.copy({means[1]}, {means[1]}_shared)" in text
    assert not re.search(rf"\b{means[1]}\[", text)


def test_the_halves_of_an_fp32_tile_are_made_without_reading_it_back() -> None:
    """A loop that reads and writes one shared tile has a barrier in each of its steps."""
    text = language("tilelang").lower(parse(PRODUCT))
    assert text.count("T.gemm(") == 3
    for name in re.findall(r"(\w+_shared) = T\.alloc_shared", text):
        assert f"= {name}[" not in text
        assert f"({name}[" not in text


def test_a_fragment_has_no_more_axes_than_tilelang_finds_layouts_for() -> None:
    text = language("tilelang").lower(parse(MEAN_BESIDE_WINDOWS))
    assert "T.alloc_fragment(" in text
    assert max(shape.count("BLOCK") for shape in re.findall(r"T\.alloc_fragment\(\(([^)]*)\)", text)) == 5


BIAS = """
import importlib.util, sys, torch
from dataclasses import asdict
from kernelwright.compiler.backends.tilelang import runtime
from kernelwright.target import Target
runtime.install(asdict(Target.load("h100")))
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
torch.manual_seed(0)
x, w = torch.rand(40, 70) + 1, torch.rand(50, 70) + 1
with runtime.context(calling=False):
    spec.loader.exec_module(module)
    model = module.ModelNew()
with torch.no_grad(), runtime.context(calling=True):
    got = model(x, w)
exact = x.double() @ w.double().T
print(float(((got.double() - exact) / exact).mean()))
"""


def test_what_a_product_of_halves_leaves_out_does_not_add_up(tmp_path: Path) -> None:
    """fp32 as two halves of tf32: rests of one sign would make every product of positive numbers too small, by 1.1e-7 on average."""
    file = tmp_path / "kernel.py"
    file.write_text(language("tilelang").lower(parse(PRODUCT)))
    done = subprocess.run([sys.executable, "-c", BIAS, str(file)], capture_output=True, text=True, check=True, timeout=120)
    assert abs(float(done.stdout.splitlines()[-1])) < 2e-8
