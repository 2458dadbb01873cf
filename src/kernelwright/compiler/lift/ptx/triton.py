"""A recorded launch of Triton → its PTX for a device that executes warps, with mathematics still by name.

Triton's own path from arguments to signature is taken; it stops before the assembler. The library of mathematical functions is replaced by
an empty one, so that `erf` and its kin stay calls.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from kernelwright.compiler.lift.formulas.memory import Followed
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.launches import Buffer, Launch, View
from kernelwright.compiler.lift.ptx.follow import Started, follow
from kernelwright.gpu.ptx import parse
from kernelwright.target.sheet import Target

DEVICE = "a100"
"""What is compiled for: tensor cores by `mma.sync`, and no instruction that hides what it computes."""
_EMPTY = 'target triple = "nvptx64-nvidia-cuda"\n'
_TRITON: dict[str, Any] = {}


def install(run: Any) -> None:
    """Before the sandbox closes: `run` is Triton's own `JITFunction.run`, which compiles."""
    import triton
    from triton.backends.nvidia import compiler

    from kernelwright.compiler.backends.triton.driver import Driver

    _TRITON.update(run=run, driver=Driver(triton, asdict(Target.load(DEVICE))), backend=compiler.CUDABackend, triton=triton)


class Compiled:
    """Launches of a trace, followed by their PTX."""

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self.buffers = buffers

    def __call__(self, launch: Launch) -> Followed:
        """What a launch writes."""
        return follow(self.started(launch), self.buffers)

    def started(self, launch: Launch) -> Started:
        """The launch with its compiled code."""
        try:
            compiled = self._compile(launch)
        except Exception as error:
            first = next((line for line in str(error).splitlines()[::-1] if line.strip()), type(error).__name__)
            raise Refused(0, f"{launch.name} does not compile: {first.strip()}") from error
        module = parse(compiled.asm["ptx"])
        arguments = [_plain(launch.arguments[name]) for name, kind in compiled.src.signature.items() if kind != "constexpr"]
        grid = (*launch.grid, 1, 1)[:3]
        threads = int(compiled.metadata.num_warps) * 32
        shared = int(compiled.metadata.shared)
        return Started(module, module.entries[0], grid, (threads, 1, 1), shared, arguments, launch.name)  # type: ignore[arg-type]

    def _compile(self, launch: Launch) -> Any:
        triton = _TRITON["triton"]
        os.environ["TRITON_CACHE_DIR"] = tempfile.gettempdir()
        triton.knobs.nvidia.libdevice_path = _empty_library()
        active, make = triton.runtime.driver.active, _TRITON["backend"].make_cubin
        triton.runtime.driver.set_active(_TRITON["driver"])
        _TRITON["backend"].make_cubin = lambda *_: b""
        try:
            given = {name: self._example(value) for name, value in launch.arguments.items()}
            return _TRITON["run"](launch.kernel, grid=(1,), warmup=True, **given, **launch.options)
        finally:
            _TRITON["backend"].make_cubin = make
            triton.runtime.driver.set_active(active)

    def _example(self, value: Any) -> Any:
        """A tensor of the same type: only that, and how it is aligned, enters the code."""
        if isinstance(value, View):
            return torch.empty(16, dtype=getattr(torch, self.buffers[value.buffer].dtype.torch_name))
        return value


def _plain(value: Any) -> Any:
    if isinstance(value, View | bool | int | float) or value is None:
        return value
    raise Refused(0, f"an argument of kind {type(value).__name__} is not read")


def _empty_library() -> str:
    """The path of a library of mathematics without a function."""
    path = os.path.join(tempfile.gettempdir(), "no-mathematics.ll")
    with open(path, "w") as file:
        file.write(_EMPTY)
    return path
