"""Compiling ahead of time: launches that were executed in, the compiler's figures for a target out.

The interpreted functions are made anew for the compiling copy of Triton: the same code objects, with every part of Triton in
their globals exchanged for the compiling copy's. Then Triton's own path from arguments to signature is taken (`warmup`), with
pointers that have a dtype and no memory, under a driver that describes the target.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.compiler.backends.triton.ascend.lower import lower_launches
from kernelwright.compiler.backends.triton.copies import COMPILING, INTERPRETING, compiling
from kernelwright.compiler.backends.triton.driver import Driver
from kernelwright.compiler.backends.triton.interpreter.patches import RECORD, Launched, Pointer
from kernelwright.compiler.language import CompileFailed
from kernelwright.compiler.offdevice import amdgcn, cubin

MOST_DISTINCT = 24
_interpreter: Any = INTERPRETING["triton.runtime.interpreter"]
_interpreted_core: Any = INTERPRETING["triton.language.core"]


def compile_launches(target: Mapping[str, Any], launches: Sequence[Launched]) -> dict[str, Any]:
    """Figures of every distinct launch; CompileFailed with the compiler's first error."""
    if target["kind"] == "ascend":
        return lower_launches(target, distinct(launches))
    with compiling() as modules:
        triton: Any = modules["triton"]
        triton.runtime.driver.set_active(Driver(triton, target))
        exchange = _Exchange()
        kernels = [_compile(triton, exchange, launch, target) for launch in distinct(launches)]
        return {"compiler": f"triton {triton.__version__}", "kernels": kernels}


def distinct(launches: Sequence[Launched]) -> list[Launched]:
    """Launches that differ in what a compiler sees: dtypes, constants, options. The first grid of each stays."""
    found: dict[str, Launched] = {}
    for launch in launches:
        key = repr((id(launch.function), launch.args, sorted(launch.kwargs.items(), key=lambda item: item[0])))
        found.setdefault(key, launch)
    return list(found.values())[:MOST_DISTINCT]


def _compile(triton: Any, exchange: _Exchange, launch: Launched, target: Mapping[str, Any]) -> dict[str, Any]:
    """One kernel. A configuration of the autotuner that does not fit gives way to the next, as on the device."""
    room = int(target["shared_memory_per_block"] or target["shared_memory"] or 1 << 30)
    function = exchange.function(launch.function)
    figures: dict[str, Any] = {}
    for config in ({}, *launch.others):
        args = [exchange.argument(triton, value) for value in launch.args]
        kwargs = {name: exchange.argument(triton, value) for name, value in {**launch.kwargs, **config}.items()}
        try:
            compiled = function.warmup(*args, grid=(1,), **kwargs)
        except Exception as error:
            raise CompileFailed(first_error(launch.function.fn.__name__, error)) from None
        figures = figures_of(compiled.metadata, compiled.asm, launch)
        if (figures["shared_memory"] or 0) <= room:
            break
    return figures


def figures_of(metadata: Any, code: Mapping[str, Any], launch: Launched) -> dict[str, Any]:
    """A launch with what its machine code says of itself."""
    found: dict[str, int | None] = {"registers": None, "spills": None}
    if "cubin" in code:
        usage = cubin.usage(code["cubin"])
        found = {"registers": max(u.registers for u in usage.values()), "spills": max(u.stack for u in usage.values())}
    elif "amdgcn" in code:
        found = amdgcn.usage(code["amdgcn"])
    blocks = 1
    for extent in launch.grid:
        blocks *= extent
    warp = int(getattr(metadata, "warp_size", 0) or metadata.target.warp_size)
    return {
        "name": launch.function.fn.__name__,
        **found,
        "shared_memory": int(metadata.shared),
        "threads": int(metadata.num_warps) * warp,
        "blocks": blocks,
    }


