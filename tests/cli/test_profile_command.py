"""`kernelwright profile`: programs and kernels for a GPU that is not here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kernelwright.cli.main import run

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
COLUMNS = r"""
#include <cstdio>
__global__ void column(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = i % n, col = i / n;
    y[row * n + col] = 2.0f * x[row * n + col];  // strided
}
int main(int argc, char** argv) {
    int n = 256; float *x, *y;
    cudaMalloc(&x, n * n * 4); cudaMalloc(&y, n * n * 4); cudaMemset(x, 0, n * n * 4);
    for (int k = 0; k < 3; k++) column<<<n * n / 256, 256>>>(x, y, n);
    cudaDeviceSynchronize();
    printf("printed by the program\n");
    return argc - 1;
}
"""


@needs_nvcc
def test_a_cuda_program_is_counted_predicted_and_told_line_by_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "columns.cu"
    program.write_text(COLUMNS)
    page = tmp_path / "page.html"
    assert run(["profile", str(program), "--target", "h100", "--json", "--html", str(page)]) == 0
    said = json.loads(capfd.readouterr().out)  # nothing else on stdout, whatever the program prints
    (launch,) = said["launches"]
    assert (launch["name"], launch["times"], launch["grid"]) == ("column", 3, [256, 1, 1])
    assert launch["counted"]["sectors_per_request"] == 32.0
    assert launch["counted"]["sector_efficiency"] == 0.125
    assert launch["counted"]["operations"] == 256 * 256
    assert launch["compiled"]["registers"] > 0
    assert launch["predicted"]["error"] > 0
    assert said["predicted_ms"] > 3 * launch["predicted"]["ms"]
    assert said["measured"] is False
    hottest = launch["lines"][0]
    assert hottest["line"] == next(n for n, text in enumerate(COLUMNS.splitlines(), 1) if "// strided" in text)
    assert hottest["source"].startswith("y[row * n + col]")
    assert hottest["sectors_per_request"] == 32.0
    assert any("neighbouring lanes" in sentence for sentence in said["advice"])
    assert "<svg" in page.read_text()
    assert "Nothing is measured" in page.read_text()


@pytest.mark.slow
@needs_nvcc
def test_a_kernel_of_a_task_is_profiled_in_the_sandbox(capfd: pytest.CaptureFixture[str]) -> None:
    examples = Path(__file__).parents[2] / "examples"
    kernel, task = examples / "kernels/softmax_cuda.py", examples / "tasks/softmax.py"
    assert run(["profile", str(kernel), "--task", str(task), "--target", "a100", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    (launch,) = said["launches"]
    assert launch["name"] == "softmax_rows"
    assert said["predicted_ms"] > said["speed_of_light_ms"] > 0
    assert any("__expf" in line["source"] or "exp" in line["source"] for line in launch["lines"])
    assert said["wrong"] is None


@pytest.mark.parametrize(
    "words",
    [["nothing.py"], ["nothing.cu", "--target", "h100"], [__file__, "--target", "cpu"], [__file__, "--target", "mi300x"]],
)
def test_what_cannot_be_profiled_is_told_in_one_sentence(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", *words]) == 2
    said = capfd.readouterr().err
    assert said.startswith("kernelwright: ")
    assert "Traceback" not in said
