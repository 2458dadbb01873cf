"""Recording Triton launches: `kernel[grid](…)` puts the launch down and runs nothing.

In: a function that takes each launch (tracing.Tracer.launch). Out: Triton patched in this process for good (it is a process of its
own). Autotuned kernels take the first configuration that their own pruning leaves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import triton
from triton.runtime import autotuner, jit

from kernelwright.compiler.backends.triton.driver import Driver

Put = Callable[[str, Any, tuple[int, ...], Mapping[str, Any], Mapping[str, Any]], None]
NOTES: list[str] = []


class Run:
    """Triton's own way from a launch to a compiled kernel, kept before it is patched."""

    compiled: Any = staticmethod(jit.JITFunction.run)


def install(put: Put, target: Mapping[str, Any]) -> None:
    """From now on launches are put down."""
    triton.runtime.driver.set_active(Driver(triton, target))
    triton.testing.do_bench = lambda fn, *_, quantiles=None, **__: [1.0] * len(quantiles) if quantiles else 1.0

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return None
        own = {name: value for name, value in kwargs.items() if name in self.arg_names}
        bound = inspect.signature(self.fn).bind(*args, **own)
        bound.apply_defaults()
        arguments = {name: _plain(value) for name, value in bound.arguments.items()}
        size = grid(dict(bound.arguments)) if callable(grid) else grid
        sizes = tuple(int(extent) for extent in (size if isinstance(size, tuple | list) else (size,)))
        put(self.fn.__name__, self, sizes, arguments, {name: value for name, value in kwargs.items() if name not in own})
        return None

    def tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        configs = list(self.prune_configs(kwargs)) if len(self.configs) > 1 else list(self.configs)
        if len(configs) > 1:
            NOTES.append(
                f"{self.base_fn.__name__} is autotuned: the first of {len(configs)} configurations was taken ({configs[0]})"
            )
        config = self.best_config = configs[0]
        everything = {**self.nargs, **kwargs, **config.all_kwargs()}
        self.pre_hook(everything, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook(everything)
        try:
            return self.fn.run(*args, **kwargs, **config.all_kwargs())
        finally:
            self.nargs = None

    jit.JITFunction.run = run
    autotuner.Autotuner.run = tuned


def _plain(value: Any) -> Any:
    """A tensor behind `triton.reinterpret` as itself; other values as they are."""
    return value.base if isinstance(value, jit.TensorWrapper) and value.base.dtype == value.dtype else value