def first_error(name: str, error: BaseException) -> str:
    """The compiler's words without its internals, with the kernel's name."""
    cause = error
    while cause.__cause__ is not None and type(cause).__name__ == "CompilationError":
        cause = cause.__cause__
    text = str(error).strip() or str(cause)
    where = re.search(r"^at (\d+):(\d+):", text, re.MULTILINE)
    reason = (str(cause).strip() or text).splitlines()
    last = text.splitlines()[-1].strip()
    place = f" at line {where[1]} of the function" if where else ""
    short = last if cause is error else reason[0]
    return f"error: {name}{place}: {short}\n{text}"


class _Exchange:
    """Makes objects of the interpreting copy into those of the compiling copy; each function once."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def function(self, interpreted: Any) -> Any:
        """An interpreted function as one to compile; one that is compiled anyway is left as it is."""
        if not isinstance(interpreted, _interpreter.InterpretedFunction):
            return interpreted
        known = self._made.get(id(interpreted))
        if known is not None:
            return known
        original = interpreted.fn
        own = COMPILING.get(original.__module__)
        if own is not None and hasattr(own, original.__name__):
            return getattr(own, original.__name__)
        names: dict[str, Any] = {}
        copy = types.FunctionType(original.__code__, names, original.__name__, None, original.__closure__)
        copy.__module__, copy.__qualname__, copy.__doc__ = original.__module__, original.__qualname__, original.__doc__
        copy.__annotations__ = {name: self.value(kind) for name, kind in original.__annotations__.items()}
        copy.__kwdefaults__ = (
            {name: self.value(v) for name, v in original.__kwdefaults__.items()} if original.__kwdefaults__ else None
        )
        copy.__defaults__ = tuple(self.value(v) for v in original.__defaults__) if original.__defaults__ else None
        options = {name: interpreted.kwargs[name] for name in interpreted.kwargs if name != "launch_metadata"}
        made = self._made[id(interpreted)] = COMPILING["triton.runtime.jit"].JITFunction(copy, **options)
        used = set(_names(original.__code__))
        found = original.__globals__.items()
        # Modules always: annotations (`BLOCK: tl.constexpr`) name them, and are not in the code.
        names.update({name: self.value(value) for name, value in found if name in used or isinstance(value, types.ModuleType)})
        names["__builtins__"] = __builtins__
        return made

    def value(self, value: Any) -> Any:
        """A global, a default or a constant."""
        if isinstance(value, types.ModuleType):
            return COMPILING.get(value.__name__, value) if value.__name__.split(".")[0] == "triton" else value
        if isinstance(value, _interpreter.InterpretedFunction):
            return self.function(value)
        if type(value).__name__ == "ConstexprFunction":  # works on constants, in Python
            return COMPILING["triton.runtime.jit"].ConstexprFunction(value.fn)
        if isinstance(value, _interpreted_core.constexpr):
            return COMPILING["triton.language.core"].constexpr(self.value(value.value))
        if isinstance(value, _interpreted_core.dtype):
            return COMPILING["triton.language.core"].dtype(value.name)
        if id(value) in RECORD.originals:
            module, name = RECORD.originals[id(value)]
            return getattr(COMPILING[module], name)
        home = getattr(value, "__module__", None)
        if isinstance(home, str) and home in COMPILING and hasattr(value, "__name__"):
            return getattr(COMPILING[home], value.__name__, value)
        if isinstance(value, tuple | list) and type(value) in (tuple, list):
            return type(value)(map(self.value, value))
        return value

    def argument(self, triton: Any, value: Any) -> Any:
        """An argument of a launch."""
        if isinstance(value, Pointer):
            mock = triton.runtime.jit.MockTensor(value.dtype, list(value.shape))
            mock.stride = lambda *axis: value.strides[axis[0]] if axis else value.strides
            return mock
        if type(value).__name__ == "TensorDescriptor":
            kind = type(value)  # the class that the native library knows: it is shared by both copies
            return kind(value.base, list(value.shape), list(value.strides), list(value.block_shape))
        if isinstance(value, tuple | list) and type(value) in (tuple, list):
            return type(value)(self.argument(triton, item) for item in value)
        return self.value(value)


def _names(code: types.CodeType) -> list[str]:
    """Names of globals that a function's code mentions, inner functions included."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return [*code.co_names, *inner]
