"""Whose code lies at an address of a worker: by the address ranges frozen before foreign code ran, by content, and by symbols.

In: the pid of a worker, while it is still ours. Out: for an address that was sampled later, the file whose code it is, with the part of
it where symbols tell (`…/libtorch_cpu.so!mkl`), or "" for code that is nobody's but the worker's own. What the worker's maps say by
then is not believed:

- an address in a frozen range belongs to its file if the bytes there are still the file's;
- code anywhere else (a copied library under another name, pages moved by mremap, machine code in anonymous memory) is looked up,
  with its surroundings, in the libraries that every worker has: code that is found there, in several places, is theirs;
- a mapped file that exports the routines of a BLAS is one, whatever it is called.
"""

from __future__ import annotations

import bisect
import contextlib
import mmap
import os
import re
import struct
from dataclasses import dataclass
from functools import lru_cache

BEFORE, WINDOW = 32, 96
"""Bytes around an address that must be the same: long enough that no two compilers write them by accident."""
PLACES = 3
"""Different windows of a mapping that must be found in a library before its code is called the library's."""
LOOKUPS = 10
"""Windows of one mapping that are looked for in all libraries; a look takes 20 ms for one of 430 MB."""
BLAS_NAMES = re.compile(
    rb"\0(?:scipy_)?(cblas_[sd]gemm|[sd]gemm_?|[sd]trsm_?|[sd]gesv_?|cblas_[sd]axpy|openblas_set_num_threads|mkl_set_num_threads"
    rb"|MKL_Set_Num_Threads|dnnl_sgemm|bli_gemm|cublas[SD]gemm_v2)(?:_?64)?_?(?=\0)"
)
ENOUGH_NAMES = 3
MOST_BYTES = 1 << 29

LIBRARIES = re.compile(r"/lib(torch_cpu|torch|scipy_openblas|openblas|mkl_\w+|dnnl|iomp5)[^/]*\.so")
PARTS = (
    ("mkl", re.compile(rb"^_?mkl_|^[SDCZ]GEMM|^[sdcz]gemm|^cblas_|gemm_kernel|_omp_acopy_|^VS[A-Z]|^vs[A-Z]")),
    ("dnnl", re.compile(rb"4dnnl4impl|fbgemm|qnnpack|xnn_|kleidi")),
    (
        "free",
        re.compile(rb"copy_kernel|copy_same_dtype|fill_kernel|arange|range_kernel|eye_out|take|remainder|empty|memcpy|memset"),
    ),
    (
        "kernel",
        re.compile(
            rb"2at6native(?:\d+_GLOBAL__N_\d+)?(?:4AVX2|6AVX512|7DEFAULT)|2at3vec|cpublas|sleef|Sleef|cpu_flash_attention"
        ),
    ),
)
"""Parts of libtorch by the names of its functions, the first that fits: its BLAS, its code generators, copies and fills, and the inner
loops of operators that compute. Everything else (the dispatcher, allocation, iterators) is called by the file alone."""


@dataclass(frozen=True)
class Region:
    """An executable mapping, and where in its file it begins."""

    start: int
    stop: int
    offset: int
    path: str


class CodeOwners:
    """Knows the code of one worker and its children."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._frozen = regions(pid)
        self._starts = [region.start for region in self._frozen]
        self._own_files = {region.path for region in self._frozen}
        self._known: dict[int, str] = {}
        self._foreign: dict[tuple[int, int, str], dict[str, set[int]]] = {}
        self._looked: dict[tuple[int, int, str], int] = {}
        self._blas: dict[str, bool] = {}

    def label(self, pid: int, address: int, now: list[Region]) -> str:
        """The owner of the code at an address; `now` are the process's mappings as it shows them today."""
        if pid == self._pid and address in self._known:
            return self._known[address]
        frozen = _find(self._frozen, self._starts, address)
        here = next((region for region in now if region.start <= address < region.stop), None)
        # A program that was started by exec has maps of its own; a fork has its parent's.
        if frozen is not None and (pid == self._pid or here is None or here.path == frozen.path):
            label = self._in_file(pid, address, frozen)
        elif here is not None and here.path in self._own_files and pid != self._pid:
            label = self._in_file(pid, address, here)
        elif here is None:
            label = "?"
        else:
            label = self._by_content(pid, address, here)
            if not label.startswith("/") or label == here.path:
                return label  # may be known better after more windows
        if pid == self._pid:
            self._known[address] = label
        return label

    def _in_file(self, pid: int, address: int, region: Region) -> str:
        if not region.path.startswith("/"):
            return region.path
        text, place = _content(region.path), address - region.start + region.offset
        there = _memory(pid, address, 16)
        if text is not None and there and text[place : place + len(there)] != there:
            return self._by_content(pid, address, Region(region.start, region.stop, region.offset, ""))
        part = _part(region.path, place) if LIBRARIES.search(region.path) else ""
        return f"{region.path}!{part}" if part else region.path

    def _by_content(self, pid: int, address: int, region: Region) -> str:
        """A file that exports a BLAS is one; code that is found in a library's text is the library's."""
        if region.path.startswith("/") and region.path not in self._blas:
            self._blas[region.path] = exports_blas(pid, region)
        if self._blas.get(region.path):
            return f"{region.path}!mkl"
        key = (region.start, region.stop, region.path)
        found = self._foreign.setdefault(key, {})
        if self._looked.get(key, 0) < LOOKUPS:
            self._looked[key] = self._looked.get(key, 0) + 1
            window = _memory(pid, address - BEFORE, WINDOW)
            for path in (
                sorted({one.path for one in self._frozen if LIBRARIES.search(one.path)}) if len(window) == WINDOW else ()
            ):
                text = _content(path)
                place = text.find(window) if text is not None else -1
                if place >= 0:
                    part = _part(path, place + BEFORE) or "code"
                    found.setdefault(f"{path}!{part}", set()).add(place)
        places = {place for some in found.values() for place in some}
        if len(places) >= PLACES and max(places) - min(places) >= WINDOW:
            return max(found, key=lambda label: len(found[label]))
        return region.path


