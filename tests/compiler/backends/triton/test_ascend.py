"""Triton kernels for an NPU that is not there: found or missed tools, what is sent to triton-ascend, and what the verdict makes of its
answer. A program that plays its Python stands for it, so that all but the compiler itself is run everywhere; the tests at the end run the
real one where the setting `triton_ascend` names it (docs/add-a-target.md)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.compiler.backends.triton.ascend import environment
from kernelwright.compiler.language import language
from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.judge import Judge, Status, Verdict
from kernelwright.run.drafts import Drafter
from kernelwright.sketch.parse import parse

pytest.importorskip("triton", reason="the extra triton is not installed")
REAL = environment.find()

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x * x) * 2

def get_inputs():
    return [torch.randn(4, 100)]

def get_init_inputs():
    return []
"""

KERNEL = """
import torch
import triton
import triton.language as tl
try:
    from triton.language.extra.ascend import libdevice
except ImportError:
    from triton.language.extra import libdevice

TWICE = tl.constexpr(2)

@triton.jit
def square(x):
    return x * x

@triton.autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=2)], key=["n"])
@triton.jit
def wave(x_ptr, y_ptr, n, flag, BLOCK: tl.constexpr = 64, KIND: tl.constexpr = tl.float32):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(KIND)
    tl.store(y_ptr + at, libdevice.tanh(square(x)) * TWICE, mask=inside)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        wave[(x.shape[0],)](x, y, x.shape[1], None)
        return y
"""

PLAYER = """#!{python}
import json, sys
request, answer = sys.argv[-2:]
asked = json.load(open(request))
for work in asked["kernels"]:
    compile(work["text"], work["function"], "exec")
json.dump({answer}, open(answer, "w"))
"""
ECHO = (
    '{"version": "3.2.0", "error": None, "kernels": [{"function": w["function"], "stage": "linalg"} for w in asked["kernels"]]}'
)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(threads=1) as made:
        yield made


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """An environment whose Python answers with an expression over what it is asked."""
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)

    def make(answer: str) -> Path:
        folder = tmp_path / "triton-ascend"
        (folder / "bin").mkdir(parents=True)
        (folder / "lib/python3.11/site-packages/triton_ascend-9.8.7.dist-info").mkdir(parents=True)
        python = folder / "bin" / "python"
        python.write_text(PLAYER.replace("{python}", sys.executable).replace("{answer}", answer))
        python.chmod(0o755)
        tmp_path.chmod(0o755)
        monkeypatch.setenv("KERNELWRIGHT_TRITON_ASCEND", str(folder))
        return folder

    return make


def judged(judge: Judge, kernel: str = KERNEL, task: str = TASK) -> Verdict:
    task = Task.from_source(task, path="wave.py")
    return judge.verify(task, kernel, dsl="triton", target="ascend910b", timing=False, budget_s=0.2)


def test_the_environment_is_named_by_the_setting_and_read_without_running_it(played: Callable[[str], Path]) -> None:
    folder = played(ECHO)
    (folder / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\nversion = 3.11\n")
    found = environment.find()
    assert found is not None
    assert (found.version, found.python) == ("9.8.7", folder / "bin" / "python")
    assert str(folder) in environment.reads()
    assert str(Path(sys.base_prefix).resolve()) in environment.reads()
    assert language("triton").tools("cuda") == {}  # type: ignore[attr-defined]


def test_an_environment_without_triton_ascend_is_none(played: Callable[[str], Path]) -> None:
    folder = played(ECHO)
    (folder / "lib/python3.11/site-packages/triton_ascend-9.8.7.dist-info").rmdir()
    assert environment.find() is None
    assert any("pip install triton-ascend" in sentence for sentence in environment.missing())


def test_cann_is_found_where_its_own_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / environment.BINARY_COMPILER).write_text("")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert environment.find_cann() == (tmp_path / "bin" / environment.BINARY_COMPILER, tmp_path.resolve())
    assert not any("CANN" in sentence for sentence in environment.missing())


def test_a_lowered_kernel_is_told_with_the_stage_and_nothing_that_is_not_known(
    judge: Judge, played: Callable[[str], Path]
) -> None:
    played(ECHO)
    verdict = judged(judge)
    assert verdict.status is Status.correct, verdict.reason
    assert "lowers to linalg for Ascend910B3 (triton-ascend 9.8.7; no CANN: no binary" in verdict.reason
    assert "by the roofline alone, not measured" in verdict.reason
    assert verdict.compiled_for is not None
    figures = verdict.compiled_for["ascend910b"]
    assert (figures.stage, figures.registers, figures.shared_memory, figures.spills, figures.occupancy) == (
        "linalg", None, None, None, None,
    )  # fmt: skip
    assert [(kernel.name, kernel.blocks) for kernel in figures.kernels] == [("wave", 4)]
    assert figures.predicted_ms is not None


def test_the_kernels_text_stands_alone_and_its_arguments_have_no_memory(judge: Judge, played: Callable[[str], Path]) -> None:
    held = '"def square" in work["text"], "TWICE = _tl.constexpr(2)" in work["text"]'
    told = f'json.dumps([work["args"], work["kwargs"], work["options"], {held}])'
    error = '{"function": "wave", "stage": "ttir", "kind": "", "text": "", "printed": "", "cause": ' + told + "}"
    played('{"version": "", "kernels": [], "error": ' + error + "}")
    verdict = judged(judge)
    assert verdict.status is Status.build_failed
    args = '[{"pointer": "float32"}, {"pointer": "float32"}, {"value": 100}, {"value": null}]'
    assert f'wave: [{args}, {{"BLOCK": {{"value": 128}}}}, {{"num_warps": 2' in verdict.reason
    assert "true, true]" in verdict.reason


