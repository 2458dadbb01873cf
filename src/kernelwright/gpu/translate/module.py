"""A module as one C++ source: global memory laid out, sites numbered, a function for each kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.core.errors import PtxError
from kernelwright.gpu.ptx import (
    TYPE_BYTES,
    Address,
    Function,
    Instruction,
    Location,
    Module,
    Parameter,
    Symbol,
    Variable,
    Vector,
)
from kernelwright.gpu.translate.arithmetic import arithmetic
from kernelwright.gpu.translate.bulk import bulk, has_partial_barriers
from kernelwright.gpu.translate.calls import flatten
from kernelwright.gpu.translate.conversions import conversions
from kernelwright.gpu.translate.emit import Emitter
from kernelwright.gpu.translate.flow import BasicBlock, blocks_of, split_where_lanes_gather
from kernelwright.gpu.translate.in_flight import too_early
from kernelwright.gpu.translate.matrices import matrices
from kernelwright.gpu.translate.memory import memory, space_of
from kernelwright.gpu.translate.values import Values
from kernelwright.gpu.translate.warps import warps

_HANDLERS = (arithmetic, conversions, bulk, memory, warps, matrices)
_ALIGN = 256


@dataclass(frozen=True)
class Site:
    """An instruction that the runtime may speak of: a fault, a count."""

    kernel: str
    name: str
    line: int  # of the PTX
    location: Location | None


@dataclass(frozen=True)
class CountedBlock:
    """A basic block as a counter: how often its instructions ran is how often it ran."""

    kernel: str
    instructions: tuple[Instruction, ...]
    sites: tuple[int, ...]
    """Of each instruction: its number among the sites, or -1."""


@dataclass(frozen=True)
class EntryPoint:
    """What a launch needs to know of a kernel."""

    name: str
    parameters: tuple[Parameter, ...]
    shared_bytes: int
    local_bytes: int
    directives: Mapping[str, tuple[int, ...]]
    dynamic_shared: bool
    granules: tuple[int, int] = (4, 4)  # least sizes of accesses to shared and to global memory
    partial: bool = False  # has barriers that are not of all warps

    @property
    def parameter_bytes(self) -> int:
        """Size of the block of parameters."""
        return max((p.offset + p.size for p in self.parameters), default=0)


@dataclass(frozen=True)
class Layout:
    """Where global and constant variables sit in the module's image, and what they begin with."""

    offsets: Mapping[str, int]
    variables: tuple[Variable, ...]
    size: int

    def image(self, base: int) -> bytes:
        """The initial bytes, for an image that will be at this address."""
        data = bytearray(self.size)
        for v in self.variables:
            at = self.offsets[v.name]
            width = TYPE_BYTES[v.type]
            for k, value in enumerate(v.values):
                if isinstance(value, Symbol):
                    if value.name not in self.offsets:
                        raise PtxError(f"{v.name} begins with the address of {value.name}, which is not a variable in memory")
                    value = base + self.offsets[value.name] + value.offset
                data[at + k * width : at + (k + 1) * width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        return bytes(data)


@dataclass(frozen=True)
class Translation:
    """The source, and everything that is needed to launch it and to speak about it."""

    source: str
    entries: tuple[EntryPoint, ...]
    layout: Layout
    sites: tuple[Site, ...]
    counters: tuple[CountedBlock, ...]


def translate(module: Module, name: str = "ptx") -> Translation:
    """All kernels of a module; PtxError where one has an instruction that is not known."""
    layout = _layout(module)
    sites: list[Site] = []
    counters: list[CountedBlock] = []
    entries: list[EntryPoint] = []
    texts: list[str] = []
    for index, function in enumerate(module.entries):
        text, entry = _kernel(module, function, index, layout, sites, counters, name)
        texts.append(text)
        entries.append(entry)
    rows = ",\n".join(
        f'    {{"{e.name}", run{k}, sizeof(Registers{k}), {e.local_bytes}, {e.shared_bytes}, {len(counters)}, '
        f"{e.granules[0]}, {e.granules[1]}, {int(e.partial)}}}"
        for k, e in enumerate(entries)
    )
    table = f'extern "C" const Entry kw_entries[] = {{\n{rows}\n}};\n'
    source = '#include "kernel.h"\n' + "\n".join(texts) + table
    return Translation(source, tuple(entries), layout, tuple(sites), tuple(counters))


def _layout(module: Module) -> Layout:
    offsets: dict[str, int] = {}
    kept: list[Variable] = []
    at = 0
    for v in module.variables:
        if v.space not in ("global", "const"):
            continue
        if v.external and not v.size:
            continue
        align = max(v.align, 16)
        at = -(-at // align) * align
        offsets[v.name] = at
        kept.append(v)
        at += v.size
    return Layout(offsets, tuple(kept), max(at, 1))


def _kernel(
    module: Module, function: Function, index: int, layout: Layout, sites: list[Site], counters: list[CountedBlock], name: str
) -> tuple[str, EntryPoint]:
    flat = flatten(module, function, name)
    blocks = blocks_of(flat, name)
    shape = function.directives.get("reqntid", ())
    one_row = bool(shape) and all(s == 1 for s in shape[1:])
    values = Values(blocks, one_row)
    if any(b.divergent for b in blocks):
        pieces = split_where_lanes_gather(blocks)
        if len(pieces) != len(blocks):
            blocks = pieces
            values = Values(blocks, one_row)
    used = _names(blocks)
    symbols: dict[str, tuple[str, int]] = {n: ("global", at) for n, at in layout.offsets.items()}
    symbols.update((p.name, ("param", p.offset)) for p in function.parameters)
    shared = local = 0
    dynamic = []
    for v in [*module.variables, *flat.variables.values()]:
        if v.space == "local":
            local = -(-local // v.align) * v.align
            symbols[v.name] = ("local", local)
            local += v.size
        elif v.space == "shared" and v.name in used:
            if v.external:
                dynamic.append(v)
                continue
            shared = -(-shared // v.align) * v.align
            symbols[v.name] = ("shared", shared)
            shared += v.size
    start = (
        -(-shared // 16) * 16 if not dynamic else -(-shared // max(v.align for v in dynamic)) * max(v.align for v in dynamic)
    )
    symbols.update((v.name, ("shared", start)) for v in dynamic)
    known: dict[int, int] = {}

    def site(i: Instruction) -> int:
        if id(i) not in known:
            known[id(i)] = len(sites)
            sites.append(Site(function.name, i.name, i.line, i.location))
        return known[id(i)]

    emitter = Emitter(flat, blocks, values, _HANDLERS, symbols.get, site, name, too_early(blocks))
    text = f"enum {{ kw_counter{index} = {len(counters)} }};\n" + emitter.function(index).replace(
        "kw_counter +", f"kw_counter{index} +"
    )
    for b in blocks:
        whole = (*b.instructions, *([b.terminator] if b.terminator else []))
        counters.append(CountedBlock(function.name, whole, tuple(known.get(id(i), -1) for i in whole)))
    size = start if dynamic else shared
    entry = EntryPoint(
        function.name, function.parameters, size, -(-local // 16) * 16, function.directives, bool(dynamic), _granules(blocks),
        has_partial_barriers([i for b in blocks for i in (*b.instructions, *([b.terminator] if b.terminator else []))]),
    )  # fmt: skip
    return text, entry


def _granules(blocks: list[BasicBlock]) -> tuple[int, int]:
    """The least sizes, up to four bytes, of accesses to shared memory and of stores to global memory."""
    shared = out = 4
    for block in blocks:
        for i in block.instructions:
            if i.opcode not in ("ld", "st", "atom", "red") or not i.types:
                continue
            size, space = min(TYPE_BYTES[i.types[-1]], 4), space_of(i)
            if space in ("shared", ""):
                shared = min(shared, size)
            if space in ("global", "") and i.opcode != "ld":
                out = min(out, size)
    return shared, out


def _names(blocks: list[BasicBlock]) -> set[str]:
    """The symbols that a kernel mentions."""
    found: set[str] = set()

    def visit(o: object) -> None:
        if isinstance(o, Symbol):
            found.add(o.name)
        elif isinstance(o, Address):
            visit(o.base)
            for c in o.coordinates:
                visit(c)
        elif isinstance(o, Vector):
            for x in o.elements:
                visit(x)

    for block in blocks:
        for i in [*block.instructions, *([block.terminator] if block.terminator else [])]:
            for o in i.operands:
                visit(o)
    return found
