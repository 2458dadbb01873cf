"""`torch.cuda` without CUDA: each function answers from a target's sheet, or does nothing where there is nothing to do.

In: a target's sheet as plain data. Out: attributes of `torch.cuda`, replaced in this process for good (a candidate's process has
no other use). Work is synchronous on the CPU, so streams are in order, events are always done, and elapsed times are not given:
they read as zero, because no time that is taken here would mean anything.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch


class Stream:
    """A stream on which everything has been done already."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0
    device_type = 1

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def synchronize(self) -> None: ...
    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or Event()


class Event:
    """An event that has happened."""

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def record(self, *_: Any) -> None: ...
    def wait(self, *_: Any) -> None: ...
    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Any) -> float:
        """No time of the device passes here."""
        return 0.0


class device:  # torch's own name
    """`with torch.cuda.device(i)`: there is one device."""

    def __init__(self, *_: Any) -> None: ...

    def __enter__(self) -> device:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


def capability(target: Mapping[str, Any]) -> tuple[int, int]:
    """(9, 0) for sm_90; AMD's gfx942 says (9, 4), as torch does there."""
    if target.get("kind") == "ascend":  # has none; kernels that ask take the way of the oldest GPU
        return 0, 0
    digits = "".join(c for c in str(target.get("arch", "")) if c.isdigit())
    if target.get("kind") == "rocm":
        return int(digits[0]), int(digits[1])
    return (int(digits[:-1]), int(digits[-1])) if len(digits) >= 2 else (9, 0)


def properties(target: Mapping[str, Any]) -> Any:
    """What `get_device_properties` gives, from the sheet."""
    major, minor = capability(target)
    shared = int(target.get("shared_memory") or 0)
    per_block = int(target.get("shared_memory_per_block") or shared)
    return types.SimpleNamespace(
        name=str(target.get("title", "")),
        major=major,
        minor=minor,
        total_memory=int(target.get("memory") or 0),
        multi_processor_count=int(target.get("cores") or 1),
        max_threads_per_multi_processor=int(target.get("threads_per_core") or 2048),
        max_threads_per_block=1024,
        warp_size=int(target.get("warp") or 32),
        regs_per_multiprocessor=int(target.get("registers") or 65536),
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=per_block,
        shared_memory_per_multiprocessor=shared,
        L2_cache_size=int(target.get("last_level_cache") or 0),
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName=str(target.get("arch", "")),
    )


def install(target: Mapping[str, Any]) -> None:
    """Replace what `torch.cuda` offers."""
    sheet = properties(target)

    # Each answer is a function of its own: torch keeps tables by function, and refuses one that has two names.
    def nothing() -> Callable[..., None]:
        return lambda *_, **__: None

    def always(value: Any) -> Callable[..., Any]:
        return lambda *_, **__: value

    stream = Stream()
    answers: dict[str, Any] = {
        "is_available": always(True),
        "is_initialized": always(True),
        "init": nothing(),
        "_lazy_init": nothing(),
        "device_count": always(1),
        "current_device": always(0),
        "set_device": nothing(),
        "get_device_name": always(sheet.name),
        "get_device_capability": always((sheet.major, sheet.minor)),
        "get_device_properties": always(sheet),
        "get_arch_list": always([str(target.get("arch", ""))]),
        "is_bf16_supported": always(sheet.major >= 8 or target.get("kind") == "ascend"),
        "synchronize": nothing(),
        "current_stream": always(stream),
        "default_stream": always(stream),
        "stream": lambda *_: contextlib.nullcontext(),
        "set_stream": nothing(),
        "Stream": Stream,
        "Event": Event,
        "device": device,
        "device_of": device,
        "empty_cache": nothing(),
        "ipc_collect": nothing(),
        "manual_seed": lambda seed: torch.default_generator.manual_seed(seed),
        "manual_seed_all": lambda seed: torch.default_generator.manual_seed(seed),
        "seed": nothing(),
        "memory_allocated": always(0),
        "max_memory_allocated": always(0),
        "memory_reserved": always(0),
        "max_memory_reserved": always(0),
        "reset_peak_memory_stats": nothing(),
        "reset_max_memory_allocated": nothing(),
        "memory_stats": always({}),
        "mem_get_info": always((sheet.total_memory, sheet.total_memory)),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch.cuda.amp.autocast = lambda *_, **__: contextlib.nullcontext()
    torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop, torch.cuda.nvtx.mark = nothing(), nothing(), nothing()
    if target.get("kind") == "rocm":
        torch.version.hip = "7.0"
    elif target.get("kind") == "ascend":
        _install_npu()
    else:
        torch.version.cuda = "13.0"
    _redirect_default_device()


def _install_npu() -> None:
    """What torch_npu adds to torch, by the names that it has there; a tensor's device still reads as cuda, as torch knows no other."""
    torch.npu = torch.cuda
    torch.Tensor.npu = lambda tensor, *_, **__: tensor.cuda()
    torch.Tensor.is_npu = property(lambda tensor: tensor.is_cuda)
    torch.nn.Module.npu = lambda module, *_, **__: module
    sys.modules.setdefault("torch_npu", types.ModuleType("torch_npu"))


def _redirect_default_device() -> None:
    """`torch.set_default_device("cuda")` means: everything is on the device, which everything is anyway."""
    original = torch.set_default_device

    def set_default_device(wanted: Any) -> None:
        if str(wanted).split(":")[0] not in ("cuda", "hip", "npu"):
            original(wanted)

    torch.set_default_device = set_default_device
