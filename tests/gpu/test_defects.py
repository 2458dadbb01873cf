"""Planted defects: each is told with its line, and no honest kernel is accused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.gpu import Program, Report
from tests.gpu.defects import DEFECTS, KERNELS, SOURCE
from tests.gpu.devices import cuda_ptx, memory_of, packed


@cache
def kernels() -> str:
    """All kernels in all variants, by nvcc."""
    return cuda_ptx(SOURCE, "sm_80")


@cache
def program() -> Program:
    """All of them in one module."""
    return Program.from_ptx(kernels(), checks=True)


def run(kernel: str, defect: int, *, alone: bool = False) -> Report:
    """A launch on random data under the checks."""
    grid, block, sizes, numbers = KERNELS[kernel]
    torch.manual_seed(1)
    arguments: list[Any] = [torch.randn(n) if n > 0 else torch.zeros(-n, dtype=torch.int32) for n in sizes]
    if kernel == "histogram":
        arguments[0] = torch.randint(0, 1 << 20, arguments[0].shape, dtype=torch.int32)
    arguments += numbers
    text = kernels()
    name = next(word for word in text.split() if word.startswith(f"_Z{len(kernel)}{kernel}ILi{defect}E")).split("(")[0]
    made = Program.from_ptx(text, checks=True, only=name) if alone else program()
    params = packed(arguments).ljust(made.entries[name].parameter_bytes, b"\0")
    return made.launch(name, grid, block, params, memory=memory_of(arguments), patience=0.5)


def check(kernel: str, defect: int, kinds: set[str], mark: str, *, alone: bool = False) -> None:
    lines = {n for n, text in enumerate(SOURCE.splitlines(), 1) if mark in text}
    report = run(kernel, defect, alone=alone)
    places = {(f.kind, place.line) for f in report.faults if f.location for place in (f.location, f.location.outermost)}
    assert any((kind, line) in places for kind in kinds for line in lines), [str(f) for f in report.faults]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_honest_twin_is_not_accused(kernel: str) -> None:
    report = run(kernel, 0)
    assert report.ok, [str(f) for f in report.faults]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "defect", "kinds", "mark"), DEFECTS, ids=lambda value: str(value) if isinstance(value, int | str) else ""
)
def test_the_defect_is_told_with_its_line(kernel: str, defect: int, kinds: set[str], mark: str) -> None:
    check(kernel, defect, kinds, mark)


def triton_faults(kernel: str, defect: int) -> list[tuple[str, int]]:
    """Kind and line of what the checks see of a Triton kernel."""
    pytest.importorskip("triton")
    from kernelwright.compiler.backends.triton.simulated import simulated
    from tests.gpu import triton_defects

    sizes = {"scaled": (1000, 1000), "summed": (1000, 1), "turned": (60 * 60, 60 * 60)}[kernel]
    x, o, n = torch.randn(sizes[0]), torch.zeros(sizes[1]), 60 if kernel == "turned" else 1000
    block = 32 if kernel == "turned" else 128
    with simulated("a100", check=True) as simulation:
        grid = (-(-n // block),)
        getattr(triton_defects, kernel)[grid](x, o, n, D=defect, B=64 if kernel == "turned" else block)
    return [(f.kind, f.location.outermost.line) for f in simulation.faults if f.location]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["scaled", "summed", "turned"])
def test_the_honest_triton_kernel_is_not_accused(kernel: str) -> None:
    assert triton_faults(kernel, 0) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_the_defect_of_a_triton_kernel_is_told_with_its_line(number: int) -> None:
    pytest.importorskip("triton")
    from tests.gpu import triton_defects

    kernel, defect, kinds = triton_defects.DEFECTS[number]
    text = Path(triton_defects.__file__).read_text()
    lines = {n for n, line in enumerate(text.splitlines(), 1) if f"@{kernel}{defect}" in line}
    found = triton_faults(kernel, defect)
    assert any(kind in kinds and line in lines for kind, line in found), found


def test_lanes_that_store_different_values_to_one_place() -> None:
    check("pairs", 1, {"lane_race"}, "pairs1", alone=True)
    assert run("pairs", 0, alone=True).ok
