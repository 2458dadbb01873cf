"""Triton programs on the CPU, as compiled for a target: `kernel[grid](...)` takes tensors of the CPU, unmodified, autotuned or not.

In: a target's name. Out: a context in which Triton's active driver is ours. Triton compiles to PTX and stops before the assembler;
`gpu/` executes the PTX; with `check` each launch has guard zones around its tensors, and what it did wrong is kept and told.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import triton
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase, decompose_descriptor, expand_signature
from triton.backends.nvidia.compiler import CUDABackend
from triton.backends.nvidia.driver import TMA_DTYPE_DEVICE_TO_HOST, TMA_TF32

from kernelwright.compiler.offdevice.cuda_api import Stream, capability, device
from kernelwright.compiler.offdevice.guards import Guards, Storage, memory_of
from kernelwright.core.errors import GpuError
from kernelwright.gpu import Fault, Program
from kernelwright.gpu.profile import Recorder
from kernelwright.gpu.tensor_map import tensor_map
from kernelwright.target.sheet import Target

NEWEST = 90
"""The newest architecture whose code is executed; for a newer target Triton compiles for this one."""
REGISTERS = 32
"""Of a thread, for files that ask a compiled kernel: the assembler gives them out, and it has not run yet."""
_FLOATS = {"fp16": "<e", "bf16": "<f", "fp32": "<f", "f32": "<f", "fp64": "<d"}
_BENCH_SECONDS = 0.1
_ids = itertools.count(1000)


class Simulation:
    """What a program did on the machine: how many launches, and with `check` their faults, each place and kind once."""

    def __init__(self, target: Target, check: bool, told: Callable[[Fault], None] | None = None) -> None:
        self.target, self.check = target, check
        self.arch = min(int(re.sub(r"\D", "", target.arch) or 80), NEWEST)
        """What Triton compiles for here."""
        self.device = torch.device("cpu")
        """What programs are told that their tensors lie on."""
        self.faults: list[Fault] = []
        self.launches = 0
        self.recorder: Recorder | None = None
        """Sees every launch, where somebody wants a profile."""
        self._told = told
        self._known: set[tuple[str, str, str]] = set()

    def storages(self, pointers: Sequence[tuple[str, Any]]) -> list[Storage]:
        """What a launch may touch of the tensors that it was given."""
        return [found for name, value in pointers if (found := Storage.of(name, value)) is not None]

    def load(self, name: str, ptx: str) -> Program:
        """A compiled kernel, ready to run."""
        return Program.from_ptx(ptx, checks=self.check, name=name)

    def begin(self, src: Any, metadata: Any, program: Program, grid: tuple[int, int, int]) -> Program:
        """A launch begins; gives the variant of its program that is to run."""
        return program

    def keep(self, faults: Iterable[Fault]) -> None:
        """Faults of a launch. Without `check` only those that end a program on a device are seen: they end it here."""
        for fault in faults:
            if not self.check:
                raise GpuError(str(fault))
            key = (fault.kind, fault.kernel, str(fault.location or fault.ptx_line))
            if key not in self._known:
                self._known.add(key)
                self.faults.append(fault)
                if self._told is not None:
                    self._told(fault)


@contextmanager
def simulated(
    target: str = "a100", *, check: bool = False, told: Callable[[Fault], None] | None = None
) -> Iterator[Simulation]:
    """Run Triton kernels inside the block on the CPU, as compiled for a CUDA target; device="cuda" means the CPU there.

    With `check`, what kernels do wrong is in `.faults` (and given to `told` at once) and the program goes on.
    """
    sheet = Target.load(target)
    if sheet.kind != "cuda":
        raise GpuError(f"{target} is no CUDA target: PTX is what is executed; name one such as a100 or h100")
    simulation = Simulation(sheet, check, told)
    config, previous = triton.runtime.driver, getattr(triton.runtime.driver, "_active", None)
    assembler = CUDABackend.make_cubin
    with ExitStack() as stack:
        stack.enter_context(triton.knobs.cache.scope())
        # Its own cache: the user's must not hold PTX for binaries, and lines of the PTX must name this program's file.
        triton.knobs.cache.dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelwright-triton-"))
        stack.callback(config.set_active, previous)
        stack.callback(setattr, CUDABackend, "make_cubin", assembler)
        CUDABackend.make_cubin = lambda self, ptx, *_: ptx.encode()
        config.set_active(Driver(simulation))
        stack.enter_context(_OnCpu())
        yield simulation


class _OnCpu(TorchFunctionMode):  # type: ignore[misc]
    """Tensors that are asked for on a GPU are made on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if func == torch.Tensor.is_cuda.__get__:
            return True
        if func is torch.Tensor.to:
            args = tuple(_cpu(a) for a in args)
        if "device" in kwargs:
            kwargs["device"] = _cpu(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return func(*args, **kwargs)


def _cpu(value: Any) -> Any:
    named = value.type if isinstance(value, torch.device) else value.split(":")[0] if isinstance(value, str) else ""
    return torch.device("cpu") if named == "cuda" else value


class NotOnThis(GpuError):
    """What a kernel was compiled to for this architecture is not executed."""


class _Event:
    """An event with the time of the host: what an autotuner compares."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._at = 0.0

    def record(self, *_: Any) -> None:
        self._at = time.perf_counter()

    def synchronize(self) -> None: ...

    def elapsed_time(self, end: _Event) -> float:
        return (end._at - self._at) * 1e3


class _Interface:
    """What Triton's own `do_bench` asks of `torch.cuda`."""

    Event, Stream, device = _Event, Stream, device

    @staticmethod
    def synchronize(*_: Any) -> None: ...

    @staticmethod
    def current_device() -> int:
        return 0


class _Utils:
    """Loading: a "binary" is the PTX."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def get_device_properties(self, device: int) -> dict[str, int]:
        sheet = self._simulation.target
        return {
            "max_shared_mem": int(sheet.shared_memory_per_block or sheet.shared_memory),
            "max_num_regs": int(sheet.registers),
            "multiprocessor_count": int(sheet.cores),
            "warpSize": int(sheet.warp),
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 2_000_000,
            "mem_bus_width": 5120,
        }

    def load_binary(self, name: str, ptx: bytes, shared: int, device: int) -> tuple[None, Any, int, int, int]:
        """No handle that would have to be unloaded; the program stands for the function."""
        return None, self._simulation.load(name, ptx.decode()), REGISTERS, 0, 1024


class Driver(DriverBase):  # type: ignore[misc]
    """Triton's view of a device that executes on the CPU."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation
        # A number of its own: Triton keeps compiled kernels by device, and those of another simulation are for another target.
        self._device = next(_ids)
        self.utils = _Utils(simulation)
        self.launcher_cls = lambda src, metadata: _Launcher(simulation, src, metadata)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", self._simulation.arch, 32)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return capability({"kind": "cuda", "arch": self._simulation.target.arch})

    def get_current_device(self) -> int:
        return self._device

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        return self._simulation.device

    def get_device_interface(self) -> Any:
        return _Interface

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: Any) -> None: ...

    def get_benchmarker(self) -> Any:
        return self._bench

    def _bench(self, call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **_: Any) -> Any:
        """Seconds of the host, the best of a few: it orders configurations by what they cost here, not on the device."""
        call()
        best, spent = float("inf"), 0.0
        while spent < _BENCH_SECONDS and not (self._simulation.check and spent):
            start = time.perf_counter()
            call()
            took = time.perf_counter() - start
            best, spent = min(best, took), spent + took
        return [best * 1e3] * len(quantiles) if quantiles else best * 1e3


