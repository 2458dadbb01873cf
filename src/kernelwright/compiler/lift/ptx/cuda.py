"""Recorded launches of CUDA host code → PTX for a device that executes warps, with mathematics still by name.

The file's own host code runs as nvcc compiled it, against our CUDA runtime (gpu/host), which tells each launch before it executes it. For
the lift its sources are compiled once more, for one device, with a library of mathematics that has no function: `expf` stays a call.
"""

from __future__ import annotations

import ctypes
import re
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.compiler.backends.cuda_c import builds, inline
from kernelwright.compiler.lift.formulas.memory import Followed
from kernelwright.compiler.lift.formulas.refusal import Refused, place
from kernelwright.compiler.lift.launches import Launch, Seen
from kernelwright.compiler.lift.ptx.follow import Started, follow
from kernelwright.compiler.lift.tracing import Pointer
from kernelwright.compiler.offdevice import cuda_build
from kernelwright.compiler.offdevice.nvcc import NVCC, run
from kernelwright.core.errors import CannotLift
from kernelwright.gpu import host
from kernelwright.gpu.ptx import Function, Module, parse

ARCHITECTURE = "compute_80"
"""What is compiled for: tensor cores by `mma.sync`, and no instruction that hides what it computes."""
SECONDS = 240.0
NO_MATHEMATICS = bytes.fromhex(
    "4243c0de210c0000090000000b8260c2e40ef6000ff4800f7640076de00ef6900ee4900ee1d006e3500fe4100e000000"
)
"""A library for nvcc's compiler in LLVM's bitcode: the version of the format, the target's name, and no function."""
_TYPES = {
    "float": "f32", "double": "f64", "__half": "f16", "__half2": "f16", "__nv_bfloat16": "bf16", "__nv_bfloat162": "bf16", "bool": "bool",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "int": "i32", "unsigned int": "i32", "long": "i64",
    "long long": "i64", "unsigned long": "i64", "unsigned long long": "i64", "void": "f32",
}  # fmt: skip


def install(tracer: Any) -> None:
    """From now on launches, copies and fills are put down."""
    device = builds.device()

    def pointer(address: int, type: str = "f32") -> Pointer:
        variable = device.variable_at(address)
        found = variable or device.memory.find(address)
        return Pointer(address, found[0], found[1], type, variable is not None) if found is not None else Pointer(address)

    def observer(launch: host.Launch) -> None:
        types = _pointed_to(launch.entry)
        found: dict[int, list[tuple[int, Pointer]]] = {}
        for b in launch.buffers():
            found.setdefault(b.parameter, []).append((b.offset, pointer(b.address, types[b.parameter : b.parameter + 1][0])))
        values = {str(k): _argument(raw, found.get(k, [])) for k, raw in enumerate(launch.arguments())}
        known = device.variables_of(launch.image) if written else {}
        variables = {name: pointer(at) for name, at in known.items() if at in written}
        options = {"block": launch.block, "shared": launch.shared}
        with suppress(CannotLift):  # C++ called us, and nothing passes through it; the tracer keeps the refusal
            tracer.launch(_plain_name(launch.entry), launch.entry, launch.grid, values | variables, options)

    written: set[int] = set()

    def moved(to: int, start: int, size: int, value: int) -> None:
        goal = pointer(to)
        if device.variable_at(to):
            written.add(goal.begin)
        with suppress(CannotLift):
            tracer.moved(goal, pointer(start) if start else None, size, value)

    device.watch(observer)
    device.movements = moved


def _argument(raw: bytes, made: list[tuple[int, Pointer]]) -> Any:
    """An argument with its pointers: one, or the pieces of a structure."""
    if len(made) == 1 and len(raw) == 8:
        return made[0][1]
    if not made:
        return raw
    pieces: list[Any] = []
    at = 0
    for offset, pointer in made:
        pieces += [raw[at:offset], pointer]
        at = offset + 8
    return (*pieces, raw[at:])


