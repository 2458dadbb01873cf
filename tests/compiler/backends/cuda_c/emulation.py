"""Builds and runs CUDA sources in this process for the tests: tensors in, results or EmulatorError out."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.compiler.backends.cuda_c.emulator import build as emulator
from kernelwright.compiler.backends.cuda_c.emulator.library import MEMORY, Emulated
from kernelwright.core.folders import cache_folder

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator compiles with g++, which is not installed")


def library(source: str, folder: Path) -> Emulated:
    """A source built and opened."""
    ready = emulator.runtime(str(cache_folder("cuda_c")))  # compiled once for all test processes
    MEMORY.library = None  # each folder has a runtime of its own, which must learn of the tensors
    return Emulated(str(emulator.build(source, folder / "kernel.so", folder=folder, ready=ready)))


def call(function: Any, *values: Any) -> None:
    """Calls an entry point; tensors go by pointer, and the emulator knows how far they reach."""
    MEMORY.forget()
    given: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            MEMORY.add(value.data_ptr(), value.data_ptr(), value.numel() * value.element_size(), "a tensor")
            given.append(ctypes.c_void_p(value.data_ptr()))
        else:
            given.append(ctypes.c_float(value) if isinstance(value, float) else value)
    function(*given)
