"""Resource figures from a CUDA binary: bytes of a cubin in, registers and stack of each kernel out. No tool is needed.

A cubin is an ELF file. Its section `.nv.info` is a list of attributes; two of them count here: REGCOUNT (registers of a thread) and
FRAME_SIZE (bytes of stack, which is where spilled registers go), each with the index of the kernel's symbol. The same figures are
printed by `ptxas -v` and `cuobjdump -res-usage`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

FRAME_SIZE, REGISTER_COUNT = 0x11, 0x2F
WITH_SIZE = 0x04
"""Format of an attribute whose value has a length; the others hold their value in the two bytes of the length."""
FUNCTION = 2


@dataclass(frozen=True)
class Usage:
    """Of one kernel, per thread: registers, and bytes of stack (spills and local arrays)."""

    registers: int
    stack: int


def usage(binary: bytes) -> dict[str, Usage]:
    """The kernels of a cubin by name."""
    if binary[:4] != b"\x7fELF":
        raise ValueError("not a cubin")
    offset, entry_size, count, names_index = (
        struct.unpack_from("<Q", binary, 0x28)[0],
        *struct.unpack_from("<HHH", binary, 0x3A),
    )
    sections = [struct.unpack_from("<IIQQQQIIQQ", binary, offset + entry_size * number) for number in range(count)]
    names = sections[names_index]
    by_name = {_text(binary, names[4] + section[0]): section for section in sections}
    symbols = _symbols(binary, by_name)
    figures: dict[int, dict[int, int]] = {}
    if ".nv.info" in by_name:
        start, size = by_name[".nv.info"][4], by_name[".nv.info"][5]
        place = start
        while place + 4 <= start + size:
            form, attribute, length = struct.unpack_from("<BBH", binary, place)
            place += 4
            if form != WITH_SIZE:
                continue
            if length == 8 and attribute in (FRAME_SIZE, REGISTER_COUNT):
                symbol, value = struct.unpack_from("<II", binary, place)
                figures.setdefault(symbol, {})[attribute] = value
            place += length
    found = {}
    for symbol, known in figures.items():
        if REGISTER_COUNT in known and symbol in symbols:
            found[symbols[symbol]] = Usage(known[REGISTER_COUNT], known.get(FRAME_SIZE, 0))
    return found


def _symbols(binary: bytes, sections: dict[str, tuple[int, ...]]) -> dict[int, str]:
    """Names of the functions by index of their symbol."""
    table, texts = sections.get(".symtab"), sections.get(".strtab")
    if table is None or texts is None:
        return {}
    found = {}
    for index in range(table[5] // 24):
        name, info = struct.unpack_from("<IB", binary, table[4] + 24 * index)
        if info & 0xF == FUNCTION:
            found[index] = _text(binary, texts[4] + name)
    return found


def _text(binary: bytes, place: int) -> str:
    return binary[place : binary.index(b"\0", place)].decode(errors="replace")
