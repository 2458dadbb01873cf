"""One device as CUDA's host side sees it: modules that were registered, allocations, launches, and what went wrong.

In: the callbacks of `cudart.cpp`. Out: programs executed; `launches` counted, `observed` ones told, `faults` and `failure` kept. Exceptions
cannot pass through host code: what is refused (an instruction that is not known, a launch that no device would take) becomes
CUDA's error there, and `raise_pending` raises it afterwards for whoever called into the program.
"""

from __future__ import annotations

import atexit
import ctypes
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelwright.core.errors import GpuError, KernelwrightError
from kernelwright.gpu.host.images import ptx_of
from kernelwright.gpu.program import Memory, Program
from kernelwright.gpu.ptx import Function, parse
from kernelwright.gpu.ptx import Module as ParsedModule
from kernelwright.gpu.report import Fault

KINDS = ("device memory", "managed memory", "pinned memory", "registered memory")
GARBAGE = 0xFF
"""Each byte of fresh memory under the checks: NaN as a float, so that nobody counts on zeros."""
REGISTERS = 64
"""Registers of a thread that occupancy queries assume: the assembler gives them out, and nothing is assembled here."""
_ASSERT, _TIMEOUT, _FAILURE, _UNSUPPORTED, _ADDRESS = 710, 702, 719, 801, 700
_FATAL = {"assert": _ASSERT, "trap": _FAILURE, "deadlock": _TIMEOUT}

_U64, _I64, _P, _S, _I = ctypes.c_uint64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_SIGNATURES = (
    ("module", (None, _P, _P)),
    ("launch", (_I, _P, _S, ctypes.POINTER(ctypes.c_uint32), _U64, ctypes.POINTER(_P), _I)),
    ("allocated", (None, _U64, _U64, _I)),
    ("freed", (_I, _U64)),
    ("reach", (_I, _U64, _U64, _S)),
    ("symbol", (_U64, _P, _S, ctypes.POINTER(_U64))),
    ("attribute", (_I64, _I)),
    ("function", (_I, _P, _S, ctypes.POINTER(_I64))),
    ("title", (_P,)),
    ("moved", (None, _U64, _U64, _U64, _I)),
)
_TYPES = {name: ctypes.CFUNCTYPE(*signature) for name, signature in _SIGNATURES}


class _Host(ctypes.Structure):
    _fields_ = list(_TYPES.items())


class Image:
    """A registered module: parsed when somebody asks for its parameters, built when it is launched."""

    def __init__(self, ptx: str, device: Device) -> None:
        self.ptx = ptx
        self._device = device
        self._programs: dict[tuple[str, bool], Program] = {}

    @cached_property
    def parsed(self) -> ParsedModule:
        """As the reader of PTX sees it."""
        return parse(self.ptx, "ptx")

    def program_of(self, entry: str) -> Program:
        """One kernel of the module ready to run, with the checks that the device wants now; all share the module's memory. What other
        kernels of the module need is not looked at: a file may have some that are never launched."""
        key = (entry, self._device.checks)
        if key not in self._programs:
            first = next(iter(self._programs.values()), None)
            program = self._programs[key] = Program.from_ptx(self.ptx, checks=self._device.checks, beside=first, only=entry)
            if first is None:
                self._device.memory.add(program.globals_address, program.translation.layout.size, "the module's variables")
        return self._programs[key]

    @property
    def program(self) -> Program:
        """The module's variables, and whatever kernel of it was made ready first."""
        return next(iter(self._programs.values()), None) or self.program_of("")

    @property
    def built(self) -> bool:
        """Whether its variables lie somewhere."""
        return bool(self._programs)

    def kernel(self, name: str) -> Function:
        """An entry by its mangled name."""
        return self.parsed.function(name)


@dataclass(frozen=True)
class Buffer:
    """A pointer among a launch's arguments: where it stands, and the allocation into which it points."""

    parameter: int
    offset: int
    """Of the pointer in its argument: an argument may be a structure."""
    address: int
    begin: int
    size: int
    name: str


