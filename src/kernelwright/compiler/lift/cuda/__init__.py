"""Reading CUDA-C: other people's kernels → what each element of their results is → a sketch.

A GPU kernel says the same thing in a thousand ways: strides, shared memory, trees, shuffles, float4, registers. So it is not read
by its text but by what it does, exactly:

1. `record`              the emulator runs the file's launches and tells them
2. `read`                the source: the real preprocessor, then tree-sitter
3. `block`               blocks of threads run in step with real indices and unknown data (`statements`, `expressions`, `builtins`,
                         `lanes`, `allocations`, `picked`, `literals`, `scope`); a tape (lift/formulas) keeps only arithmetic on data
4. `sources`             several sources and their lines; lift/formulas makes a sketch of what is left

The sketch is run on the same inputs before it is given out: a reading that computes something else is a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.lift.launches import Seen

EXECUTES = True
"""Whether launches are run while they are recorded."""


def install(put: Any, target: Mapping[str, Any]) -> None:
    """Before the file is loaded, and before the sandbox closes (our files cannot be read after that): launches go to `put`."""
    from kernelwright.compiler.backends.cuda_c import runtime
    from kernelwright.compiler.lift import compose  # noqa: F401
    from kernelwright.compiler.lift.cuda import record, sources  # noqa: F401
    from kernelwright.compiler.lift.cuda.read import parser
    from kernelwright.compiler.lift.formulas import forward

    runtime.install(target)
    forward.this_machine()
    record.install(put)
    parser()


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    from kernelwright.compiler.backends.cuda_c import runtime

    return runtime.context(calling=calling)


def lifted(seen: Seen) -> Any:
    """The sketch of what was seen, a `Lifted`."""
    from kernelwright.core.errors import CannotLift

    raise CannotLift("CUDA-C is executed as compiled, and is not yet read from that")
