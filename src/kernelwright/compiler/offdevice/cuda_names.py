"""Names of kernels as their authors wrote them: mangled in, C++ out."""

from __future__ import annotations

import ctypes

_libstdcxx = ctypes.CDLL("libstdc++.so.6")


def signature(mangled: str) -> str:
    """A function's name as C++ says it, with template arguments and parameters."""
    status = ctypes.c_int()
    _libstdcxx.__cxa_demangle.restype = ctypes.c_void_p
    found = _libstdcxx.__cxa_demangle(mangled.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(found).decode() if found else mangled


def plain_name(mangled: str) -> str:
    """A function's name alone."""
    text, kept, depth = signature(mangled).replace("(anonymous namespace)::", ""), "", 0
    for letter in text:
        if letter == "(" and not depth:
            break
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">":
            kept += letter
    return kept.split()[-1].rpartition("::")[2]