def test_a_refused_kernel_fails_with_the_first_complaint_of_the_lowering(judge: Judge, played: Callable[[str], Path]) -> None:
    error = {
        "function": "wave", "stage": "linalg", "kind": "CalledProcessError", "text": "Command '…' returned 1", "cause": "Command '…'",
        "printed": "remark: something\nloc(\"k\":3:4): error: expected offsets to be non-negative\nnote: more",
    }  # fmt: skip
    played(json.dumps({"version": "3.2.0", "kernels": [], "error": error}))
    verdict = judged(judge)
    assert verdict.status is Status.build_failed
    assert "wave: expected offsets to be non-negative (lowering to linalg) [triton-ascend 9.8.7]" in verdict.reason


def test_a_program_that_dies_is_told_by_its_last_words(judge: Judge, played: Callable[[str], Path]) -> None:
    played('sys.exit("no libtriton here")')
    verdict = judged(judge)
    assert verdict.status is Status.build_failed
    assert "triton-ascend ended with code 1: no libtriton here" in verdict.reason


def test_without_the_environment_nothing_is_lowered_and_the_verdict_says_how_to_get_it(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_TRITON_ASCEND", str(tmp_path / "nowhere"))
    verdict = judged(judge)
    assert verdict.status is Status.correct, verdict.reason
    assert "not compiled for Ascend910B3: triton-ascend is missing; to add it: python3 -m venv" in verdict.reason
    assert verdict.compiled_for is not None
    assert verdict.compiled_for["ascend910b"].predicted_ms is None


def test_emitted_masks_are_never_true_by_themselves_and_libdevice_is_found_on_both() -> None:
    """Triton 3.2 takes Python's True for no mask; its libdevice for Ascend has a place of its own."""
    task = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, a, b):\n        return torch.tanh(a @ b)\n\n"
    task += "def get_inputs():\n    return [torch.randn(1, 64), torch.randn(64, 40)]\n\ndef get_init_inputs():\n    return []\n"
    with Drafter() as drafter:
        kernel = drafter.drafts(JobSpec(Task.from_source(task, path="row.py"), "triton"), 1)[0].kernel.source
    assert "(0 >= 0)" not in kernel
    assert "from triton.language.extra.ascend import libdevice" in kernel


@pytest.mark.parametrize(
    ("columns", "address"), [(8192, "(i * 8192 - 1) + offs_m * 2"), (64, "(pid * BLOCK_M * 64 - 1) + t[:, None] * 64")]
)
def test_a_constant_beside_a_stride_of_two_is_part_of_a_number_that_the_compiler_does_not_know(
    columns: int, address: str
) -> None:
    """triton-ascend 3.2 stops at an assertion where it is added to positions two apart; rows as a grid, and as lanes of a block."""
    text = f'x = tensor([64, {columns}], f32, role="input", source="0")\ny = tensor([64, {columns // 2}], f32, role="output")\n'
    text += "\n@kernel\ndef work():\n    for i in parallel(0, 64):\n"
    text += f'        store(y[i, :], load(x[i, -1 : {columns - 1} : 2], pad=0.0))\n\nreturns("y")\n'
    assert f"tl.load(x_ptr + {address}" in language("triton").lower(parse(text))


real = pytest.mark.skipif(REAL is None, reason="no environment with triton-ascend (setting triton_ascend)")


@real
def test_triton_ascend_lowers_a_foreign_kernel(judge: Judge) -> None:
    verdict = judged(judge)
    assert verdict.status is Status.correct, verdict.reason
    assert "for Ascend910B3" in verdict.reason


@real
def test_triton_ascend_refuses_what_it_does_not_know(judge: Judge) -> None:
    verdict = judged(judge, KERNEL.replace("libdevice.tanh(square(x))", "tl.extra.nothing(x)"))
    assert verdict.status is not Status.correct
    alone = KERNEL.replace(
        "    from triton.language.extra.ascend import libdevice", "    from triton.language.extra.other import libdevice"
    )
    verdict = judged(judge, alone)
    assert verdict.status is Status.build_failed, "the device-neutral libdevice is empty there"
    assert "[triton-ascend" in verdict.reason


@real
@pytest.mark.slow
@pytest.mark.parametrize(
    "forward",
    [
        "torch.softmax(a, 1)",
        "a @ a.T",
        "torch.cumsum(a, 1)",
        "torch.argmax(a, 1)",
        "torch.sort(a, 1)[0]",
        "torch.max_pool1d(a, 3, 2, 1)",
        "torch.erf(a).prod(0)",
    ],
)
def test_triton_ascend_lowers_what_we_write(judge: Judge, forward: str) -> None:
    task = f"import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, a):\n        return {forward}\n\n"
    task += "def get_inputs():\n    return [torch.randn(16, 96)]\n\ndef get_init_inputs():\n    return []\n"
    made = Task.from_source(task, path="ours.py")
    with Drafter() as drafter:
        kernel = drafter.drafts(JobSpec(made, "triton"), 1)[0].kernel
    verdict = judge.verify(made, kernel, dsl="triton", target="ascend910b", timing=False, budget_s=0.2)
    assert verdict.status is Status.correct, verdict.reason


def test_a_file_that_was_written_for_an_npu_runs_without_one(judge: Judge, played: Callable[[str], Path]) -> None:
    played(ECHO)
    kernel = KERNEL.replace("import torch\n", "import torch\nimport torch_npu\n", 1)
    kernel = kernel.replace("torch.empty_like(x)", 'torch.empty(x.shape, device="npu")')
    kernel = kernel.replace("x = x.contiguous()", "torch.npu.synchronize()\n        x = x.npu().contiguous()")
    verdict = judged(judge, kernel)
    assert verdict.status is Status.correct, verdict.reason
