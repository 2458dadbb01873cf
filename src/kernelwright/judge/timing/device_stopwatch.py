"""The stopwatch on a device: the same messages as stopwatch.py, for kernels that run on a GPU or an NPU that is attached.

In: the callable and the name of torch's device ("cuda", which is ROCm's too, or "npu"). Out: what the stopwatch gives, with inputs and
outputs living on the device between the messages. Each call is timed alone, on a cold cache: persisting lines are given back, a
buffer of twice the second-level cache is written, the device is drained; then an event before and one after the call, and the wall
clock until the whole device is idle again. The two must agree: the larger of them counts (the wall clock less what a call of nothing
costs), so that work on a side stream, which no event of ours sees, is not free.

Reviewed against CUDA's documentation (cudaEventElapsedTime, cudaDeviceSynchronize, cudaCtxResetPersistingL2Cache) and torch's
(`torch.get_device_module`, `Event`), which torch_npu's module has, too. No device is attached where this is tested: there it runs
with torch's module for the CPU, which has no events and no cache to flush, so that all but those few lines is.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import random
import re
import time
from typing import Any

import torch

from kernelwright.core.task.tree import transform
from kernelwright.judge.timing.stopwatch import Call, Stopwatch
from kernelwright.judge.timing.turned import Turned

CACHE_BYTES = 192 << 20
"""A second-level cache where the driver does not say its size: none is larger (H100 50 MB, B200 126 MB, MI300X 4 MB before 256 MB,
Ascend 910B 192 MB)."""
CALIBRATIONS = 20

_now = time.perf_counter_ns


class DeviceStopwatch(Stopwatch):
    """Times one callable whose tensors live on a device."""

    def __init__(self, call: Call, device: str) -> None:
        super().__init__(call)
        self.device = device
        self._module: Any = device_module(device)
        self._events = device != "cpu"
        self._flush: Any = None
        self._overhead = 0

    def place(self, tree: Any) -> Any:
        """Tensors on the device, in the layout that they have here."""
        return transform(tree, lambda tensor: _with_strides(tensor, self.device))

    def host(self, tree: Any) -> Any:
        return transform(tree, lambda tensor: _with_strides(tensor, "cpu"))

    def _placed(self, inputs: Any, dice: random.Random, skew: bool, turned: Turned | None) -> Any:
        return self.place(super()._placed(inputs, dice, skew, turned))

    def _run(self, call: Call, sets: list[Any]) -> tuple[list[Any], int, int]:
        if not self._overhead:
            self._overhead = min(self._timed(lambda inputs: None, [])[1] for _ in range(CALIBRATIONS))
        outputs = []
        times = []
        for inputs in sets:
            self._chill()
            output, wall, by_events = self._timed(call, inputs)
            outputs.append(output)
            times.append(agreed(wall, by_events, self._overhead))
        return outputs, max(1, sum(times)), max(1, times[0] if times else 1)

    def _timed(self, call: Call, inputs: Any) -> tuple[Any, int, int]:
        """A call's output, its nanoseconds on the wall clock until the device is idle, and by the device's own events (0: has none)."""
        module = self._module
        start, stop = (module.Event(enable_timing=True) for _ in range(2)) if self._events else (None, None)
        module.synchronize()
        began = _now()
        if start is not None:
            start.record()
        output = call(inputs)
        if stop is not None:
            stop.record()
        module.synchronize()
        wall = _now() - began
        return output, wall, int(start.elapsed_time(stop) * 1e6) if start is not None else 0

    def _chill(self) -> None:
        """Nothing of the inputs is left in the second-level cache, not even lines that a kernel asked the device to keep."""
        if self.device == "cpu":
            return
        _give_back_persisting_lines()
        if self._flush is None:
            properties = self._module.get_device_properties(self._module.current_device())
            size = int(getattr(properties, "L2_cache_size", 0) or CACHE_BYTES)
            self._flush = torch.empty(2 * size, dtype=torch.uint8, device=self.device)
        self._flush.zero_()


def device_module(device: str) -> Any:
    """torch's module of a device. An NPU's comes from a package of its own, which newer torches load by themselves."""
    if device == "npu" and not hasattr(torch, "npu"):
        importlib.import_module("torch_npu")
    return torch.get_device_module(device)


def agreed(wall: int, by_events: int, overhead: int) -> int:
    """One call's nanoseconds from both clocks. Events do not see other streams, the wall clock sees the way to the device and back."""
    return max(by_events, wall - overhead, 1)


def _with_strides(tensor: Any, device: str) -> Any:
    """The tensor on another device with its strides, also where it has gaps: what lies between is moved along."""
    if tensor.device.type == device:
        return tensor
    if not tensor.numel():
        return tensor.to(device)
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    flat = torch.as_strided(tensor, (span,), (1,), tensor.storage_offset())
    return torch.as_strided(flat.to(device), tensor.shape, tensor.stride(), 0)


def _give_back_persisting_lines() -> None:
    """cudaCtxResetPersistingL2Cache of the runtime that torch has loaded, if it is CUDA's."""
    runtime = _runtime()
    if runtime is not None:
        with contextlib.suppress(AttributeError):
            runtime.cudaCtxResetPersistingL2Cache()


_found: list[Any] = []


def _runtime() -> Any:
    if not _found:
        with open("/proc/self/maps") as maps:
            paths = re.findall(r"(/\S*libcudart\S*\.so\S*)", maps.read())
        _found.append(ctypes.CDLL(paths[0]) if paths else None)
    return _found[0]
