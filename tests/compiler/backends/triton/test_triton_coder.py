"""The Triton coder: sketches in, files whose kernels give what the sketch's own interpreter gives.

The kernels run in one child process, because Triton's interpreter changes torch and Triton for good where it is installed.
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

pytest.importorskip("triton", reason="the extra triton is not installed")

PAGE = Path(__file__).parents[4] / "docs" / "sketch.md"
HERE = Path(__file__).parent


def _xy(shape: str, out: str | None = None, dtype: str = "f32", out_dtype: str | None = None) -> str:
    return (
        f'x = tensor([{shape}], {dtype}, role="input", source="0")\n'
        f'y = tensor([{out or shape}], {out_dtype or dtype}, role="output")\n'
    )


def _sketch(declarations: str, body: str) -> str:
    inner = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f'{declarations}\n@kernel\ndef work():\n{inner}\n\nreturns("y")\n'


CASES = {
    "rows too long for a block": _sketch(
        _xy("3, 20000"),
        "for i in parallel(0, 3):\n    r = load(x[i, :])\n    e = exp(r - reduce_max(r, axis=0))\n"
        "    store(y[i, :], e / reduce_sum(e, axis=0))",
    ),
    "a strided axis": _sketch(
        _xy("5, 37, 33", "5, 1, 33"),
        "for b in parallel(0, 5):\n    store(y[b, 0:1, :], reduce_min(load(x[b, :, :]), axis=0))",
    ),
    "an exclusive scan from the end": _sketch(
        _xy("4, 50"),
        "for i in parallel(0, 4):\n    store(y[i, :], scan_sum(load(x[i, :]), axis=0, reverse=True, exclusive=True))",
    ),
    "the order of a row": _sketch(
        _xy("6, 21", out_dtype="i64"),
        "for i in parallel(0, 6):\n    store(y[i, :], arg_sort(load(x[i, :]), axis=0, descending=True))",
    ),
    "a register tile seen through a reshape and a part": _sketch(
        'x = tensor([20, 24], f32, role="input", source="0")\nw = tensor([24, 30], f32, role="input", source="1")\n'
        'y = tensor([20, 5, 4], f32, role="output")\n',
        "acc = full([20, 30], 0.0, f32)\nfor k in range(0, 24, 8):\n    acc = gemm(load(x[:, k:k + 8]), load(w[k:k + 8, :]), acc)\n"
        "store(y[:, :, :], reshape(acc, [20, 5, 6])[0:20, 0:5, 1:5])",
    ),
    "bf16 is rounded after each operation": _sketch(
        _xy("7, 64", dtype="bf16"),
        "for i in parallel(0, 7):\n    t = load(x[i, :])\n    store(y[i, :], exp(t * 0.3) / (t * t + 1.0))",
    ),
    "a loop that decides how far others go": _sketch(
        _xy("6, 40", "2, 40"),
        "for p in range(0, 2):\n    acc = full([40], 0.0, f32)\n    for k in range(0, p + 2):\n        acc = acc + load(x[p + k, :])\n"
        "    store(y[p, :], acc)",
    ),
    "floors of negative positions": _sketch(
        _xy("40", "12"),
        "for i in parallel(0, 12):\n    store(y[i:i + 1], load(x[(i - 7) // 2 + 4 : (i - 7) // 2 + 5], pad=0.0))",
    ),
}


def _documented() -> dict[str, str]:
    blocks = re.findall(r"### ([^\n]+)\n\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return {title: text for title, text in blocks if "@kernel" in text}


@pytest.fixture(scope="module", params=["interpreter", pytest.param("emulator", marks=pytest.mark.slow)])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("triton")
    sketches = {**CASES, **_documented()}
    for number, (name, text) in enumerate(sketches.items()):
        (folder / f"{number}.json").write_text(json.dumps({"name": name, "sketch": text}))
    done = subprocess.run(
        [sys.executable, str(HERE.parent / "interpreted.py"), "triton", str(folder), request.param],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", [*CASES, *_documented()])
def test_a_kernel_gives_what_its_sketch_says(results: dict[str, str], name: str) -> None:
    assert results[name] == "same"


def test_a_short_loop_that_decides_the_bounds_of_others_is_written_out() -> None:
    """Bounds known only at run time make ptxas spill in deep nests."""
    text = language("triton").lower(parse(CASES["a loop that decides how far others go"]))
    assert re.search(r"for \w+ in tl\.static_range\(0, 2, 1\):", text)


def test_a_file_stands_alone_and_reads_as_triton() -> None:
    text = language("triton").lower(parse(_documented()["Matrix product with epilogue"]))
    assert "kernelwright" not in text.replace("Kernelwright", "")
    assert 'tl.dot(left, tl.trans(right), acc, input_precision="ieee")' in text or "tl.dot(" in text
    assert "class ModelNew(nn.Module)" in text
    assert "num_warps=" in text
    compile(text, "kernel.py", "exec")
