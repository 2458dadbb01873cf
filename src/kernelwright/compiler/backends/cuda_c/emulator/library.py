"""A built library in this process: which memory kernels may use goes in, what the checks found comes out as an exception.

`Memory` is one for the process, as the runtime is: tensors whose `data_ptr()` was asked for. After every call into a library the
runtime's error is looked at; program counters in it become the author's lines.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import dataclass, field
from typing import Any

_CDLL = ctypes.CDLL  # whoever redirects it later redirects it to us


class EmulatorError(RuntimeError):
    """What a check found: kernel, line, thread, and what happened there. On a GPU it would be a fault, a hang or a wrong value."""


@dataclass
class Launched:
    """One launch as compilers and occupancy see it."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int


class _Record(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 200),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint64),
    ]


class Emulated(ctypes.CDLL):
    """A library with the emulator inside; its functions raise EmulatorError. `kw_…` functions are the runtime's own."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(name, *args, **kwargs)
        own = _CDLL(name)
        for function, result in (
            ("kw_error", ctypes.c_char_p),
            ("kw_launch_count", ctypes.c_uint64),
            ("kw_clear_error", None),
            ("kw_library_called", ctypes.c_char_p),
        ):
            getattr(own, function).restype = result
        own.kw_register.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        own.kw_launch_record.argtypes = [ctypes.c_int, ctypes.POINTER(_Record)]
        self._own = own
        MEMORY.join(self)

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not name.startswith("_"):
            found.errcheck = self._checked
        return found

    def __getitem__(self, name: Any) -> Any:
        found = super().__getitem__(name)
        found.errcheck = self._checked
        return found

    def _checked(self, result: Any, function: Any, arguments: Any) -> Any:
        self.check()
        return result

    def check(self) -> None:
        """Raises what the last launches ran into."""
        text = self._own.kw_error()
        if text is not None:
            self._own.kw_clear_error()
            raise EmulatorError(_with_lines(text.decode(errors="replace")))

    def register(self, start: int, size: int, name: str) -> None:
        self._own.kw_register(start, size, name.encode()[:23])

    def observe(self, observer: Any) -> None:
        self._own.kw_set_observer.argtypes = [type(observer)]
        self._own.kw_set_observer(observer)

    def launch_count(self) -> int:
        return int(self._own.kw_launch_count())

    def library_calls(self) -> list[str]:
        """Routines of libraries that did work in place of a kernel so far: `cublasSgemm`."""
        found: list[str] = []
        while (name := self._own.kw_library_called(len(found))) is not None:
            found.append(name.decode())
        return found

    def launches(self) -> list[Launched]:
        """The distinct launches so far."""
        found = []
        record = _Record()
        number = 0
        while self._own.kw_launch_record(number, ctypes.byref(record)):
            grid = (record.grid[0], record.grid[1], record.grid[2])
            block = (record.block[0], record.block[1], record.block[2])
            found.append(Launched(record.name.decode(), grid, block, int(record.shared)))
            number += 1
        return found


@dataclass
class Memory:
    """Memory that kernels were given. Tensors of one storage count together: a kernel may walk from one view into another."""

    spans: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    library: Emulated | None = None  # any one: they share the runtime
    observer: Any = None

    def observe(self, observer: Any) -> None:
        """Tells a C callback (KwObserver of kw_runtime.h) every launch of the process, before it is run."""
        self.observer = observer
        if self.library is not None:
            self.library.observe(observer)

    def join(self, library: Emulated) -> None:
        if self.library is not None:
            return
        self.library = library
        if self.observer is not None:
            library.observe(self.observer)
        for start, stop, name in self.spans.values():
            library.register(start, stop - start, name)

    def add(self, storage: int, start: int, size: int, name: str) -> None:
        """A tensor's elements from first to last."""
        if size <= 0:
            return
        known = self.spans.get(storage)
        low, high = (start, start + size) if known is None else (min(start, known[0]), max(start + size, known[1]))
        if known is not None and (low, high) == known[:2]:
            return
        self.spans[storage] = (low, high, name)
        if self.library is not None:
            self.library.register(low, high - low, name)

    def forget(self) -> None:
        """Tensors of an earlier call may be gone."""
        self.spans.clear()


MEMORY = Memory()


def _with_lines(text: str) -> str:
    """Program counters (`@+0x1234:library@`) as lines of the author's source."""

    def line(match: re.Match[str]) -> str:
        try:
            command = ["addr2line", "-i", "-e", match.group(2), match.group(1)]
            said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        except (OSError, subprocess.TimeoutExpired):
            return "unknown line"
        places = re.findall(r"kernel\.cu:(\d+)", said)
        return f"line {places[0]}" if places else "unknown line"

    return re.sub(r"@\+(0x[0-9a-f]+):([^@]*)@", line, text)