@dataclass(frozen=True)
class Launch:
    """A launch as host code asked for it."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    params: bytes
    cooperative: bool
    image: Image
    memory: Memory

    @property
    def ptx(self) -> str:
        """The text of the module."""
        return self.image.ptx

    def arguments(self) -> tuple[bytes, ...]:
        """The bytes of each parameter."""
        return tuple(self.params[p.offset : p.offset + p.size] for p in self.image.kernel(self.entry).parameters)

    def buffers(self) -> tuple[Buffer, ...]:
        """The pointers: words of eight bytes that lie in an allocation."""
        found = []
        for number, argument in enumerate(self.arguments()):
            for offset in range(0, len(argument) - 7, 8):
                address = int.from_bytes(argument[offset : offset + 8], "little")
                at = self.memory.find(address)
                if at is not None:
                    found.append(Buffer(number, offset, address, *at))
        return tuple(found)

    def run(self) -> tuple[Fault, ...]:
        """Execute it to its end; what a checked program saw."""
        program = self.image.program_of(self.entry)
        report = program.launch(
            self.entry,
            self.grid,
            self.block,
            self.params,
            self.shared,
            memory=self.memory if program.checks else None,
            cooperative=self.cooperative,
            cluster=self.cluster,
        )
        return report.faults


class Device:
    """A device. `attributes` has the values of `cudaDeviceAttr` by number, and the bytes of its memory under -1."""

    def __init__(
        self,
        attributes: Mapping[int, int],
        *,
        title: str = "a device in software",
        checks: bool = False,
        told: Callable[[str], None] | None = None,
    ) -> None:
        self.attributes, self.memory = attributes, Memory()
        self.checks = checks
        """May be turned between launches: modules keep their memory."""
        self.launches = 0
        self.seconds = 0.0
        """That launches took here, with what they waited for their build."""
        self.faults: list[Fault] = []
        """What kernels did wrong, each place and kind once."""
        self.host_faults: list[str] = []
        """What host code did wrong with the device's memory."""
        self.failure: KernelwrightError | None = None
        """What was refused; every later call of CUDA fails."""
        self._pending: list[str] = []
        self._told, self._name = told, ctypes.create_string_buffer(title.encode())
        self._images: dict[int, Image] = {}
        self._known: set[tuple[str, ...]] = set()
        self._observers: list[Callable[[Launch], Any]] = []
        self.movements: Callable[[int, int, int, int], None] | None = None
        """Told each copy (to, from, bytes, 0) and fill (to, 0, bytes, value) that host code asks for, before it happens."""
        self._library: Any = None
        self._host = _Host(**{name: kind(getattr(self, f"_{name}")) for name, kind in _TYPES.items()})

    def open(self, library: Path) -> None:
        """Answer the CUDA calls of this process from now on, through our `libcudart` at this path."""
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._library.kw_host.argtypes = [ctypes.c_void_p]
        self._library.kw_library_called.restype = ctypes.c_char_p
        self._library.kw_host(ctypes.byref(self._host))
        atexit.register(self.close)

    def variables_of(self, image: Image) -> dict[str, int]:
        """The addresses of a module's variables by name."""
        layout = image.program.translation.layout
        return {
            v.name: image.program.globals_address + layout.offsets[v.name] for v in layout.variables if v.name in layout.offsets
        }

    def variable_at(self, address: int) -> tuple[int, int, str] | None:
        """The variable of some module that has this address: where it begins, its size, its name."""
        for image in self._images.values():
            if image.built:
                for name, begin in self.variables_of(image).items():
                    size = image.program.variable(name)[1]
                    if begin <= address < begin + size:
                        return begin, size, name
        return None

    def library_calls(self) -> list[str]:
        """Routines of cuBLAS that host code called so far: they did work in place of a kernel."""
        found: list[str] = []
        while self._library is not None and (name := self._library.kw_library_called(len(found))) is not None:
            found.append(name.decode())
        return found

    def close(self) -> None:
        """Answer no more: destructors of programs may still call."""
        if self._library is not None:
            self._library.kw_host(None)

    @contextmanager
    def observed(self, see: Callable[[Launch], Any]) -> Iterator[None]:
        """Tell each launch before it runs; `see` returns False for one that is not to run."""
        self._observers.append(see)
        try:
            yield
        finally:
            self._observers.remove(see)

    def watch(self, see: Callable[[Launch], Any]) -> None:
        """As `observed`, for good."""
        self._observers.append(see)

    def raise_pending(self) -> None:
        """Raise what the last calls ran into: what was refused, or with checks the first thing that was wrong."""
        pending, self._pending = self._pending, []
        failure, self.failure = self.failure, None
        if (failure or pending) and self._library is not None:
            self._library.kw_reset()
        if failure is not None:
            raise failure
        if pending:
            raise GpuError(pending[0])

    # ---------------------------------------------------------------- what the library asks

    def _module(self, module: int, image: int) -> None:
        try:
            self._images[module] = Image(ptx_of(image), self)
        except KernelwrightError as error:
            self._refuse(error)

    def _launch(self, module: int, name: bytes, extents: Any, shared: int, arguments: Any, cooperative: int) -> int:
        try:
            return self._launched(module, name.decode(), extents, shared, arguments, bool(cooperative))
        except KernelwrightError as error:
            return self._refuse(error)
        except Exception as error:  # ours: host code would go on with wrong values
            return self._refuse(GpuError(f"{name.decode()} could not be executed: {type(error).__name__}: {error}"))

    def _launched(self, module: int, name: str, extents: Any, shared: int, arguments: Any, cooperative: bool) -> int:
        image = self._images.get(module)
        if image is None:
            return self._refuse(self.failure or GpuError(f"{name} has no code for this device"))
        parameters = image.kernel(name).parameters
        block = bytearray(max((p.offset + p.size for p in parameters), default=0))
        for number, parameter in enumerate(parameters):
            block[parameter.offset : parameter.offset + parameter.size] = ctypes.string_at(arguments[number], parameter.size)
        e = list(extents[:9])
        launch = Launch(
            name,
            (e[0], e[1], e[2]),
            (e[3], e[4], e[5]),
            (e[6], e[7], e[8]),
            shared,
            bytes(block),
            cooperative,
            image,
            self.memory,
        )
        self.launches += 1
        wanted = [see(launch) for see in tuple(self._observers)]
        if any(answer is False for answer in wanted):
            return 0
        start = time.monotonic()
        faults = launch.run()
        self.seconds += time.monotonic() - start
        return max((self._fault(fault) for fault in faults), default=0)

    def _fault(self, fault: Fault) -> int:
        """CUDA's error, or 0 where a checked program goes on."""
        key = (fault.kind, fault.kernel, str(fault.location or fault.ptx_line))
        if key not in self._known or not self.checks:
            self._known.add(key)
            self.faults.append(fault)
            self._tell(f"{fault.kind}: {fault}")
        fatal = _FATAL.get(fault.kind, _ADDRESS)
        return 0 if self.checks and fault.kind not in _FATAL else fatal

    def _tell(self, text: str) -> None:
        self._pending.append(text)
        if self._told is not None:
            self._told(text)

    def _refuse(self, error: KernelwrightError) -> int:
        if self.failure is None:
            self.failure = error
            if self._told is not None:
                self._told(str(error))
        return _UNSUPPORTED

    def _allocated(self, address: int, size: int, kind: int) -> None:
        self.memory.add(address, size, f"{KINDS[kind]} of {size} bytes")
        if self.checks and kind != 3:
            ctypes.memset(address, GARBAGE, size)

    def _freed(self, address: int) -> int:
        self.memory.remove(address)
        return 1

    def _reach(self, address: int, size: int, what: bytes | None) -> int:
        found = self.memory.find(address)
        if found is None:
            return 0
        begin, room, name = found
        if address + size <= begin + room:
            return 1
        if what is not None:
            text = f"{what.decode()} {size} bytes from byte {address - begin} of {name}"
            self.host_faults.append(text)
            self._tell(f"host_out_of_bounds: {text}")
        return 2

    def _symbol(self, module: int, name: bytes, size: Any) -> int:
        try:
            address, size[0] = self._images[module].program.variable(name.decode())
        except KeyError:
            return 0
        except Exception as error:
            self._refuse(error if isinstance(error, KernelwrightError) else GpuError(str(error)))
            return 0
        return address

    def _moved(self, to: int, start: int, size: int, value: int) -> None:
        if self.movements is not None:
            self.movements(to, start, size, value)

    def _attribute(self, which: int) -> int:
        return self.attributes.get(which, -1)

    def _function(self, module: int, name: bytes, figures: Any) -> int:
        try:
            entry = self._images[module].program_of(name.decode()).entries[name.decode()]
        except KeyError:
            return 0
        except Exception as error:
            self._refuse(error if isinstance(error, KernelwrightError) else GpuError(str(error)))
            return 0
        most = 1
        for extent in entry.directives.get("maxntid", entry.directives.get("reqntid", (1024,))):
            most *= extent
        figures[0], figures[1], figures[2], figures[3], figures[4] = entry.shared_bytes, 0, entry.local_bytes, most, REGISTERS
        return 1

    def _title(self) -> int:
        return ctypes.addressof(self._name)
