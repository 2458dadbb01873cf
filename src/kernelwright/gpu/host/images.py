"""PTX out of a fat binary: what nvcc put into a program for `__cudaRegisterFatBinary`.

A fat binary is a header (magic, version, size of the header, size of the rest) and entries: kind (1 PTX, 2 machine code), size of the
entry's header, size of its content, architecture. Its content is plain when nvcc was told `--no-compress`.
"""

from __future__ import annotations

import ctypes
import re
import struct

from kernelwright.core.errors import GpuError

_MAGIC = 0xBA55ED50
_PTX = 1
NEWEST = 90
"""The newest architecture whose code is executed."""


def ptx_of(address: int) -> str:
    """The PTX of the image at an address of this process, for the newest architecture that is executed."""
    magic, _, header, size = struct.unpack("<IHHQ", ctypes.string_at(address, 16))
    if magic != _MAGIC:
        raise GpuError("a program registered a binary that is no fat binary of CUDA")
    data = ctypes.string_at(address + header, size)
    found: dict[int, str] = {}
    at = 0
    while at + 16 <= len(data):
        kind, _, entry, content = struct.unpack_from("<HHIQ", data, at)
        body = data[at + entry : at + entry + content]
        at += entry + content
        if kind != _PTX:
            continue
        text = body.rstrip(b"\0").decode(errors="replace")
        arch = re.search(r"^\s*\.target\s+sm_(\d+)", text, re.MULTILINE)
        if arch:
            found[int(arch[1])] = text.strip()
    fitting = [arch for arch in found if arch <= NEWEST]
    if not fitting:
        raise GpuError(
            "a program has no PTX that is executed here: compile it with kernelwright, or with "
            "nvcc -gencode arch=compute_80,code=compute_80 --no-compress"
        )
    return found[max(fitting)]
