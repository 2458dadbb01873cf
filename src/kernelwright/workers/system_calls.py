"""The Linux calls that Python has no name for, through libc's `syscall` and friends; each raises OSError like `os` does."""

from __future__ import annotations

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 36, 38

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
MOUNT_SETATTR = 442
AT_RECURSIVE, MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 0x8000, 1, 2
MACHINE = os.uname().machine


def check(result: int) -> int:
    """Turn libc's -1 into the OSError it stands for."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, first: int = 0, second: object = 0) -> None:
    value = second if not isinstance(second, int) else ctypes.c_ulong(second)
    check(LIBC.prctl(option, ctypes.c_ulong(first), value, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def unshare(flags: int) -> None:
    check(LIBC.unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    encoded = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    check(LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]))


def make_read_only(target: str) -> None:
    """A bind mount and everything below it becomes read-only and loses set-uid programs."""

    class MountAttr(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]

    attributes = MountAttr(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    result = LIBC.syscall(
        ctypes.c_long(MOUNT_SETATTR),
        ctypes.c_int(-100),
        target.encode(),
        ctypes.c_uint(AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    if result == -1:  # before Linux 5.12: only the top mount can be changed
        mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)


def make_read_only_top(target: str) -> None:
    """Only this mount, not what is mounted below it."""
    mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def pivot_root(new: str, old: str) -> None:
    check(LIBC.syscall(ctypes.c_long(_PIVOT_ROOT[MACHINE]), new.encode(), old.encode()))


def umount(target: str) -> None:
    check(LIBC.umount2(target.encode(), ctypes.c_int(MNT_DETACH)))


def drop_capabilities() -> None:
    """Give up every capability, and the right to get one back."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check(LIBC.syscall(ctypes.c_long(_CAPSET[MACHINE]), header, (ctypes.c_uint32 * 6)()))


def no_new_privileges() -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
