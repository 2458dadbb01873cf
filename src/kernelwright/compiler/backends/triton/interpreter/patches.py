"""Triton's interpreter made ready for foreign kernels: patched once, for good, in the process of one candidate.

What is changed, each with its reason in the module that does it: bf16 arithmetic (bf16.py), reductions and scans (reductions.py), bounds
and undefined elements (checked_memory.py), libdevice (offdevice/libdevice.py), speed (speed.py), and here: the language is patched
once instead of at each launch and each call of a device function (milliseconds each), autotuning takes the first configuration,
benchmarks measure nothing, and every launch is put down for the compiler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelwright.compiler.backends.triton import driver
from kernelwright.compiler.backends.triton.copies import INTERPRETING
from kernelwright.compiler.backends.triton.interpreter import bf16, checked_memory, reductions, speed
from kernelwright.compiler.language import CompileFailed
from kernelwright.compiler.offdevice import libdevice
from kernelwright.compiler.offdevice.redirect import require_device

_triton = INTERPRETING["triton"]
_tl: Any = INTERPRETING["triton.language"]
_interpreter: Any = INTERPRETING["triton.runtime.interpreter"]
_jit: Any = INTERPRETING["triton.runtime.jit"]
_errors: Any = INTERPRETING["triton.runtime.errors"]
_autotuner: Any = INTERPRETING["triton.runtime.autotuner"]
_descriptor: Any = INTERPRETING["triton.tools.tensor_descriptor"]

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
MOST_LAUNCHES = 256
"""Launches that are put down for the compiler; distinct ones among them are far fewer."""


@dataclass(frozen=True)
class Launched:
    """One launch: the interpreted function, its arguments by position and name (options among the latter), and the grid.
    `others` are the autotuner's further configurations, for a target on which this one does not fit."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    grid: tuple[int, ...]
    others: tuple[dict[str, Any], ...] = ()


@dataclass
class Record:
    """What happened so far."""

    count: int = 0
    launches: list[Launched] = field(default_factory=list)
    tf32: bool = False
    brain: bool = False
    autotuned: int = 0
    originals: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Patched functions by id: the module and name under which the compiling copy has the real one."""
    others: tuple[dict[str, Any], ...] = ()


RECORD = Record()
MEMORY = checked_memory.Memory()


def teach(target: Mapping[str, Any]) -> None:
    """Patch the interpreting copy."""
    bf16.teach(_interpreter, _tl)
    reductions.teach(_interpreter, _tl)
    checked_memory.teach(_interpreter, _tl, MEMORY)
    _patch_language_once()
    _patch_libdevice()
    _patch_launch()
    _patch_dot()
    _patch_autotuner()
    speed.teach(_interpreter, _tl)
    _triton.runtime.driver.set_active(driver.Driver(_triton, target))
    _triton.testing.do_bench = _triton.testing.do_bench_cudagraph = _no_benchmark


def _patch_language_once() -> None:
    """All builtins of the language bound to the interpreter, also for files that import them by name."""
    RECORD.originals[id(_tl.sort)] = ("triton.language", "sort")
    before = {
        (module.__name__, name): member for module in (_tl, _tl.core, _tl.math) for name, member in inspect.getmembers(module)
    }
    scope = _interpreter._LangPatchScope()
    for module in (_tl, _tl.core):
        _interpreter._patch_builtin(module, _interpreter.interpreter_builder, scope)
        _interpreter._patch_lang_core(module, scope)
    _interpreter._patch_builtin(_tl.math, _interpreter.interpreter_builder, scope)
    for kind in (_tl.core.tensor, _tl.core.tensor_descriptor_base):
        _interpreter._patch_builtin(kind, _interpreter.interpreter_builder, scope)
    _interpreter._patch_lang_tensor(_tl.core.tensor, scope)
    for (module, name), member in before.items():
        patched = getattr(INTERPRETING[module], name, None)
        if patched is not None and patched is not member and callable(patched):
            RECORD.originals[id(patched)] = (module, name)
    _interpreter._patch_lang = lambda fn: _interpreter._LangPatchScope()
    for module in (_tl, _tl.core):
        plain = module.range
        module.range = _counting(plain)
        RECORD.originals[id(module.range)] = (module.__name__, "range")


class Counter(int):
    """The number of a loop's step. To the compiler it is a tensor, so kernels convert it (`row.to(tl.int64)`)."""

    def to(self, dtype: Any, *args: Any, **options: Any) -> Any:
        return _interpreter.interpreter_semantic.to_tensor(int(self)).to(dtype, *args, **options)

    cast = to


def _counting(plain: Any) -> Any:
    """A range whose numbers are counters."""

    def counted(*args: Any, **options: Any) -> Any:
        return map(Counter, plain(*args, **options))

    return counted


