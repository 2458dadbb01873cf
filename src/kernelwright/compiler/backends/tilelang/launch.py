"""What TileLang hands out instead of a compiled kernel: an object that takes torch tensors and interprets, or executes (`compiled`).

`teach()` replaces the one place from which `tilelang.compile`, `tilelang.jit` and the autotuner get their kernels. Every call is checked as
the device's adapter checks it (number of arguments, dtype, shape, strides, device), outputs that `out_idx` names are made here,
and launches are put down for the compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tilelang
import tilelang.autotuner.tuner
import torch

from kernelwright.compiler.backends.tilelang.arrays import Array, numpy_dtype, of_tensor
from kernelwright.compiler.backends.tilelang.interpreter import Grid, Program
from kernelwright.compiler.offdevice.redirect import on_device, require_device

MOST_DISTINCT = 24
_Parameter = torch.nn.Parameter


@dataclass
class Launched:
    """A function that was called: what the compiler needs, and the grids of its kernels at the first call."""

    function: Any
    passes: Mapping[str, Any]
    flags: tuple[str, ...]
    grids: tuple[Grid, ...]


@dataclass(frozen=True)
class Executed:
    """The code of a function that was executed: its PTX, the architecture, and the name and attributes of each kernel."""

    ptx: str
    arch: str
    entries: Sequence[tuple[str, Mapping[str, Any]]]


@dataclass
class Record:
    """What happened so far."""

    count: int = 0
    launches: dict[int, Launched] = field(default_factory=dict)
    tf32: bool = False
    autotuned: int = 0
    executed: dict[int, Executed] = field(default_factory=dict)
    """What was executed, by the kernel's id."""


RECORD = Record()


class InterpretedKernel:
    """Stands for a `JITKernel`."""

    interprets = True
    """Whether statements are interpreted, or only sizes are worked out."""

    def __init__(self, function: Any, out_idx: Any, passes: Any, flags: Any) -> None:
        self.prim_func = function
        self.program = Program(function, runs=self.interprets)
        count = len(function.params)
        wanted = [out_idx] if isinstance(out_idx, int) else list(out_idx or ())
        for number in wanted:
            if not -count <= int(number) < count:
                raise ValueError(f"out_idx {number} is not an argument of a function with {count}")
        self.out_idx = sorted(int(number) % count for number in wanted)
        self.passes = dict(passes or {})
        self.flags = tuple([flags] if isinstance(flags, str) else flags or ())
        self.params = list(function.params)
        self.latency = self.ref_latency = self.config = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function; gives its outputs as the device's adapter does."""
        given = [*args, *kwargs.values()]
        count = len(self.params)
        if len(given) == count:
            arguments = given
        elif len(given) == count - len(self.out_idx):
            rest = iter(given)
            arguments = [None if number in self.out_idx else next(rest) for number in range(count)]
        else:
            raise ValueError(f"the kernel takes {count - len(self.out_idx)} arguments, {len(given)} were given")
        self.program.forget()
        self.program.bind(arguments)
        arguments = [self._output(number) if value is None else value for number, value in enumerate(arguments)]
        self.execute(arguments)
        if len(given) == count and not self.out_idx:
            return None
        results = [arguments[number] for number in self.out_idx]
        return results[0] if len(results) == 1 else results

    def execute(self, arguments: Sequence[Any]) -> None:
        """Runs the kernels on arguments that are all there."""
        self.program.run([self._argument(number, value) for number, value in enumerate(arguments)])
        self._put_down()

    def _output(self, number: int) -> Any:
        var = self.params[number]
        buffer = self.program.tensors[hash(var)]
        return torch.empty(self.program.shape_of(var), dtype=getattr(torch, str(buffer.dtype)), device="cuda")

    def _argument(self, number: int, value: Any) -> Any:
        buffer = self.program.tensors.get(hash(self.params[number]))
        if buffer is None:
            if isinstance(value, torch.Tensor):
                raise TypeError(f"argument {number} is a scalar, a tensor was given")
            return value
        name, wanted = str(buffer.name), str(buffer.dtype)
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(value).__name__}")
        if on_device(value) is False:
            require_device(name, value)
        have = str(value.dtype).removeprefix("torch.")
        if have != wanted and not (wanted == "float8_e4m3" and have == "float8_e4m3fn"):
            raise TypeError(f"{name} must be {wanted}, not {have}")
        if not buffer.strides or all(type(stride).__name__ == "IntImm" for stride in buffer.strides):
            expected = 1
            for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
                if size != 1 and stride != expected:
                    raise ValueError(f"{name} must be contiguous, its strides are {list(value.stride())}")
                expected *= size
        return of_tensor(value, numpy_dtype(wanted))

    def _put_down(self) -> None:
        RECORD.count += len(self.program.grids)
        RECORD.tf32 |= self.program.state.tf32
        if len(RECORD.launches) < MOST_DISTINCT:
            RECORD.launches.setdefault(id(self), Launched(self.prim_func, self.passes, self.flags, tuple(self.program.grids)))
        _alive[id(self)] = self

    # ------------------------------------------------------------ what people ask a kernel

    def get_kernel_source(self, *_: Any, **__: Any) -> str:
        return str(self.prim_func.script())

    kernel_source = property(get_kernel_source)

    def get_profiler(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("there is no device here: nothing can be profiled")

    def update_tuner_result(self, latency: Any, config: Any, ref_latency: Any) -> InterpretedKernel:
        self.latency, self.config, self.ref_latency = latency, config, ref_latency
        return self


_alive: dict[int, InterpretedKernel] = {}


def made(
    func: Any = None, out_idx: Any = None, *_: Any, pass_configs: Any = None, compile_flags: Any = None, **__: Any
) -> InterpretedKernel:
    """Instead of `tilelang.cache.cached`."""
    return InterpretedKernel(func, out_idx, pass_configs, compile_flags)


def teach(maker: Callable[..., Any] = made) -> None:
    """From now on TileLang interprets, or does with a kernel what `maker` makes of it."""
    for name in ("tilelang.jit", "tilelang.cache", "tilelang"):
        module = sys.modules[name]
        if hasattr(module, "cached"):
            module.cached = maker  # type: ignore[attr-defined]
    tuner = tilelang.autotuner.tuner.AutoTuneImpl
    tuner.__call__ = _first_configuration


def _first_configuration(self: Any, *args: Any, **kwargs: Any) -> Any:
    """An autotuned function with the first of its configurations: nothing can be measured here."""
    RECORD.autotuned += 1
    configs = self.configs(*args, **kwargs) if callable(self.configs) else self.configs
    config: Mapping[str, Any] = next(iter(configs), {})
    names: Sequence[str] = list(self.jit_impl.signature.parameters)
    taken = {*names[: len(args)], *kwargs}
    return self.jit_impl(*args, **{name: value for name, value in dict(config).items() if name not in taken}, **kwargs)


__all__ = ["RECORD", "Array", "Executed", "InterpretedKernel", "Launched", "teach"]
