"""CUDA-C without a GPU: what the judge's sandboxed process needs, imported before the sandbox closes (see `OffDeviceRuntime`).

A kernel file builds its CUDA source as it always does: with nvcc in a subprocess, or with `load_inline`. Both are compiled by nvcc against
our CUDA runtime (`builds`, `inline`), and what it launches is executed as compiled (`gpu/`). Afterwards the assembler makes the
target's machine code of the same PTX (`aot`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.backends.cuda_c import aot, builds, inline
from kernelwright.compiler.offdevice import profiling
from kernelwright.compiler.offdevice.cuda_names import plain_name
from kernelwright.compiler.offdevice.redirect import Redirect
from kernelwright.compiler.offdevice.redirect import host_work as on_the_host
from kernelwright.compiler.offdevice.redirect import install as redirect


def install(target: Mapping[str, Any]) -> None:
    """Before the kernel file is loaded."""
    redirect(target)
    builds.install(target)
    inline.install()


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    return _Scene(calling=calling)


class _Scene(Redirect):
    """The device redirect; tensors of an earlier call are forgotten when a new one begins."""

    def __enter__(self) -> Any:
        if self.calling:
            builds.begin_call()
        return super().__enter__()


def launches() -> int:
    """Kernels launched so far."""
    return builds.launch_count()


def host_work() -> list[str]:
    """What was done by the host's or a library's routines instead of a kernel."""
    return [*on_the_host(), *builds.library_calls()]


def compile_for(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compile what was launched, and profile the launches of the first call."""
    compiled = aot.compile_launches(builds.launched(), builds.built(), target)
    return compiled | profiling.reply(builds.recorder, target, plain_name)


def notes() -> list[str]:
    """How it was executed, where that is not what the device does."""
    if not builds.launched():
        return []
    return [f"executed as compiled for sm_{builds.architecture()}"]
