"""GPUs as targets: sheets with their sources, occupancy as the vendors' calculators have it, predictions that react."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.target import Target, known_targets
from kernelwright.target.attached import attached, describe, described_by_npu, npu_models
from kernelwright.target.occupancy import occupancy
from kernelwright.target.predict import Launch, predicted_seconds

GPUS = ("a100", "h100", "b200", "rtx4090", "l40s", "t4", "mi300x")


@pytest.mark.parametrize("name", GPUS)
def test_every_sheet_is_complete_and_names_its_source(name: str) -> None:
    assert name in known_targets()
    sheet = Target.load(name)
    assert sheet.source
    assert sheet.kind in ("cuda", "rocm")
    assert sheet.threads_per_core % sheet.warp == 0
    assert sheet.peak("float16") >= sheet.peak("float32") > 1e12
    assert 0 < (sheet.shared_memory_per_block or sheet.shared_memory) <= sheet.shared_memory


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "fraction", "limiter"),
    [
        (256, 32, 0, 1.0, "threads"),
        (256, 64, 0, 0.5, "registers"),
        (256, 255, 0, 0.125, "registers"),
        (128, 32, 100 * 1024, 8 / 64, "shared memory"),
        (32, 16, 0, 0.5, "blocks"),
        (1024, 33, 0, 0.5, "registers"),
    ],
)
def test_occupancy_of_an_h100(threads: int, registers: int, shared: int, fraction: float, limiter: str) -> None:
    found = occupancy(Target.load("h100"), threads=threads, registers=registers, shared_memory=shared)
    assert found.fraction == pytest.approx(fraction)
    assert found.limiter == limiter


def test_amd_counts_waves_of_64_and_vector_registers() -> None:
    target = Target.load("mi300x")
    assert occupancy(target, threads=256, registers=64, shared_memory=0).fraction == 1.0
    assert occupancy(target, threads=256, registers=128, shared_memory=0).fraction == 0.5


def test_a_block_that_does_not_fit_has_no_occupancy() -> None:
    assert occupancy(Target.load("t4"), threads=256, registers=32, shared_memory=70_000).blocks == 0


def test_a_prediction_is_never_below_the_roofline_and_punishes_idle_cores() -> None:
    target = Target.load("h100")
    full = occupancy(target, threads=256, registers=32, shared_memory=0)
    work = {"bytes_moved": 1 << 30, "flops": 1 << 30, "dtype": "float32"}
    good = predicted_seconds(target, **work, launches=[Launch(full, 100_000)])
    assert good > (1 << 30) / target.bandwidth
    poor = predicted_seconds(target, **work, launches=[Launch(full, 4)])
    assert poor > 4 * good
    narrow = replace(full, fraction=0.05)
    assert predicted_seconds(target, **work, launches=[Launch(narrow, 100_000)]) > 4 * good
    assert math.isfinite(predicted_seconds(target, **work, launches=[Launch(replace(full, fraction=0.0, blocks=0), 1)]))


def test_an_npu_has_no_threads_and_is_predicted_by_the_roofline_alone() -> None:
    target = Target.load("ascend910b")
    assert target.source
    assert (target.kind, target.arch, target.threaded) == ("ascend", "Ascend910B3", False)
    assert target.registers == 0, "it has none, so none are made up"
    assert target.peak("float16") == target.peak("bfloat16") > target.peak("float32") > 1e12
    work = {"bytes_moved": 1 << 30, "flops": 1 << 20, "dtype": "float32"}
    few, many = (predicted_seconds(target, **work, launches=[Launch(None, blocks)]) for blocks in (1, 100_000))
    assert few == many > (1 << 30) / target.bandwidth


NPU_SMI = """
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.0                   Version: 23.0.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.6        40                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3321 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | OK            | 92.1        41                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3321 / 65536         |
+===========================+===============+====================================================+
"""


def test_an_attached_npu_is_known_by_its_tool_and_an_unknown_one_is_a_guess() -> None:
    assert npu_models(NPU_SMI) == ["910B3", "910B3"]
    found = described_by_npu(NPU_SMI)
    assert found == Target.load("ascend910b")
    other = described_by_npu(NPU_SMI.replace("910B3", "910B4"))
    assert other is not None
    assert (other.name, other.arch, other.origin) == ("attached", "Ascend910B4", "estimated")
    assert "write a sheet" in other.source
    assert described_by_npu("") is None


def test_a_sheet_of_the_user_extends_and_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'title = "Mine"\nkind = "cuda"\narch = "sm_89"\ncores = 10\nbandwidth = 1e11\nsource = "me"\n[peak_flops]\nfloat32 = 1e12\n'
    (tmp_path / "mine.toml").write_text(text)
    (tmp_path / "t4.toml").write_text(text.replace("Mine", "My T4"))
    monkeypatch.setenv("KERNELWRIGHT_TARGETS", str(tmp_path))
    assert Target.load("mine").cores == 10
    assert Target.load("t4").title == "My T4"


def test_an_attached_gpu_describes_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 9.0, 81559, 1980, 2619'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = attached()
    assert found is not None
    assert (found.name, found.arch, found.memory) == ("h100", "sm_90", 81559 << 20)
    unknown = describe("NVIDIA Something New, 12.0, 32607, 2400, 14001")
    assert (unknown.arch, unknown.origin) == ("sm_120", "estimated")
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert attached() is None
