"""The plug-in from outside: found by its entry point, right for many families, judged in the sandbox, bugs found."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from families import COMPARED, JUDGED

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.language import language, readable
from kernelwright.core.kernel import guess_dsl
from kernelwright.core.verdict import Status
from kernelwright.judge.verify import Judge


def load(path: Path, source: str):
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lowered(folder: Path, source: str) -> tuple[str, torch.nn.Module, list[torch.Tensor]]:
    """The kernel file for a task, with the reference and its inputs."""
    torch.manual_seed(0)
    task = load(folder / "task.py", source)
    model, inputs = task.Model().eval(), task.get_inputs()
    buffers = dict(model.named_buffers())
    state = [
        (name, tuple(x.shape), str(x.dtype).removeprefix("torch."), name in buffers) for name, x in model.state_dict().items()
    ]
    return language("opencl").lower(design_module(model, inputs)[0].sketch, state=state), model, inputs


def test_the_language_is_found_by_its_entry_point() -> None:
    found = language("opencl")
    assert found.name == "opencl"
    assert "/etc/OpenCL" in readable("opencl")
    assert any(found.skills.glob("*.md"))
    assert all(tool.found for tool in found.needs())


def test_a_kernel_file_says_its_language_and_needs_nothing_of_ours(tmp_path: Path) -> None:
    kernel, _, _ = lowered(tmp_path, JUDGED["softmax"])
    assert guess_dsl(kernel) == "opencl"
    assert "import kernelwright" not in kernel
    assert "from kernelwright" not in kernel


@pytest.mark.parametrize("family", COMPARED)
def test_same_numbers_as_torch(family: str, tmp_path: Path) -> None:
    kernel, model, inputs = lowered(tmp_path, COMPARED[family])
    ours = load(tmp_path / "kernel.py", kernel).ModelNew()
    ours.load_state_dict(model.state_dict())
    with torch.no_grad():
        wanted = model(*inputs)
        for _ in range(2):
            got = ours(*inputs)
    for a, b in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(wanted), strict=True):
        torch.testing.assert_close(a, b)


@pytest.fixture(scope="module")
def judge():
    with Judge() as one:
        yield one


@pytest.mark.parametrize("family", JUDGED)
def test_judged_correct_in_the_sandbox(family: str, judge: Judge, tmp_path: Path) -> None:
    kernel, _, _ = lowered(tmp_path, JUDGED[family])
    verdict = judge.verify(tmp_path / "task.py", kernel, track="pure", timing=False)
    assert verdict.status is Status.correct, verdict.reason
    assert verdict.dsl == "opencl"
    assert verdict.execution == "native"
    assert verdict.library_calls == ()


BARRIER = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n"
BUGS = {
    "a barrier removed": ("softmax", BARRIER, "", 99),
    "one element too few": ("reduction", "e < 1031", "e < 1030", 1),
    "a wrong stride": ("softmax", " * 517]", " * 516]", 99),
    "padding that is not neutral": ("pooling", "-INFINITY", "0.0f", 99),
    "an accumulator that starts from what was there": ("gemm", "sum[i][j] = 0.0f;", "", 1),
}


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_are_never_correct(bug: str, judge: Judge, tmp_path: Path) -> None:
    family, old, new, times = BUGS[bug]
    kernel, _, _ = lowered(tmp_path, JUDGED[family])
    head, marker, source = kernel.partition("SOURCE = r'''")
    assert old in source
    verdict = judge.verify(tmp_path / "task.py", head + marker + source.replace(old, new or ";", times), timing=False)
    assert verdict.status in (Status.wrong_values, Status.crashed), verdict.reason


def test_the_command_line_knows_it(tmp_path: Path) -> None:
    kernel, _, _ = lowered(tmp_path, JUDGED["pointwise"])
    (tmp_path / "kernel.py").write_text(kernel)
    command = [sys.executable, "-m", "kernelwright", "verify", "task.py", "kernel.py", "--no-timing", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dsl"] == "opencl"