class _Launcher:
    """Packs the arguments of a launch as the kernel's parameters lie, and executes it."""

    def __init__(self, simulation: Simulation, src: Any, metadata: Any) -> None:
        self._simulation, self._metadata, self._src = simulation, metadata, src
        self._names = list(src.signature)
        self._kinds = tuple(src.signature.values())
        self._tiles = list(getattr(metadata, "tensordesc_meta", None) or ())
        """Of each descriptor among the arguments, where the kernel copies by TMA: how its tiles lie in shared memory."""
        if any(tile.get("is_im2col") or tile.get("fp4_padded") for tile in self._tiles):
            raise NotOnThis(
                f"{metadata.name} copies by TMA in a way (im2col, fp4) that is not executed; run it with --target a100"
            )

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        program: Program,
        packed: Any,
        launch_metadata: Any,
        enter: Any,
        leave: Any,
        *given: Any,
    ) -> None:
        if x * y * z == 0:
            return
        metadata = self._metadata
        program = self._simulation.begin(self._src, metadata, program, (x, y, z))
        flat = list(_flat(self._names, self._kinds, given, iter(self._tiles)))
        pointers = [(name, value[0] if kind == "tile" else value) for name, kind, value in flat if kind[0] in "*t"]
        storages = self._simulation.storages(pointers)
        sizes = (metadata.global_scratch_size, metadata.profile_scratch_size)
        scratch = [ctypes.create_string_buffer(x * y * z * int(size) + 256) for size in sizes]
        hidden = [("scratch", "*i8", (ctypes.addressof(s) + 255) & ~255) for s in scratch]
        storages += [Storage(ctypes.addressof(s), len(s), "scratch memory") for s in scratch]
        (entry,) = program.entries.values()
        values = [*flat, *hidden][: len(entry.parameters)]
        if len(values) < len(entry.parameters):
            raise GpuError(f"{entry.name} wants {len(entry.parameters)} parameters and was given {len(values)}")
        if enter is not None:
            enter(launch_metadata)
        with Guards(storages, on=self._simulation.check) as guards:
            block = bytearray(entry.parameter_bytes)
            for parameter, (name, kind, value) in zip(entry.parameters, values, strict=True):
                data = _bytes(name, kind, value, parameter.size, guards)
                block[parameter.offset : parameter.offset + parameter.size] = data
            threads = (32 * int(metadata.num_warps), 1, 1)
            if self._simulation.recorder is not None:
                self._simulation.recorder.see(
                    entry=entry.name, grid=(x, y, z), block=threads, shared=int(metadata.shared), params=bytes(block), ptx=program.text,
                    memory=guards.memory or memory_of(storages),
                )  # fmt: skip
            together = int(metadata.num_ctas)
            report = program.launch(
                entry.name,
                (x * together, y, z),
                threads,
                bytes(block),
                int(metadata.shared),
                cluster=(together, 1, 1),
                memory=guards.memory,
                cooperative=bool(metadata.launch_cooperative_grid),
            )
        if leave is not None:
            leave(launch_metadata)
        self._simulation.launches += 1
        self._simulation.keep(report.faults)


