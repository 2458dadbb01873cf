"""CUDA-C to a sketch: its host code runs as compiled, and what its kernels are compiled to is run in place of their text (lift/ptx)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.lift.launches import Seen

EXECUTES = True
"""Whether launches are run while they are recorded."""


def install(tracer: Any, target: Mapping[str, Any]) -> None:
    """Before the file is loaded, and before the sandbox closes (our files cannot be read after that): launches go to `tracer`."""
    from kernelwright.compiler.backends.cuda_c import runtime
    from kernelwright.compiler.lift import compose  # noqa: F401
    from kernelwright.compiler.lift.explain import notation, torch_code  # noqa: F401
    from kernelwright.compiler.lift.formulas import forward
    from kernelwright.compiler.lift.ptx import cuda

    runtime.install(target)
    forward.this_machine()
    cuda.install(tracer)


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    from kernelwright.compiler.backends.cuda_c import runtime

    return runtime.context(calling=calling)


def follower(seen: Seen) -> Any:
    """What tells of each launch what it writes."""
    from kernelwright.compiler.lift.ptx.cuda import Compiled

    return Compiled(seen)


def lifted(seen: Seen) -> Any:
    """The sketch of what was seen, a `Lifted`."""
    from kernelwright.compiler.lift.compose import Lifted
    from kernelwright.compiler.lift.formulas.forward import sketch_of

    sketch = sketch_of(seen, follower(seen))
    return Lifted(sketch, (*seen.trace.notes, "what its compiled code computes was scheduled anew"))
