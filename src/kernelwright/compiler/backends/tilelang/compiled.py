"""The compiler's way: a kernel is lowered by TileLang to CUDA source, compiled by nvcc to PTX, and the PTX is executed by `gpu/`.

In: a PrimFunc, as TileLang hands it over. Out: `CompiledKernel`, which stands for the device's adapter. Code is made for sm_80, because
what TileLang writes for newer devices copies by TMA. Launches are checked until they took `CHECKED_SECONDS`, in the first call of
forward always.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tilelang import tvm

from kernelwright.compiler.backends.tilelang.aot import command, lowered
from kernelwright.compiler.backends.tilelang.interpreter import Grid
from kernelwright.compiler.backends.tilelang.launch import RECORD, Executed, InterpretedKernel, Launched
from kernelwright.compiler.language import CompileFailed, NotExecuted
from kernelwright.compiler.offdevice.guards import Guards, Storage, memory_of
from kernelwright.compiler.offdevice.nvcc import first_error
from kernelwright.core.errors import GpuError, PtxError
from kernelwright.gpu import Fault, Program
from kernelwright.gpu.build import executable, keep_kernels_in, runtime_folder
from kernelwright.gpu.profile import Recorder

RUNTIME = runtime_folder() if executable() else None
"""The machine's own objects: found, or built, where no candidate can touch them, and before one waits for them."""
ARCHITECTURE = 80
CHECKED_SECONDS = 2.0
"""Launches are checked until they took so much time of the processor, in the first call of forward always; what comes after runs plain."""
SECONDS = 240.0
MOST_SHARED = 227 << 10
"""Of a block of the largest device: what needs more is refused by the target's compiler, and said there."""
_SCALARS = {"float32": "<f", "float64": "<d", "float16": "<e"}
_Popen = subprocess.Popen


@dataclass
class _State:
    """Of this process."""

    check: bool = True
    seconds: float = 0.0
    recorder: Recorder | None = None


STATE = _State()


@dataclass(frozen=True)
class Entry:
    """A kernel of a module: its name, its parameters by name and dtype, and its extents in terms of sizes."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    extents: Mapping[str, Any]
    shared: int
    cooperative: bool


class CompiledKernel(InterpretedKernel):
    """A kernel that is executed as compiled; arguments are checked and outputs made as for the interpreter."""

    interprets = False

    def __init__(self, function: Any, out_idx: Any, passes: Any, flags: Any) -> None:
        super().__init__(function, out_idx, passes, flags)
        launch = Launched(function, self.passes, self.flags, ())
        self.source, entries, module = lowered(launch, f"sm_{ARCHITECTURE}")
        parameters = {str(var.name_hint): device.params for var, device in module.functions.items()}
        self.entries = [_entry(name, attributes, parameters[name]) for name, attributes in entries]
        self.ptx = _ptx(self.source, self.flags, fast=bool(self.passes.get("tl.enable_fast_math")))
        try:
            self.checked = Program.from_ptx(self.ptx, checks=True)
        except PtxError as refused:
            raise NotExecuted(str(refused)) from refused
        self.plain: Program | None = None
        RECORD.executed[id(self)] = Executed(self.ptx, f"sm_{ARCHITECTURE}", entries)

    def execute(self, arguments: Sequence[Any]) -> None:
        """Runs the kernels on arguments that are all there."""
        for number, value in enumerate(arguments):
            self._argument(number, value)
        named: dict[str, Any] = {}
        for var, value in zip(self.params, arguments, strict=True):
            buffer = self.program.tensors.get(hash(var))
            named[str(var.name) if buffer is None else str(buffer.data.name)] = value
        sizes = self._sizes() | {name: value for name, value in named.items() if not isinstance(value, torch.Tensor)}
        tensors = [(name, value) for name, value in named.items() if isinstance(value, torch.Tensor)]
        self.program.grids = []
        started = time.process_time()
        # What is done here is not forward's doing: neither the redirect nor who observes foreign code sees it.
        with torch._C.DisableTorchFunction():
            for entry in self.entries:
                self._launch(entry, tensors, named, sizes)
        STATE.seconds += time.process_time() - started
        self._put_down()

    def _sizes(self) -> dict[str, int]:
        """Symbolic sizes by their names, which TileLang's own host code uses, too."""
        slots = self.program.state.slots
        found: dict[str, Any] = {}
        for buffer in self.program.tensors.values():
            for extent in (*buffer.shape, *buffer.strides):
                tvm.tirx.stmt_functor.post_order_visit(
                    extent,
                    lambda node: (
                        found.__setitem__(str(node.name), slots[self.program.variables[hash(node)]])
                        if isinstance(node, tvm.tirx.Var) and hash(node) in self.program.variables
                        else None
                    ),
                )
        return {name: int(value) for name, value in found.items() if isinstance(value, int)}

    def _launch(
        self, entry: Entry, tensors: Sequence[tuple[str, Any]], named: Mapping[str, Any], sizes: Mapping[str, Any]
    ) -> None:
        extents = {axis: _evaluate(extent, sizes) for axis, extent in entry.extents.items()}
        grid, block = (tuple(extents.get(f"{kind}.{axis}", 1) for axis in "xyz") for kind in ("blockIdx", "threadIdx"))
        self.program.grids.append(Grid(grid, (block[0], block[1], block[2])))
        if 0 in grid:
            return
        if entry.shared > MOST_SHARED:
            raise CompileFailed(f"error: {entry.name} needs {entry.shared:,} bytes of shared memory in a block")
        program = self.checked
        if not STATE.check:
            program = self.plain = self.plain or Program.from_ptx(self.ptx, beside=self.checked)
        storages = Storage.spanned(tensors)
        with Guards(storages, on=STATE.check) as guards:
            params = self._packed(program, entry, named, sizes, guards)
            if STATE.recorder is not None:
                STATE.recorder.see(
                    entry=entry.name, grid=grid, block=block, shared=entry.shared, params=params, ptx=self.ptx,
                    memory=guards.memory or memory_of(storages),
                )  # fmt: skip
            report = program.launch(
                entry.name, grid, block, params, entry.shared, memory=guards.memory, cooperative=entry.cooperative
            )
        for fault in report.faults:
            raise GpuError(self._sentence(fault))

    def _packed(
        self, program: Program, entry: Entry, named: Mapping[str, Any], sizes: Mapping[str, Any], guards: Guards
    ) -> bytes:
        """The parameters as the kernel reads them."""
        found = program.entries[entry.name]
        block = bytearray(found.parameter_bytes)
        for place, (name, dtype) in zip(found.parameters, entry.parameters, strict=True):
            value = named[name] if name in named else sizes.get(name)
            if isinstance(value, torch.Tensor):
                data = struct.pack("<Q", guards.moved(value.data_ptr()))
            elif value is None:
                raise NotExecuted(f"{entry.name} takes {name}, which is neither an argument nor a size")
            elif dtype in _SCALARS:
                data = struct.pack(_SCALARS[dtype], value)
            elif dtype == "bfloat16":
                data = struct.pack("<f", value)[2:]
            else:
                data = (int(value) & ((1 << 8 * place.size) - 1)).to_bytes(place.size, "little")
            block[place.offset : place.offset + place.size] = data
        return bytes(block)

    def _sentence(self, fault: Fault) -> str:
        """With the line of TileLang's CUDA source, since no line of the author's is known."""
        line = fault.location.outermost.line if fault.location else 0
        lines = self.source.splitlines()
        text = re.sub(r"\s+", " ", lines[line - 1]).strip() if 0 < line <= len(lines) else ""
        return f"{fault}; in TileLang's CUDA source: {text[:200]}" if text else str(fault)

    def get_kernel_source(self, *_: Any, **__: Any) -> str:
        return self.source