def regions(pid: int) -> list[Region]:
    """The executable mappings of a process."""
    found = []
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if "x" in fields[1]:
                start, stop = (int(part, 16) for part in fields[0].split("-"))
                found.append(Region(start, stop, int(fields[2], 16), fields[5].strip() if len(fields) == 6 else ""))
    return found


def exports_blas(pid: int, region: Region) -> bool:
    """Whether a mapped file has the names of a BLAS among its symbols."""
    for place in (f"/proc/{pid}/map_files/{region.start:x}-{region.stop:x}", f"/proc/{pid}/root{region.path}"):
        try:
            with open(place, "rb") as file:
                if not 0 < os.fstat(file.fileno()).st_size < MOST_BYTES:
                    return False
                with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
                    return len(set(BLAS_NAMES.findall(text))) >= ENOUGH_NAMES
        except (OSError, ValueError):
            continue
    return False


def _find(frozen: list[Region], starts: list[int], address: int) -> Region | None:
    place = bisect.bisect_right(starts, address) - 1
    return frozen[place] if place >= 0 and address < frozen[place].stop else None


def _memory(pid: int, address: int, count: int) -> bytes:
    """Bytes of another process; nothing where we may not read them."""
    try:
        file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.pread(file, count, address)
    except OSError:
        return b""
    finally:
        os.close(file)


@lru_cache(maxsize=32)
def _content(path: str) -> mmap.mmap | None:
    """A library's file as it is on disk, from outside of every sandbox."""
    try:
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    except (OSError, ValueError):
        return None


def _part(path: str, offset: int) -> str:
    """The part of a library that a place in its file belongs to, by the name of the function there; "" where there are no names."""
    symbols = _symbols(path)
    name = symbols.at(offset) if symbols is not None else b""
    return next((part for part, pattern in PARTS if name and pattern.search(name)), "")


class _Symbols:
    """The functions of an ELF file, sorted by where they begin."""

    def __init__(self, text: mmap.mmap) -> None:
        import numpy

        self._text = text
        *_, headers, sections = struct.unpack_from("<HHIQQQ", text, 16)
        size, count, section_size, section_count, _ = struct.unpack_from("<HHHHH", text, 54)
        loads = [struct.unpack_from("<IIQQQQ", text, headers + number * size) for number in range(count)]
        self._loads = [(place, address, length) for load, _, place, address, _, length in loads if load == 1]
        found = [struct.unpack_from("<IIQQQQIIQQ", text, sections + number * section_size) for number in range(section_count)]
        table = next((one for one in found if one[1] == 2), None) or next((one for one in found if one[1] == 11), None)
        if table is None:
            raise ValueError("no symbols")
        self._names = found[table[6]][4]
        layout = numpy.dtype(
            [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
        )
        entries = numpy.frombuffer(text, layout, count=table[5] // 24, offset=table[4])
        entries = entries[((entries["info"] & 15) == 2) & (entries["value"] != 0)]
        self._entries = entries[numpy.argsort(entries["value"], kind="stable")]
        self._values = self._entries["value"].copy()

    def at(self, offset: int) -> bytes:
        """The name of the function at a place in the file."""
        address = next((offset - place + base for place, base, size in self._loads if place <= offset < place + size), None)
        if address is None:
            return b""
        number = int(self._values.searchsorted(address, side="right")) - 1
        if number < 0:
            return b""
        start = self._names + int(self._entries["name"][number])
        return bytes(self._text[start : self._text.find(b"\0", start)])


@lru_cache(maxsize=8)
def _symbols(path: str) -> _Symbols | None:
    text = _content(path)
    try:
        return _Symbols(text) if text is not None and text[:6] == b"\x7fELF\x02\x01" else None
    except (ValueError, IndexError, struct.error, ImportError):
        return None
