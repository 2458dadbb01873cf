"""Capabilities: what a schedule may count on, from a sheet and the way in which a language uses the device."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kernelwright.compiler.hardware import DEFAULT_TARGET, capabilities_of, targets_of
from kernelwright.compiler.language import language
from kernelwright.core.errors import ConfigError
from kernelwright.target import Capabilities, Target

MINE = """
title = "Mine 1"
kind = "cuda"
arch = "sm_80"
cores = 7
bandwidth = 1e11
shared_memory = 32_768
registers = 32_768
source = "made for a test"
[peak_flops]
float32 = 1e12
"""


def test_a_gpu_of_a_sheet() -> None:
    h100, t4 = (Capabilities.of(Target.load(name), "blocks") for name in ("h100", "t4"))
    assert (h100.units, h100.lanes, h100.registers) == (132, 32, 256 << 10)
    assert h100.levels[0].name == "shared memory"
    assert h100.staged_bytes > t4.staged_bytes == 64 << 10
    assert {"float16", "bfloat16"} <= h100.matrix_dtypes
    assert "bfloat16" not in t4.matrix_dtypes
    assert "float32" not in h100.matrix_dtypes
    assert h100.peak_of("float16") > 5 * h100.peak
    assert not h100.vectors
    with pytest.raises(dataclasses.FrozenInstanceError):
        h100.units = 1  # type: ignore[misc]


def test_warps_and_registers_of_another_vendor() -> None:
    mi300x, h100 = (Capabilities.of(Target.load(name), "blocks") for name in ("mi300x", "h100"))
    assert mi300x.lanes == 64
    assert mi300x.accumulator_bytes == 2 * h100.accumulator_bytes


def test_cores_have_caches_and_vectors() -> None:
    few = Capabilities.of(
        Target(
            "few",
            "cpu",
            "two cores",
            2,
            3e10,
            {"float32": 2e11},
            caches={"L1d": 32 << 10, "L2": 1 << 20},
            features=("avx512f",),
        )
    )
    assert few.vectors
    assert (few.lanes, few.tile_bytes, few.level1) == (16, 512 << 10, 32 << 10)
    assert not few.busy(2)
    assert few.busy(8)
    silent = Capabilities.of(Target("silent", "cpu", "a CPU of which nothing is known", 4, 1e10))
    assert silent.tile_bytes > 0
    assert silent.peak > 0


def test_the_same_device_is_another_machine_to_a_language_of_blocks() -> None:
    target = Target("cpu", "cpu", "a CPU", 4, 3e10, {"float32": 1e11})
    assert Capabilities.of(target).vectors
    assert not Capabilities.of(target, "blocks").vectors
    assert Capabilities.of(Target.load("h100"), "blocks", shared_limit=44 << 10).staged_bytes == 44 << 10


def test_work_is_shared_where_units_are_idle_and_it_pays() -> None:
    t4, h100 = (Capabilities.of(Target.load(name), "blocks") for name in ("t4", "h100"))
    assert t4.busy(64)
    assert not h100.busy(64)
    assert h100.worth_sharing(8 << 17, 8)
    assert not h100.worth_sharing(8 << 10, 8)  # 1024 elements for a block: a launch takes longer
    assert not h100.worth_sharing(1 << 24, 132)


def test_a_language_says_how_it_uses_a_device() -> None:
    assert capabilities_of(language("cpp")) == Capabilities.of(Target.host())
    assert capabilities_of(language("triton"), "a100") == Capabilities.of(Target.load("a100"), "blocks")
    assert capabilities_of(language("cuda_c"), "a100").staged_bytes < capabilities_of(language("triton"), "a100").staged_bytes
    with pytest.raises(ConfigError, match="are for GPUs"):
        targets_of(language("triton"), "h100, cpu")


def test_the_default_target_is_said_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.compiler.hardware.attached", lambda: None)
    assert [target.name for target in targets_of(language("triton"))] == [DEFAULT_TARGET]
    assert [target.name for target in targets_of(language("triton"), "t4, a100")] == ["t4", "a100"]
    assert targets_of(language("cpp"), "h100") == (Target.host(),)


def test_a_new_target_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    monkeypatch.setenv("KERNELWRIGHT_TARGETS", str(tmp_path))
    mine = capabilities_of(language("triton"), "mine")
    assert (mine.title, mine.units, mine.staged_bytes, mine.registers) == ("Mine 1", 7, 32 << 10, 128 << 10)
    (tmp_path / "many.toml").write_text(MINE.replace('"cuda"', '"cpu"').replace("cores = 7", "cores = 64"))
    assert capabilities_of(language("cpp"), "many").units == 64