def made(
    func: Any = None, out_idx: Any = None, *_: Any, pass_configs: Any = None, compile_flags: Any = None, **__: Any
) -> CompiledKernel:
    """Instead of `tilelang.cache.cached`."""
    return CompiledKernel(func, out_idx, pass_configs, compile_flags)


def install() -> None:
    """Before the kernel file is loaded."""
    STATE.recorder = Recorder()
    keep_kernels_in(Path(tempfile.mkdtemp(prefix="kernelwright-gpu-")))


def begin_call() -> None:
    """A call of forward begins."""
    if STATE.recorder is not None:
        STATE.recorder.begin()
    if RECORD.count and STATE.seconds > CHECKED_SECONDS:
        STATE.check = False


def _entry(name: str, attributes: Mapping[str, Any], params: Sequence[Any]) -> Entry:
    return Entry(
        name,
        tuple((str(each.name), str(each.dtype)) for each in params),
        {str(axis): extent for axis, extent in dict(attributes.get("thread_extent") or {}).items()},
        int(attributes.get("dyn_shared_memory_buf") or 0),
        bool(attributes.get("use_cooperative_groups", False)),
    )


def _evaluate(extent: Any, sizes: Mapping[str, Any]) -> int:
    """An extent in terms of sizes as a number."""
    if isinstance(extent, int):
        return extent
    variables: dict[Any, Any] = {}

    def see(node: Any) -> None:
        if isinstance(node, tvm.tirx.Var):
            if str(node.name) not in sizes:
                raise NotExecuted(f"a grid depends on {node.name}, which is neither an argument nor a size")
            variables[node] = tvm.tirx.IntImm(str(node.dtype), int(sizes[str(node.name)]))

    tvm.tirx.stmt_functor.post_order_visit(extent, see)
    return int(tvm.arith.Analyzer().simplify(tvm.tirx.stmt_functor.substitute(extent, variables)))


def _ptx(source: str, flags: Sequence[str], *, fast: bool) -> str:
    """nvcc's PTX; CompileFailed with its first error."""
    with tempfile.TemporaryDirectory() as work:
        text, made = Path(work) / "kernel.cu", Path(work) / "kernel.ptx"
        text.write_text(source, encoding="utf-8")
        more = (*flags, *(["--use_fast_math"] if fast else []))
        words = command("-ptx", f"sm_{ARCHITECTURE}", ("-lineinfo", *more), text, made)
        with _Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                said, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise CompileFailed(f"nvcc did not finish within {SECONDS:.0f} s") from None
        if process.returncode:
            raise CompileFailed(first_error(said, str(text)))
        return made.read_text(encoding="utf-8")