def _flat(
    names: Sequence[str], kinds: Sequence[Any], values: Sequence[Any], tiles: Iterator[Mapping[str, Any]]
) -> Iterator[tuple[str, str, Any]]:
    """Name, Triton's type and value of each parameter: tuples and descriptors taken apart, constants left out. A descriptor that is
    copied by TMA is a tensor map ("tile": the descriptor and how its tiles lie), then its shape and strides."""
    for name, kind, value in zip(names, kinds, values, strict=True):
        if isinstance(kind, tuple):
            yield from _flat([f"{name}[{k}]" for k in range(len(kind))], kind, value, tiles)
        elif kind.startswith("tensordesc") and (tile := next(tiles, None)) is not None:
            yield name, "tile", (value, tile)
            yield from ((name, "i32", extent) for extent in value.shape)
            yield from ((name, "i64", stride) for stride in value.strides)
        elif kind.startswith("tensordesc"):
            parts = decompose_descriptor(value)
            yield from ((name, part, v) for part, v in zip(expand_signature([kind], None, ""), parts, strict=True))
        elif kind != "constexpr":
            yield name, kind, value


def _bytes(name: str, kind: str, value: Any, size: int, guards: Guards) -> bytes:
    if kind.startswith("*"):
        address = 0 if value is None else value if isinstance(value, int) else value.data_ptr()
        return struct.pack("<Q", guards.moved(address))
    if kind == "tile":
        return _tile_map(value[0], value[1], guards)
    if kind in _FLOATS:
        data = struct.pack(_FLOATS[kind], value)
        return data[2:] if kind == "bf16" else data
    if kind[0] in "iu":
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    raise GpuError(f"argument {name} is of type {kind}, which is not passed to a kernel here")


def _tile_map(descriptor: Any, tile: Mapping[str, Any], guards: Guards) -> bytes:
    """A descriptor as the kernel's parameter."""
    kind = TMA_TF32 if descriptor.round_f32_to_tf32 else tile["elem_type"]
    size = int(tile["elem_size"])
    return tensor_map(
        TMA_DTYPE_DEVICE_TO_HOST[kind],
        guards.moved(descriptor.base.data_ptr()),
        [int(extent) for extent in reversed(descriptor.shape)],
        [int(stride) * size for stride in reversed(descriptor.strides[:-1])],
        list(reversed(tile["block_size"])),
        swizzle=int(tile["swizzle"]),
        fill=int(descriptor.padding == "nan"),
    )
