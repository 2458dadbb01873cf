"""A Triton program of strangers, run by the command as compiled for a device that is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kernelwright
from kernelwright.core.errors import GpuError

triton = pytest.importorskip("triton", reason="Triton is not installed, which compiles the programs")

import triton.language as tl  # noqa: E402

PROGRAM = Path(__file__).parent / "simulated_program.py"


@triton.jit
def gather(table, out, B: tl.constexpr):
    """Reads through addresses that are data; all blocks write the same place."""
    source = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.arange(0, B), tl.load(source + tl.arange(0, B)))  # a race


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernelwright", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_a_program_runs_unmodified_for_a_newer_device() -> None:
    result = _run(str(PROGRAM), "--target", "h100")
    assert (result.returncode, result.stdout) == (0, "all right\n"), result.stderr


def test_an_off_by_one_store_is_named_by_its_line_under_check() -> None:
    line = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "one too many" in text)
    result = _run(str(PROGRAM), "--check", "--", "wrong")
    assert result.returncode == 1
    assert result.stdout == "all right\n"
    (fault,) = [text for text in result.stderr.splitlines() if "out_of_bounds" in text]
    assert f"{PROGRAM}:{line}" in fault
    assert "0 bytes past the end of o (400 bytes)" in fault
    assert result.stderr.splitlines()[-1].startswith("kernelwright: 1 error, ")


def test_an_error_of_the_program_is_its_own(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import sys\nprint(sys.argv[1:])\n1 / 0\n")
    result = _run(str(file), "--", "--flag", "7")
    assert result.returncode == 1
    assert result.stdout == "['--flag', '7']\n"
    assert "ZeroDivisionError" in result.stderr
    assert "runpy" not in result.stderr


def test_only_cuda_targets_are_simulated() -> None:
    with pytest.raises(GpuError, match="no CUDA target"), kernelwright.simulated("mi300x"):
        pass


def test_a_race_is_seen_from_python_and_tables_of_addresses_are_followed() -> None:
    a, b, out = torch.ones(32), torch.ones(32), torch.zeros(32)
    before = getattr(triton.runtime.driver, "_active", None)
    with kernelwright.simulated("a100", check=True) as simulation:
        gather[(2,)](torch.tensor([a.data_ptr(), b.data_ptr()]), out, 32)
    assert [fault.kind for fault in simulation.faults] == ["global_race"]
    assert simulation.faults[0].location is not None
    assert simulation.faults[0].location.file == __file__
    assert torch.equal(out, a)
    assert getattr(triton.runtime.driver, "_active", None) is before
