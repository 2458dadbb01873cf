"""Texts of PTX for tests, by the real compilers, and launches with tensors for arguments."""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.gpu import Memory, Program, Report


@functools.lru_cache(maxsize=64)
def cuda_ptx(source: str, arch: str = "sm_80", *options: str) -> str:
    """PTX of a CUDA-C source."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed, which makes PTX of CUDA-C")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "k.cu"
        file.write_text(source)
        command = [
            "nvcc",
            "-ptx",
            f"-arch={arch}",
            "-lineinfo",
            "-std=c++17",
            *options,
            str(file),
            "-o",
            str(file.with_suffix(".ptx")),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return file.with_suffix(".ptx").read_text()


def line_of(source: str, mark: str) -> int:
    """The line of a source on which a mark stands."""
    return next(n for n, line in enumerate(source.splitlines(), 1) if mark in line)


def packed(arguments: Sequence[Any]) -> bytes:
    """A parameter block: tensors are pointers, ints 32 bits, floats fp32."""
    out = b""
    for value in arguments:
        if isinstance(value, torch.Tensor):
            out += b"\0" * (-len(out) % 8) + struct.pack("<Q", value.data_ptr())
        elif isinstance(value, float):
            out += struct.pack("<f", value)
        else:
            out += struct.pack("<i", value)
    return out + b"\0" * (-len(out) % 8)


def memory_of(tensors: Sequence[Any]) -> Memory:
    """The tensors among arguments as allocations."""
    memory = Memory()
    for n, tensor in enumerate(tensors):
        if isinstance(tensor, torch.Tensor):
            memory.add(tensor.data_ptr(), tensor.numel() * tensor.element_size(), f"argument {n}")
    return memory


def launch(
    ptx: str,
    entry: str,
    grid: Sequence[int],
    block: Sequence[int],
    *arguments: Any,
    shared: int = 0,
    checks: bool = False,
    **options: Any,
) -> Report:
    """Run a kernel on tensors; the entry whose name contains `entry` is meant."""
    program = Program.from_ptx(ptx, checks=checks, counts=options.pop("counts", False))
    (name,) = [n for n in program.entries if entry in n]
    memory = memory_of(arguments) if checks else None
    params = packed(arguments).ljust(program.entries[name].parameter_bytes, b"\0")
    return program.launch(name, grid, block, params, shared, memory=memory, **options)
