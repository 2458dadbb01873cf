"""Triton source to a sketch.

1. `record`    launches put down instead of run
2. `front`     a launch's kernel through Triton's own front end to TTIR; `ttir` reads that text
3. `reader`    TTIR to statements: `integers` (addresses), `elements`, `tiles`, `loops`, `combining` (functions of the kernel's own)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.lift.launches import Buffer, Launch, Seen
from kernelwright.compiler.lift.program import Program
from kernelwright.core.errors import CannotLift

EXECUTES = False
"""Whether launches are run while they are recorded."""


def install(tracer: Any, target: Mapping[str, Any]) -> None:
    """Before the file is loaded, and before the sandbox closes (our files cannot be read after that): launches go to `tracer`."""
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    from kernelwright.compiler.lift import compose  # noqa: F401
    from kernelwright.compiler.lift.explain import notation, torch_code  # noqa: F401
    from kernelwright.compiler.lift.formulas import forward
    from kernelwright.compiler.lift.ptx import triton as compiled
    from kernelwright.compiler.lift.triton import front, reader, record  # noqa: F401
    from kernelwright.compiler.offdevice import redirect
    from kernelwright.sketch.interpret.interpreter import run  # noqa: F401

    redirect.install(target)
    forward.this_machine()
    record.install(tracer.launch, target)
    compiled.install(record.Run.compiled)


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    from kernelwright.compiler.offdevice.redirect import Redirect

    return Redirect(calling=calling)


def follower(seen: Seen) -> Any:
    """What tells of each launch what it writes."""
    from kernelwright.compiler.lift.ptx.triton import Compiled

    return Compiled(seen.trace.buffers)


def lifted(seen: Seen) -> Any:
    """The sketch of what was seen, a `Lifted`: by the program's text where that is read, else by running what it is compiled to."""
    from kernelwright.compiler.lift.compose import Lifted, compose
    from kernelwright.compiler.lift.formulas.forward import sketch_of
    from kernelwright.compiler.lift.triton import record

    notes = tuple(dict.fromkeys(record.NOTES))
    try:
        made = compose(seen.trace, _read, name=seen.name, doc=seen.doc, path=seen.path)
        return Lifted(made.sketch, (*made.notes, *notes))
    except Exception as by_text:
        try:
            sketch = sketch_of(seen, follower(seen))
        except CannotLift as by_running:
            if isinstance(by_text, CannotLift) and by_text.line:
                told = f"{by_text.reason}; and as compiled: {by_running.reason}"
                raise CannotLift(told, path=by_text.path, line=by_text.line) from by_running
            raise
    return Lifted(sketch, (*seen.trace.notes, *notes, "what its compiled code computes was scheduled anew"))


def _read(launch: Launch, program: Program) -> None:
    """One launch's kernel into a program."""
    from kernelwright.compiler.lift.triton.front import function_of
    from kernelwright.compiler.lift.triton.reader import Reader

    buffers: dict[str, Buffer] = dict(program.views.buffers)
    function, values = function_of(launch, buffers, program.path)
    Reader(program, function, values).read()
