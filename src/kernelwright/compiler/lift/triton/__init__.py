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


def install(put: Any, target: Mapping[str, Any]) -> None:
    """Before the file is loaded, and before the sandbox closes (our files cannot be read after that): launches go to `put`."""
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    from kernelwright.compiler.lift import compose  # noqa: F401
    from kernelwright.compiler.lift.triton import front, reader, record  # noqa: F401
    from kernelwright.compiler.offdevice import redirect
    from kernelwright.sketch.interpret.interpreter import run  # noqa: F401

    redirect.install(target)
    record.install(put, target)


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    from kernelwright.compiler.offdevice.redirect import Redirect

    return Redirect(calling=calling)


def lifted(seen: Seen) -> Any:
    """The sketch of what was seen, a `Lifted`."""
    from kernelwright.compiler.lift.compose import Lifted, compose
    from kernelwright.compiler.lift.triton import record

    made = compose(seen.trace, _read, name=seen.name, doc=seen.doc, path=seen.path)
    return Lifted(made.sketch, (*made.notes, *dict.fromkeys(record.NOTES)))


def _read(launch: Launch, program: Program) -> None:
    """One launch's kernel into a program."""
    from kernelwright.compiler.lift.triton.front import function_of
    from kernelwright.compiler.lift.triton.reader import Reader

    buffers: dict[str, Buffer] = dict(program.views.buffers)
    function, values = function_of(launch, buffers, program.path)
    Reader(program, function, values).read()
