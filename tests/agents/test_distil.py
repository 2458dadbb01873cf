"""Verdicts distilled: what the next attempt is told, when two failures are the same, and what bounds a slow kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelwright.agents import bounds, distil
from kernelwright.agents.conductor import Kind
from kernelwright.core.verdict import Build, CompiledFor, Mismatch, Status, Verdict

KERNEL = '''
SOURCE = r"""
#include <cstdint>
extern "C" void f(const float* x, float* y, int64_t n) {
    float s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i];
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i] / s;
    for (int64_t i = 1; i < n; i++) y[i] += y[i - 1];
}
"""
'''


def unbuilt(message: str) -> Verdict:
    return Verdict(status=Status.build_failed, reason="the kernel does not build", build=Build(message=message))


def wrong(region: str, worst: float) -> Verdict:
    mismatch = Mismatch(output="output", wrong=5, total=10, region=region, worst_error=worst, bound=1e-6)
    return Verdict(status=Status.wrong_values, reason="wrong", mismatch=mismatch)


def test_every_status_is_a_kind_for_the_conductor() -> None:
    assert set(distil.KINDS) == set(Status)
    assert distil.kind(wrong("everything", 1.0)) is Kind.wrong


def test_the_same_mistake_at_another_place_is_the_same() -> None:
    first = unbuilt("/tmp/a1/kernel.cpp:12:5: error: ‘flaot’ does not name a type; did you mean ‘float’?")
    again = unbuilt("/tmp/b2/kernel.cpp:99:1: error: ‘flaot’ does not name a type; did you mean ‘double’?")
    other = unbuilt("/tmp/b2/kernel.cpp:99:1: error: expected ‘;’ before ‘}’ token")
    assert distil.identity(first) == distil.identity(again) != distil.identity(other)
    assert distil.identity(wrong("last 7 columns", 0.5)) == distil.identity(wrong("last 3 columns", 0.1))
    assert distil.identity(wrong("last 7 columns", 0.5)) != distil.identity(wrong("everything", 0.5))


def test_a_compiler_error_is_shown_with_the_lines_around_it() -> None:
    told = distil.failure(unbuilt("kernel.cpp:5:11: error: something about s"), KERNEL)
    assert "    5>     for (int64_t i = 0; i < n; i++) s += x[i];" in told
    assert "    4      float s = 0;" in told
    assert "#include <cstdint>" in told


def test_a_mismatch_is_told_with_region_and_bound() -> None:
    told = distil.failure(wrong("last 7 columns", 0.5), KERNEL)
    assert "where: last 7 columns of output (5 of 10 elements wrong)" in told
    assert "largest error 0.5, allowed 1e-06" in told


def test_off_the_device_the_prediction_is_told_as_one() -> None:
    verdict = Verdict(
        status=Status.correct,
        reason="right",
        execution="interpreter",
        compiled_for={"h100": CompiledFor(registers=40, predicted_ms=0.25)},
    )
    assert "predicted 0.25 ms" in distil.speed(verdict)


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_loops_that_stay_scalar_are_named_with_their_source() -> None:
    told = bounds.explain(KERNEL)
    assert "GCC vectorised" in told
    assert "y[i] += y[i - 1];" in told


def test_what_is_no_cpp_has_no_bounds() -> None:
    assert bounds.explain("import triton\n") == ""
    assert bounds.explain("S = '''__global__ void f() {} extern \"C\" {'''") == ""


ASSEMBLY = """f:
.L2:
	vmovaps	(%rdi), %ymm0
	incq	%rax
	jne	.L2
.L3:
	vfmadd231ps	(%rdi), %ymm0, %ymm1
	vaddps	%ymm1, %ymm2, %ymm2
	jne	.L3
	ret
"""


def test_the_hottest_loop_is_the_one_with_the_most_arithmetic() -> None:
    assert bounds.hot_loop(ASSEMBLY).startswith(".L3:")
    assert bounds.hot_loop("ret\n") == ""


PACKED = """f:
.L1:
	vaddps	%ymm1, %ymm2, %ymm2
	vaddps	%ymm1, %ymm3, %ymm3
	vaddps	%ymm1, %ymm4, %ymm4
	jne	.L1
.L2:
	incq	%rax
.L3:
	vfmadd231ps	(%rdi), %ymm0, %ymm1
	jne	.L3
	jne	.L2
	ret
"""


def test_a_loop_that_runs_once_is_not_the_hottest_however_much_arithmetic_it_has() -> None:
    assert bounds.hot_loop(PACKED).startswith(".L3:")


def test_a_tool_that_failed_is_said_to_have_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "llvm-mca"
    tool.write_text("#!/bin/sh\necho 'error: found an unsupported instruction' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(tool) if name == "llvm-mca" else None)
    assert bounds._port_model(ASSEMBLY, tmp_path) == [
        "llvm-mca failed on the loop that seems hottest: error: found an unsupported instruction"
    ]


def test_the_port_model_is_read_in_one_or_two_lines() -> None:
    report = "Total Cycles:      800\nBlock RThroughput: 2.0\n  Data Dependencies:       [ 75.00% ]\n"
    first, second = bounds.summary(report, ASSEMBLY)
    assert "8.0 cycles an iteration" in first
    assert "more independent accumulators" in second
    assert bounds.summary("", "") == []
