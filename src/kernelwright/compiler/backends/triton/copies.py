"""Two copies of Triton in one process: one that interprets, one that compiles.

Whether `@triton.jit` gives an interpreted function or a compiled one is decided when it decorates, also inside Triton itself
(`tl.sum` and the like); a package imported for one cannot do the other. So the package's Python modules are imported twice, around
the one native library. Where kernels are interpreted, `INTERPRETING` is what a kernel file finds under `import triton`, and `compiling()`
puts the other copy in its place for as long as the compiler works, because it imports parts of itself by name while it does. Where
they are executed as compiled, `COMPILING` takes its place for good.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType

INTERPRET = "TRITON_INTERPRET"
NATIVE = "triton._C"
WANTED = (
    *("triton", "triton.language", "triton.compiler", "triton.testing", "triton.language.extra.libdevice"),
    *("triton.language.extra.cuda", "triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice"),
    *("triton.tools.tensor_descriptor", "triton.runtime.driver", "triton.runtime.jit", "triton.runtime.autotuner"),
    "triton.backends.compiler",
)


def _loaded() -> dict[str, ModuleType]:
    """Triton's Python modules that are imported now. The native library is shared."""
    return {
        name: module
        for name, module in sys.modules.items()
        if name.split(".")[0] == "triton" and name != NATIVE and not name.startswith(f"{NATIVE}.")
    }


def _import(*, interpret: bool) -> dict[str, ModuleType]:
    for name in _loaded():
        del sys.modules[name]
    os.environ.pop(INTERPRET, None)
    if interpret:
        os.environ[INTERPRET] = "1"
    for name in WANTED:
        importlib.import_module(name)
    return _loaded()


COMPILING = _import(interpret=False)
INTERPRETING = _import(interpret=True)


def compile_from_now_on() -> None:
    """The compiling copy as `triton` for good: what is executed is what it compiles."""
    os.environ.pop(INTERPRET, None)
    _replace(COMPILING)


@contextlib.contextmanager
def compiling() -> Iterator[dict[str, ModuleType]]:
    """The compiling copy as `triton` for a while."""
    interpreting = _loaded()
    before = os.environ.pop(INTERPRET, None)
    _replace(COMPILING)
    try:
        yield COMPILING
    finally:
        COMPILING.update(_loaded())
        _replace(interpreting)
        if before is not None:
            os.environ[INTERPRET] = before


def _replace(modules: dict[str, ModuleType]) -> None:
    for name in _loaded():
        del sys.modules[name]
    sys.modules.update(modules)
