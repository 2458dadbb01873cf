"""Builds CUDA sources and runs them on the GPU in software, in this process: tensors in, results or GpuError out."""

from __future__ import annotations

import ctypes
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.compiler.offdevice import cuda_build
from kernelwright.compiler.offdevice.nvcc import NVCC
from kernelwright.gpu.host import Device
from kernelwright.target import Target

needs_nvcc = pytest.mark.skipif(NVCC is None or shutil.which("g++") is None, reason="nvcc and g++ are not both installed")
_opened: list[Device] = []


def device() -> Device:
    """One for this process; what earlier calls ran into is forgotten."""
    if not _opened:
        target = asdict(Target.load("a100"))
        _opened.append(Device(cuda_build.device_attributes(target), checks=True))
        _opened[0].open(cuda_build.cudart())
    return _opened[0]


def library(source: str, folder: Path) -> ctypes.CDLL:
    """A source built and opened."""
    device()
    text = folder / "kernel.cu"
    text.write_text(source)
    return ctypes.CDLL(str(cuda_build.build([text], folder / "kernel.so", arch=80)))


def call(function: Any, *values: Any) -> None:
    """Calls an entry point; tensors go by pointer, and the device knows how far they reach."""
    given: list[Any] = []
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    for tensor in tensors:
        device().memory.add(tensor.data_ptr(), tensor.numel() * tensor.element_size(), "a tensor")
    for value in values:
        if isinstance(value, torch.Tensor):
            given.append(ctypes.c_void_p(value.data_ptr()))
        else:
            given.append(ctypes.c_float(value) if isinstance(value, float) else value)
    try:
        function(*given)
        device().raise_pending()
    finally:
        for tensor in tensors:
            device().memory.remove(tensor.data_ptr())
