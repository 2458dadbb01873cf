"""A Triton driver for a GPU that is not there: what it says comes from a target's sheet, and nothing can be launched on it.

In: a copy of Triton and a target's sheet as plain data. Out: the object that `triton.runtime.driver.active` is.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import torch

from kernelwright.compiler.offdevice.cuda_api import capability

_numbers = itertools.count(1)


def gpu_target(triton: Any, target: Mapping[str, Any]) -> Any:
    """The target in Triton's words: ("cuda", 90, 32), ("hip", "gfx942", 64), ("npu", "Ascend910B3", 0)."""
    kind = triton.backends.compiler.GPUTarget
    if target["kind"] == "rocm":
        return kind("hip", target["arch"], int(target["warp"]))
    if target["kind"] == "ascend":
        return kind("npu", target["arch"], 0)
    major, minor = capability(target)
    return kind("cuda", 10 * major + minor, int(target["warp"]))


class _Utils:
    def __init__(self, target: Mapping[str, Any]) -> None:
        self._target = target

    def get_device_properties(self, device: int) -> dict[str, int]:
        sheet = self._target
        return {
            "max_shared_mem": int(sheet["shared_memory_per_block"] or sheet["shared_memory"]),
            "max_num_regs": int(sheet["registers"]),
            "multiprocessor_count": int(sheet["cores"]),
            "num_aicore": int(sheet["cores"]),
            "num_vectorcore": 2 * int(sheet["cores"]),
            "warpSize": int(sheet["warp"]),
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 2_000_000,
            "mem_bus_width": 5120,
        }


class Driver:
    """The methods of Triton's GPU drivers that files and the compiler call."""

    def __init__(self, triton: Any, target: Mapping[str, Any]) -> None:
        self._triton, self._sheet = triton, target
        # Of its own, because functions keep a compiler for each device.
        self._number = next(_numbers)
        self.utils = _Utils(target)
        self.binary_ext = "hsaco" if target["kind"] == "rocm" else "cubin"

    def get_current_target(self) -> Any:
        return gpu_target(self._triton, self._sheet)

    def get_current_device(self) -> int:
        return self._number

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return capability(self._sheet)

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: Any) -> None: ...

    def is_active(self) -> bool:
        return True

    def assemble_tensormap_to_arg(self, *args: Any) -> Any:
        raise NotImplementedError("nothing is launched here")
