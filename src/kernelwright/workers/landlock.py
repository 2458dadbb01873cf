"""Landlock: the kernel's own allow-list of paths, for processes without privileges.

In: folders that may be read (and executed), folders that may also be written. Out: everything else of the file system is refused to
this process and all it starts, for good. Where the kernel knows how, signals to and abstract sockets of processes outside are
refused too. False when the kernel has no landlock.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

from kernelwright.workers.system_calls import LIBC, check

CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP_BIND_AND_CONNECT = 3
SCOPE_ABSTRACT_AND_SIGNALS = 3


def abi() -> int:
    """The kernel's landlock version; 0 when there is none."""
    version = LIBC.syscall(ctypes.c_long(CREATE), None, ctypes.c_size_t(0), ctypes.c_uint(1))
    return max(int(version), 0)


def close(readable: Sequence[str], writable: Sequence[str]) -> bool:
    """Confine the calling process; needs no_new_privs to be set already."""
    version = abi()
    if not version:
        return False
    everything = ALL_BY_ABI[min(version, 5)]
    attributes = struct.pack("<Q", everything)
    if version >= 4:
        attributes += struct.pack("<Q", TCP_BIND_AND_CONNECT)
    if version >= 6:
        attributes += struct.pack("<Q", SCOPE_ABSTRACT_AND_SIGNALS)
    try:
        ruleset = check(LIBC.syscall(ctypes.c_long(CREATE), attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)))
        for path in readable:
            _allow(ruleset, path, EXECUTE | READ_FILE | READ_DIR)
        for path in writable:
            _allow(ruleset, path, everything)
        check(LIBC.syscall(ctypes.c_long(RESTRICT), ctypes.c_int(ruleset), ctypes.c_uint(0)))
        os.close(ruleset)
    except OSError:
        return False
    return True


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= FILE_RIGHTS
    rule = struct.pack("<Qi", rights, fd)
    check(LIBC.syscall(ctypes.c_long(ADD), ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0)))
    os.close(fd)
