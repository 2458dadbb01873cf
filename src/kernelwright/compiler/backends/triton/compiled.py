"""The compiler's way, for the judge: a kernel file's launches are compiled for a CUDA target and their PTX is executed by `gpu/`.

In: `install(target)`, once, in the process of one candidate. From then on `triton` is the compiling copy, its active driver ours, and each
launch runs as compiled for the target (or for sm_90 where that is newer, for sm_80 where an instruction of sm_90 is not executed): checked
until launches took `CHECKED_SECONDS`, in the first call of forward always. Out: launches counted and put down for `compile_for`.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime import autotuner, jit
from triton.runtime.errors import OutOfResources

from kernelwright.compiler.backends.triton import aot
from kernelwright.compiler.backends.triton.copies import compile_from_now_on
from kernelwright.compiler.backends.triton.interpreter.patches import Launched, plain, plain_names
from kernelwright.compiler.backends.triton.simulated import Driver, NotOnThis, Simulation
from kernelwright.compiler.language import CompileFailed, NotExecuted
from kernelwright.compiler.offdevice import profiling
from kernelwright.compiler.offdevice.guards import Storage
from kernelwright.compiler.offdevice.redirect import require_device
from kernelwright.core.errors import GpuError, PtxError
from kernelwright.gpu import Fault, Program
from kernelwright.gpu.build import executable, keep_kernels_in, runtime_folder
from kernelwright.gpu.profile import Recorder
from kernelwright.target.sheet import Target

RUNTIME = runtime_folder() if executable() else None
"""The machine's own objects: found, or built, where no candidate can touch them, and before one waits for them."""
CHECKED_SECONDS = 2.0
"""Launches are checked until they took so much time of the processor, in the first call of forward always; what comes after runs plain."""
OLDEST = 80
"""What is compiled for where the code for the target's architecture is not executed."""
MOST_DISTINCT = 64

_compile, _make_cubin, _run = jit.JITFunction._do_compile, CUDABackend.make_cubin, jit.JITFunction.run


