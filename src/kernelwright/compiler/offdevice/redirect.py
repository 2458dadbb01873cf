"""The device redirect: torch code that asks for `cuda` gets the CPU, and is told what it would be told on the target.

In: a target's sheet as plain data (`install`), then a context for each piece of foreign code (`Redirect`). Out: ordinary CPU
tensors. Inside the context `x.device`, `x.is_cuda` and the like say what they would say on the device; outside of it torch is
as it always was, so the judge's own code sees honest CPU tensors.

What a GPU does not do for a kernel is not done here either: memory that `torch.empty` hands out holds garbage (NaN), a tensor
that was made without a device stays on the host, and a host tensor is refused by `require_device`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernelwright.compiler.offdevice import cuda_api

HOST = "_kernelwright_on_host"
"""Python attribute of tensors that would lie in the host's memory."""
GPU_TYPES = ("cuda", "hip", "npu")
GARBAGE = 0xFF
"""Each byte of uninitialised memory: NaN in every float type, -1 in every integer type."""

_UNINITIALISED = {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty, torch.Tensor.new_empty_strided}
_FACTORIES = {
    torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint, torch.randperm, torch.arange,
    torch.linspace, torch.eye, torch.tensor, torch.empty_strided, torch.scalar_tensor, torch.as_tensor, torch.from_numpy,
}  # fmt: skip
_memset = ctypes.memset
_host_work: set[str] = set()


def install(target: Mapping[str, Any]) -> None:
    """Make `torch.cuda` answer as on the target. `target` has the fields of a `Target`."""
    cuda_api.install(target)


def host_work() -> list[str]:
    """What left the device for the host's libraries so far, named like an operator. A kernel's work is done on the device."""
    return sorted(_host_work)


def on_device(tensor: Any) -> bool:
    """Whether a tensor would lie in the device's memory."""
    return not getattr(tensor, HOST, False)


def require_device(name: str, tensor: Any) -> None:
    """What a launch does with a pointer into the host's memory."""
    if not on_device(tensor):
        raise ValueError(f"argument {name} is a CPU tensor; the kernel cannot read it on the device (give it a device=)")


class Redirect(TorchFunctionMode):  # type: ignore[misc]
    """Open around foreign code. `calling` is False while a module is built: what is made then is moved to the device by whoever
    uses the module, as `ModelNew(...).cuda()` does."""

    def __init__(self, *, calling: bool) -> None:
        super().__init__()
        self.calling = calling

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        special = _SPECIAL.get(func)
        if special is not None:
            if self.calling and special is _numpy:
                _host_work.add("prims::numpy_on_the_host")
            return special(*args, **kwargs)
        wanted = _gpu(kwargs.get("device"))
        if wanted:
            kwargs["device"] = "cpu"
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        # A device is given by position to few functions: Tensor.to is special, the others take it by name.
        result = func(*args, **kwargs)
        if func in _UNINITIALISED and type(result) is torch.Tensor:
            _spoil(result)
        if (self.calling and func in _FACTORIES and not wanted and type(result) is torch.Tensor) or (
            func in _KEEP_HOST and args and getattr(args[0], HOST, False) and type(result) is torch.Tensor
        ):
            setattr(result, HOST, True)
        return result


def _spoil(tensor: Any) -> None:
    """Uninitialised memory holds garbage: who counts on zeros must be wrong here, too."""
    if tensor.numel():
        span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        _memset(tensor.data_ptr(), GARBAGE, span * tensor.element_size())


def _gpu(device: Any) -> bool:
    """Whether a device argument names the GPU."""
    if device is None or isinstance(device, bool):
        return False
    if isinstance(device, int):
        return True
    kind = device.type if isinstance(device, torch.device) else str(device).split(":")[0]
    return kind in GPU_TYPES


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in (*GPU_TYPES, "cpu"))


def _moved(tensor: Any, *, host: bool) -> Any:
    """The tensor on the other side: the same memory is never seen from both."""
    if getattr(tensor, HOST, False) == host:
        return tensor
    copy = tensor.detach().clone()
    if host:
        setattr(copy, HOST, True)
    return copy


def _to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
    device = kwargs.pop("device", None)
    rest = []
    for value in args:
        if isinstance(value, torch.Tensor):
            rest.append(value.dtype)
            device = "cuda" if on_device(value) else "cpu"
        elif _is_device(value) or (isinstance(value, int) and not isinstance(value, bool) and device is None and not rest):
            device = value
        elif value is not None:
            rest.append(value)
    given = isinstance(rest[0], torch.dtype) if rest else "dtype" in kwargs
    kwargs.pop("non_blocking", None)
    result = tensor
    if given or kwargs:
        result = tensor.to(*[value for value in rest if isinstance(value, torch.dtype)], **kwargs)
        if getattr(tensor, HOST, False) and result is not tensor:
            setattr(result, HOST, True)
    return result if device is None else _moved(result, host=not _gpu(device))


def _cuda(tensor: Any, *_: Any, **__: Any) -> Any:
    return _moved(tensor, host=False)


def _cpu(tensor: Any, *_: Any, **__: Any) -> Any:
    return _moved(tensor, host=True)


def _numpy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
    if on_device(tensor):
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return tensor.numpy(*args, **kwargs)


def _device(tensor: Any) -> Any:
    return torch.device("cuda", 0) if on_device(tensor) else torch.device("cpu")


def _same(tensor: Any, *_: Any, **__: Any) -> Any:
    return tensor


_KEEP_HOST = {torch.Tensor.contiguous, torch.Tensor.view, torch.Tensor.reshape, torch.Tensor.t, torch.Tensor.transpose}
_SPECIAL: dict[Any, Any] = {
    torch.Tensor.to: _to,
    torch.Tensor.cuda: _cuda,
    torch.Tensor.cpu: _cpu,
    torch.Tensor.numpy: _numpy,
    torch.Tensor.__array__: _numpy,
    torch.Tensor.pin_memory: _same,
    torch.Tensor.is_pinned: lambda tensor, *_, **__: False,
    torch.Tensor.record_stream: lambda tensor, stream: None,
    torch.Tensor.get_device: lambda tensor: 0 if on_device(tensor) else -1,
    torch.Tensor.is_cuda.__get__: on_device,
    torch.Tensor.is_cpu.__get__: lambda tensor: not on_device(tensor),
    torch.Tensor.device.__get__: _device,
}
__all__ = ["HOST", "Redirect", "host_work", "install", "on_device", "require_device"]
