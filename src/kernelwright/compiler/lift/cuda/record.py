"""Recording CUDA launches: the emulator (dsl/cuda_c) runs them, and tells each one with its arguments before.

In: a function that takes each launch (tracing.Tracer.launch). Out: the emulator's observer set in this process for good (it is a
process of its own). Arguments are numbers and bare pointers, by position: the tracer knows whose memory an address is.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

from kernelwright.compiler.backends.cuda_c.emulator.library import MEMORY
from kernelwright.compiler.lift.tracing import Pointer
from kernelwright.core.errors import CannotLift


class _KwLaunch(ctypes.Structure):
    _fields_ = [
        ("line", ctypes.c_int), ("name", ctypes.c_char_p), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_size_t), ("body", ctypes.c_void_p), ("closure", ctypes.c_void_p), ("templates", ctypes.c_char_p),
    ]  # fmt: skip


class _KwArgument(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32), ("bytes", ctypes.c_int32), ("i", ctypes.c_int64), ("d", ctypes.c_double), ("p", ctypes.c_void_p),
    ]  # fmt: skip


_Observer = ctypes.CFUNCTYPE(None, ctypes.POINTER(_KwLaunch), ctypes.POINTER(_KwArgument), ctypes.c_int)


def install(put: Any) -> None:
    """From now on launches are put down."""

    def observer(launch: Any, arguments: Any, count: int) -> None:
        told = launch.contents
        options = {
            "block": tuple(told.block), "shared": int(told.shared), "line": int(told.line),
            "templates": [t.strip() for t in (told.templates or b"").decode().split(";") if t.strip()],
        }  # fmt: skip
        name = told.name.decode()
        values = {str(k): _value(arguments[k]) for k in range(count)}
        with suppress(CannotLift):  # C++ called us, and nothing passes through it; the tracer keeps the refusal
            put(name, name.rpartition("::")[2], tuple(told.grid), values, options)

    MEMORY.observe(_Observer(observer))


def _value(argument: Any) -> Any:
    match argument.kind:
        case 0:
            return Pointer(argument.p or 0)
        case 1:
            return int(argument.i)
        case 2:
            return int(argument.i) & ((1 << 8 * argument.bytes) - 1)
        case 3:
            return float(argument.d)
        case 4:
            return bool(argument.i)
        case 5:
            kind, axes = ctypes.c_int32 if argument.bytes == 4 else ctypes.c_int64, argument.i
            numbers = (kind * (2 * axes)).from_address(argument.p + ctypes.sizeof(ctypes.c_void_p))
            data = ctypes.c_void_p.from_address(argument.p).value
            return Pointer(data or 0, tuple(numbers[:axes]), tuple(numbers[axes:]))
    return None
