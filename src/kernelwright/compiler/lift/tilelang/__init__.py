"""TileLang source to a sketch.

1. `record`    calls of kernels put down instead of run; each `T.Kernel` of a function is a launch
2. `reader`    the tile program before lowering to statements: loops, branches, stores
3. `elements`  expressions of one element inside `T.Parallel`; `tileops` copies, products, reductions of whole regions
4. `buffers`   shared memory, fragments and variables of a block as tiles by name
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.lift.launches import Launch, Seen
from kernelwright.compiler.lift.program import Program
from kernelwright.core.errors import CannotLift

EXECUTES = False
"""Whether launches are run while they are recorded."""


def install(tracer: Any, target: Mapping[str, Any]) -> None:
    """Before the file is loaded, and before the sandbox closes: calls of kernels go to `tracer`."""
    os.environ["TILELANG_ENABLE_IR_SPAN"] = "1"  # statements know their lines
    from kernelwright.compiler.lift import compose  # noqa: F401
    from kernelwright.compiler.lift.tilelang import reader, record  # noqa: F401
    from kernelwright.compiler.offdevice import redirect

    redirect.install(target)
    record.install(tracer.launch)


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    from kernelwright.compiler.offdevice.redirect import Redirect

    return Redirect(calling=calling)


def follower(seen: Seen) -> Any:
    """What tells of each launch what it writes: nothing yet."""
    raise CannotLift(
        "TileLang is read by its text, which leaves a sketch and no formulas: kernelwright migrate writes it", path=seen.path
    )


def lifted(seen: Seen) -> Any:
    """The sketch of what was seen, a `Lifted`."""
    from kernelwright.compiler.lift.compose import Lifted, compose
    from kernelwright.compiler.lift.tilelang import record

    made = compose(seen.trace, _read, name=seen.name, doc=seen.doc, path=seen.path)
    return Lifted(made.sketch, (*made.notes, *record.notes()))


def _read(launch: Launch, program: Program) -> None:
    """One launch's kernel into a program."""
    from kernelwright.compiler.lift.tilelang.reader import Reader

    Reader(program, launch).write_kernel()