def _patch_libdevice() -> None:
    """libdevice's functions call the table of libdevice.py; the device-neutral module has CUDA's."""
    semantic = _interpreter.interpreter_semantic
    handle = _interpreter.TensorHandle

    def extern(self: Any, library: str, path: str, symbol: str, args: list[Any], kind: Any, pure: bool) -> Any:
        function = libdevice.function(symbol)
        if function is None:
            raise NotImplementedError(f"{symbol} of libdevice is not known to the interpreter")
        scalar = kind.scalar
        with np.errstate(all="ignore"):
            result = np.asarray(function(*(arg.data for arg in args)))
        return handle(result.astype(_interpreter._get_np_dtype(scalar)), scalar)

    _interpreter.InterpreterBuilder.create_extern_elementwise = extern

    def bound(member: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: member(*args, **{**kwargs, "_semantic": semantic})

    neutral = INTERPRETING["triton.language.extra.libdevice"]
    for place in ("triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice"):
        module = INTERPRETING[place]
        for name, member in inspect.getmembers(module, _tl.core.is_builtin):
            function = bound(member)
            setattr(module, name, function)
            RECORD.originals[id(function)] = (place, name)
            if place.endswith("cuda.libdevice") and hasattr(neutral, name):
                again = bound(member)
                setattr(neutral, name, again)
                RECORD.originals[id(again)] = (neutral.__name__, name)


def _patch_launch() -> None:
    kind = _interpreter.InterpretedFunction
    plain_run = kind.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return None
        bound = inspect.signature(self.fn).bind(*args, **{name: kwargs[name] for name in kwargs if name in self.arg_names})
        bound.apply_defaults()
        size = grid(dict(bound.arguments)) if callable(grid) else grid
        size = tuple(int(extent) for extent in (size if isinstance(size, tuple | list) else (size,)))
        ranges = [found for name, value in bound.arguments.items() for found in _ranges(name, value)]
        RECORD.count += 1
        if len(RECORD.launches) < MOST_LAUNCHES:
            RECORD.launches.append(Launched(self, plain(args), plain_names(kwargs), size, RECORD.others))
        MEMORY.open(ranges, trusting="pointer_type" in inspect.getsource(self.fn))
        try:
            with np.errstate(all="ignore"):
                return plain_run(self, *args, grid=size, warmup=False, **kwargs)
        except _errors.InterpreterError as error:
            if isinstance(error.__cause__, NotImplementedError):  # the compiler would refuse it, too
                raise CompileFailed(f"error: {self.fn.__name__}: {error.__cause__} (triton {_triton.__version__})") from error
            raise

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.rewrite()(*args, **kwargs)

    def warmup(self: Any, *args: Any, grid: Any = None, **kwargs: Any) -> Warmed:
        return Warmed(self, kwargs)

    kind.run, kind.__call__, kind.warmup = run, call, warmup


class Warmed:
    """What `kernel.warmup(…)` gives on the device: a compiled kernel that is asked for its resources and launched. The resources
    are modest guesses; what the compiler really needs is in the verdict."""

    n_regs, n_spills = 32, 0

    def __init__(self, function: Any, options: Mapping[str, Any]) -> None:
        self._function, self._options = (
            function,
            {name: options[name] for name in OPTIONS if name in options and name not in function.arg_names},
        )
        self.metadata = SimpleNamespace(shared=0, num_warps=int(options.get("num_warps", 4)), name=function.fn.__name__)

    def _init_handles(self) -> None: ...

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args: self._function.run(*args, grid=grid, warmup=False, **self._options)


def _ranges(name: str, value: Any) -> list[checked_memory.Range]:
    """Where an argument's tensors lie."""
    if isinstance(value, _descriptor.TensorDescriptor):
        return _ranges(name, value.base)
    if isinstance(value, tuple | list):
        return [found for item in value for found in _ranges(name, item)]
    base = getattr(value, "base", value) if isinstance(value, _jit.TensorWrapper) else value
    if not hasattr(base, "untyped_storage"):
        return []
    require_device(name, base)
    RECORD.brain |= str(base.dtype) == "torch.bfloat16"
    if not base.numel():
        return []
    # Of the tensor itself, not of its storage: a larger storage behind it belongs to somebody else.
    span = 1 + sum((size - 1) * stride for size, stride in zip(base.shape, base.stride(), strict=True))
    return [(base.data_ptr(), base.data_ptr() + span * base.element_size(), name)]


@dataclass(frozen=True)
class Pointer:
    """A tensor argument without its data: what a compiler sees of it."""

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def plain(value: Any) -> Any:
    """An argument without the tensors' memory."""
    if isinstance(value, _descriptor.TensorDescriptor):
        return value
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value)) if type(value) in (tuple, list) else value
    if hasattr(value, "untyped_storage"):
        return Pointer(value.dtype, tuple(value.shape), tuple(value.stride()))
    return value


def plain_names(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The same of arguments by name."""
    return {name: plain(value) for name, value in kwargs.items()}


def _patch_dot() -> None:
    """Put down when a product of fp32 tiles would be made in tf32 on the device."""
    kind = _interpreter.InterpreterBuilder
    plain = kind.create_dot

    def dot(self: Any, a: Any, b: Any, d: Any, precision: Any, imprecise: Any) -> Any:
        if a.dtype.scalar == _tl.float32 and "TF32" in str(precision) and "TF32x3" not in str(precision):
            RECORD.tf32 = True
        return plain(self, a, b, d, precision, imprecise)

    kind.create_dot = dot


def _patch_autotuner() -> None:
    """The first configuration that the file's own pruning leaves."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        configs = list(self.prune_configs(kwargs)) if len(self.configs) > 1 else list(self.configs)
        RECORD.autotuned += len(configs) > 1
        config = self.best_config = configs[0]
        everything = {**self.nargs, **kwargs, **config.all_kwargs()}
        self.pre_hook(everything, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook(everything)
        RECORD.others = tuple(other.all_kwargs() for other in configs[1:])
        try:
            return self.fn.run(*args, **kwargs, **config.all_kwargs())
        finally:
            RECORD.others = ()
            self.nargs = None

    _autotuner.Autotuner.run = run


def _no_benchmark(fn: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """One call, and a time that says nothing."""
    fn()
    return [1.0] * len(quantiles) if quantiles else 1.0