class Executed(Simulation):
    """The launches of one candidate."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, check=True)
        self.device = torch.device("cuda", 0)
        self.recorder = Recorder()
        self.seconds = 0.0
        self.autotuned = 0
        self.seen: dict[tuple[Any, ...], tuple[Launched, str, Any]] = {}
        """Distinct launches, each with the PTX that was executed and the compiler's metadata."""
        self.others: tuple[dict[str, Any], ...] | None = None
        """The autotuner's further configurations, while it runs one."""
        self.current: Launched | None = None
        self._sources: dict[int, Launched] = {}
        self._checked: dict[str, Program] = {}
        self._plain: dict[str, Program] = {}
        """By their PTX: Triton loads a kernel more than once."""
        self._kept: list[Any] = []
        self._begun = 0.0
        self._assembler = ThreadPoolExecutor(1)
        self.assembled: dict[str, Future[bytes]] = {}

    def storages(self, pointers: Sequence[tuple[str, Any]]) -> list[Storage]:
        """What tensors span, all of them on the device."""
        for name, value in pointers:
            base = getattr(value, "base", value)
            if isinstance(base, torch.Tensor):
                require_device(name, base)
        return Storage.spanned([(name.partition("[")[0], value) for name, value in pointers])

    def load(self, name: str, ptx: str) -> Program:
        """With the checks; what is refused here may be executed as compiled for an older device."""
        if ptx not in self._checked:
            try:
                self._checked[ptx] = Program.from_ptx(ptx, checks=True, name=name)
            except PtxError as refused:
                raise NotOnThis(str(refused)) from refused
        return self._checked[ptx]

    def begin(self, src: Any, metadata: Any, program: Program, grid: tuple[int, int, int]) -> Program:
        """Put down once; after a while it runs without the checks."""
        launch = self.current or self._sources.get(id(src)) or Launched(src.fn, (), {}, grid)
        key = (id(src), grid)
        if key not in self.seen and len(self.seen) < MOST_DISTINCT:
            self._kept.append(src)
            self.seen[key] = (
                Launched(launch.function, launch.args, launch.kwargs, grid, self.others or ()),
                program.text,
                metadata,
            )
        self._begun = time.process_time()
        if self.check:
            return program
        if program.text not in self._plain:
            self._plain[program.text] = Program.from_ptx(program.text, name=metadata.name, beside=program)
        return self._plain[program.text]

    def keep(self, faults: Iterable[Fault]) -> None:
        """The first thing that was wrong ends the call."""
        self.seconds += time.process_time() - self._begun
        for fault in faults:
            raise GpuError(str(fault))

    def run(self, function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Instead of `JITFunction.run`."""
        self.current = Launched(function, plain(args), plain_names(kwargs), ())
        try:
            try:
                kernel = _run(function, *args, grid=grid, warmup=warmup, **kwargs)
            except NotOnThis as refused:
                if self.arch == OLDEST:
                    raise NotExecuted(str(refused)) from refused
                self.arch = OLDEST
                triton.runtime.driver.set_active(Driver(self))
                kernel = _run(function, *args, grid=grid, warmup=warmup, **kwargs)
            if kernel is not None:
                self._sources[id(kernel.src)] = self.current
                self._kept.append(kernel.src)
            return kernel
        except NotOnThis as refused:
            raise NotExecuted(str(refused)) from refused
        except OutOfResources as error:
            if self.others:
                raise
            raise CompileFailed(f"error: {function.fn.__name__}: {error}") from None
        finally:
            self.current = None

    def cubin(self, backend: Any, ptx: str, metadata: Any, options: Any, capability: int) -> bytes:
        """Instead of the assembler, which goes on beside: what is executed is the PTX."""
        if self.arch == _number(self.target.arch):
            self.assembled[ptx] = self._assembler.submit(_make_cubin, backend, ptx, metadata, options, capability)
        return ptx.encode()


_machine: Executed | None = None


def install(target: Mapping[str, Any]) -> None:
    """Before the kernel file is loaded."""
    global _machine
    compile_from_now_on()
    here = _machine = Executed(Target.remembered(dict(target)))
    triton.knobs.cache.dir = tempfile.mkdtemp(prefix="kernelwright-triton-")
    keep_kernels_in(Path(tempfile.mkdtemp(prefix="kernelwright-gpu-")))
    CUDABackend.make_cubin = lambda self, *stage: here.cubin(self, *stage)
    jit.JITFunction.run = lambda self, *args, **kwargs: here.run(self, *args, **kwargs)
    jit.JITFunction._do_compile = _do_compile
    autotuner.Autotuner.run = _first_that_fits
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = _no_benchmark
    triton.runtime.driver.set_active(Driver(here))


def machine() -> Executed:
    """Of this process."""
    assert _machine is not None
    return _machine


def _recorder() -> Recorder:
    found = machine().recorder
    assert found is not None
    return found


def begin_call() -> None:
    """A call of forward begins."""
    _recorder().begin()
    if machine().launches and machine().seconds > CHECKED_SECONDS:
        machine().check = False


def launches() -> int:
    """Kernels launched so far."""
    return machine().launches


def compile_for(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """The figures of what was launched, and a profile of the first call's launches."""
    return {**_figures(target), **profiling.reply(_recorder(), target)}


def _figures(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was executed is what is assembled; for another architecture everything is compiled again."""
    seen = list(machine().seen.values())
    if (
        target["kind"] == "cuda"
        and target["arch"] == machine().target.arch
        and all(ptx in machine().assembled for _, ptx, _ in seen)
    ):
        kernels = [aot.figures_of(metadata, {"cubin": _assembled(launch, ptx)}, launch) for launch, ptx, metadata in seen]
        return {"compiler": f"triton {triton.__version__}", "kernels": kernels[: aot.MOST_DISTINCT]}
    execute, executing = CUDABackend.make_cubin, triton.runtime.driver.active
    folder, run = triton.knobs.cache.dir, jit.JITFunction.run
    triton.knobs.cache.dir = tempfile.mkdtemp(prefix="kernelwright-triton-")
    CUDABackend.make_cubin, jit.JITFunction.run = _make_cubin, _run
    try:
        return aot.compile_launches(target, [launch for launch, _, _ in seen])
    finally:
        CUDABackend.make_cubin, jit.JITFunction.run = execute, run
        triton.knobs.cache.dir = folder
        triton.runtime.driver.set_active(executing)


def notes() -> list[str]:
    """How it was executed."""
    if not machine().launches:
        return []
    told = [f"executed as compiled for sm_{machine().arch} with no device"]
    if machine().autotuned:
        told.append("autotuned kernels ran with the first configuration that fits; nothing was measured")
    return told


def _assembled(launch: Launched, ptx: str) -> bytes:
    try:
        return machine().assembled[ptx].result()
    except Exception as error:
        raise CompileFailed(aot.first_error(launch.function.fn.__name__, error)) from None


def _number(arch: str) -> int:
    return int(re.sub(r"\D", "", arch) or OLDEST)


def _do_compile(function: Any, *args: Any) -> Any:
    """Instead of `JITFunction._do_compile`: the compiler's first error, by the kernel's name."""
    try:
        return _compile(function, *args)
    except Exception as error:
        raise CompileFailed(aot.first_error(function.fn.__name__, error)) from None


def _first_that_fits(tuner: Any, *args: Any, **kwargs: Any) -> Any:
    """Instead of `Autotuner.run`: the first configuration that the file's own pruning leaves, and whose shared memory there is."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    configs = list(tuner.prune_configs(kwargs)) if len(tuner.configs) > 1 else list(tuner.configs)
    outer = machine().others
    machine().autotuned += len(configs) > 1
    for number, config in enumerate(configs):
        tuner.best_config = config
        everything = {**tuner.nargs, **kwargs, **config.all_kwargs()}
        tuner.pre_hook(everything, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook(everything)
        machine().others = tuple(other.all_kwargs() for other in configs[number + 1 :])
        try:
            return tuner.fn.run(*args, **kwargs, **config.all_kwargs())
        except OutOfResources:
            continue
        finally:
            machine().others = outer
    return None


def _no_benchmark(function: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """One call, and a time that says nothing."""
    function()
    return [1.0] * len(quantiles) if quantiles else 1.0