class Compiled:
    """The launches of a trace, followed by their PTX; refusals at the lines of the author's file."""

    def __init__(self, seen: Seen) -> None:
        self.buffers, self.file = seen.trace.buffers, seen.source
        self.modules: list[tuple[Module, str]] | None = None

    def __call__(self, launch: Launch) -> Followed:
        """What a launch writes."""
        module, entry, text = self._code(launch)
        started = Started(
            module,
            entry,
            launch.grid,  # type: ignore[arg-type]
            launch.options["block"],
            launch.options["shared"],
            [given for name, given in launch.arguments.items() if name.isdigit()],
            launch.name,
            {name: given for name, given in launch.arguments.items() if not name.isdigit()},
        )
        try:
            return follow(started, self.buffers)
        except Refused as refused:
            raise self._placed(refused, launch, text) from None

    def refused(self, refused: Refused, launch: Launch) -> Refused:
        """A refusal about what a kernel computes, at the head of its function."""
        return self._placed(refused, launch, self._code(launch)[2])

    def _code(self, launch: Launch) -> tuple[Module, Function, str]:
        """The module that has the launch's kernel, the kernel, and the text that it was compiled from."""
        if self.modules is None:
            self.modules = [
                (parse(_ptx(source, flags)), source.read_text(encoding="utf-8", errors="replace"))
                for sources, flags in builds.built()
                for source in sources
                if source.suffix == ".cu"
            ]
        wanted = str(launch.kernel)
        for same in (lambda name: name == wanted, lambda name: _unhashed(name) == _unhashed(wanted)):
            for module, text in self.modules:
                entry = next((f for f in module.entries if same(f.name)), None)
                if entry is not None:
                    return module, entry, text
        raise Refused(0, f"the kernel {launch.name} is not in the sources that the file compiles")

    def _placed(self, refused: Refused, launch: Launch, text: str) -> Refused:
        """The same, with the line of the author's file. Lines count from the start of each text that an extension is built of."""
        reason, line = refused.reason, refused.line
        pieces = sorted(text.split(inline.MARK), key=lambda piece: not re.search(rf"__global__[^;{{]*\b{launch.name}\b", piece))
        if not line:
            head = re.search(rf"^[^\n]*\b{launch.name}\s*\(", pieces[0], re.MULTILINE)
            line = pieces[0].count("\n", 0, head.start()) + 1 if head else 0
            reason = f"{launch.name}: {reason}"
        found = next((at for piece in pieces if (at := place(line, piece, self.file))), 0)
        if line and not found:
            return Refused(0, f"{reason} (line {line} of its CUDA source)")
        return Refused(found, reason)


def _ptx(source: Path, flags: tuple[str, ...]) -> str:
    """A source's PTX with mathematics by name."""
    with tempfile.TemporaryDirectory() as folder:
        library, output = Path(folder) / "none.bc", Path(folder) / "kernel.ptx"
        library.write_bytes(NO_MATHEMATICS)
        standard = next((f for f in reversed(flags) if f.startswith(("-std=", "--std="))), "-std=c++17")
        command = [
            str(NVCC), "-ptx", f"-arch={ARCHITECTURE}", "-lineinfo", "-w", standard, "--expt-relaxed-constexpr", "--extended-lambda",
            *cuda_build.author_flags(flags), "-Xcicc", "-nvvmir-library", "-Xcicc", str(library), str(source), "-o", str(output),
        ]  # fmt: skip
        code, said = run(command, SECONDS)
        if code or not output.exists():
            first = next((line for line in said.splitlines() if "error" in line), said.strip()[:300] or "nvcc said nothing")
            raise Refused(0, f"its sources do not compile for the lift: {re.sub(r'^[^ ]*/', '', first)}")
        return output.read_text()


def _unhashed(name: str) -> str:
    """A mangled name without what differs from one compilation to the next (names of one file alone)."""
    return re.sub(r"_GLOBAL__N__[0-9a-f_]+?(?=_\d*[a-z])|_INTERNAL_[0-9a-f]{8}|[0-9a-f]{8,}", "", name)


@cache
def demangled(name: str) -> str:
    """A C++ symbol as people write it."""
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value or not found:
        return name
    text = ctypes.string_at(found).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return text


def _plain_name(entry: str) -> str:
    """`softmax` of `void ns::softmax<128>(float*, int)`."""
    head = _outside(demangled(entry), "(")[0].strip()
    head = _outside(head, "<")[0]
    return head.split("::")[-1].split()[-1] if head.split() else entry


def _outside(text: str, mark: str) -> list[str]:
    """The text before the first mark that stands outside of angle brackets, and after it."""
    depth = 0
    for k, c in enumerate(text.replace("(anonymous namespace)", "_anonymous_namespace_")):
        if c == mark and depth == 0:
            return [text[:k], text[k + 1 :]]
        depth += (c == "<") - (c == ">")
    return [text, ""]


@cache
def _pointed_to(entry: str) -> list[str]:
    """For each parameter the type that it points to, in the tape's words."""
    inside = _outside(demangled(entry), "(")[1].rpartition(")")[0]
    parts, depth, last = [], 0, 0
    for k, c in enumerate(inside):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append(inside[last:k])
            last = k + 1
    parts.append(inside[last:])
    return [_element(part) for part in parts]


def _element(text: str) -> str:
    base = re.sub(r"\b(const|volatile|__restrict__|restrict)\b|[*&]", " ", text)
    base = re.sub(r"\s+", " ", base).strip()
    vector = re.fullmatch(r"(u?)(char|short|int|long|longlong|float|double)[1-4]", base)
    if vector:
        base = {"longlong": "long long"}.get(vector[2], vector[2])
    return _TYPES.get(base, "f32")


__all__ = ["Compiled", "demangled", "install"]
