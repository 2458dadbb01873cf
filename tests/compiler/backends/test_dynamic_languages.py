"""Sizes that vary in the languages of GPUs: one kernel is right at 0, 1, primes, multiples of a tile and one more, and far beyond."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kernelwright.compiler.language import language
from kernelwright.compiler.offdevice.nvcc import NVCC
from kernelwright.sketch.parse import parse

CHILD = Path(__file__).parent / "interpreted.py"
HEAD = "n = size(6, dynamic=True)\nm = size(20, dynamic=True)\n"
XY = 'x = tensor([n, m], f32, role="input", source="0")\ny = tensor([n, m], f32, role="output")\n'


def _sketch(tensors: str, body: str) -> str:
    inner = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f'{HEAD}{tensors}\n@kernel\ndef work():\n{inner}\n\nreturns("y")\n'


CASES = {
    "rows of any width": _sketch(
        XY,
        "for i in parallel(0, n):\n    r = load(x[i, 0:m])\n    e = exp(r - reduce_max(r, axis=0))\n"
        "    store(y[i, 0:m], e / reduce_sum(e, axis=0))",
    ),
    "a scan of any length": _sketch(XY, "for i in parallel(0, n):\n    store(y[i, 0:m], scan_sum(load(x[i, 0:m]), axis=0))"),
    "a product of any sizes": _sketch(
        'x = tensor([n, m], f32, role="input", source="0")\nw = tensor([m, n], f32, role="input", source="1")\n'
        'y = tensor([n, n], f32, role="output")\n',
        "for i in parallel(0, n, 16):\n    for j in parallel(0, n, 16):\n        acc = full([16, 16], 0.0, f32, level='accumulator')\n"
        "        for k in range(0, m, 32):\n"
        "            acc = gemm(load(x[i:i + 16, k:k + 32], pad=0.0), load(w[k:k + 32, j:j + 16], pad=0.0), acc)\n"
        "        store(y[i:i + 16, j:j + 16], acc)",
    ),
    "all of several axes": _sketch(
        'x = tensor([n, m, 3], f32, role="input", source="0")\ny = tensor([], f32, role="output")\n'
        'flat = tensor([n * m * 3], f32, role="view", source="x")\n',
        "store(y[()], squeeze(reduce_sum(load(flat[0 : n * m * 3]), axis=0), axis=0))",
    ),
    "quotients of sizes": _sketch(
        'x = tensor([n, m], f32, role="input", source="0")\ny = tensor([n, m // 2 + n // 3], f32, role="output")\n',
        "for i in parallel(0, n):\n    store(y[i, 0 : m // 2 + n // 3], load(x[i, m - m // 2 : m + n // 3], pad=2.0))",
    ),
}
SIZES = [{"n": n, "m": m} for n, m in ((6, 20), (1, 1), (0, 5), (3, 0), (17, 129), (2, 1021))]
HERE = {
    "triton": find_spec("triton") is not None,
    "tilelang": find_spec("tilelang") is not None,
    "cuda_c": NVCC is not None and shutil.which("g++") is not None,
}


LANGUAGES = [pytest.param(name, marks=pytest.mark.skipif(not here, reason=name)) for name, here in HERE.items()]


def _results(name: str, cases: dict[str, str], folder: Path) -> dict[str, str]:
    for number, (title, text) in enumerate(cases.items()):
        (folder / f"{number}.json").write_text(json.dumps({"name": title, "sketch": text, "sizes": SIZES}))
    command = [sys.executable, str(CHILD), name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=580)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", [one for one in LANGUAGES if one.values[0] != "tilelang"])  # its divisions take g++ minutes
def test_one_kernel_is_right_at_all_sizes(name: str, tmp_path: Path) -> None:
    rows = {title: text for title, text in CASES.items() if title == "rows of any width"}
    assert _results(name, rows, tmp_path) == dict.fromkeys(rows, "same")


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGUAGES)
def test_every_case_is_right_at_all_sizes(name: str, tmp_path: Path) -> None:
    assert _results(name, CASES, tmp_path) == dict.fromkeys(CASES, "same")


def test_a_size_is_an_argument_and_nothing_is_compiled_for_one() -> None:
    """The block that a scan needs is the next power of two; every other block is a constant."""
    rows = language("triton").lower(parse(CASES["rows of any width"]))
    assert "(x_ptr, y_ptr, n, m, BLOCK_" in rows
    assert "next_power_of_2" not in rows
    assert "=triton.next_power_of_2(max(m, 1))" in language("triton").lower(parse(CASES["a scan of any length"]))
    assert 'm = T.dynamic("m")' in language("tilelang").lower(parse(CASES["rows of any width"]))
