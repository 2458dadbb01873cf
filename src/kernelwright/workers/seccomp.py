"""The system calls that no kernel file needs, refused by a seccomp filter (EPERM; clone3 says ENOSYS so that libc falls back).

In: nothing. Out: a filter on the calling process and all it starts, for good. Numbers are per machine; an unknown machine gets no
filter, and the sandbox level says so. Sockets are allowed only as AF_UNIX, new namespaces not at all.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from kernelwright.workers import system_calls as system

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE = {"x86_64": 56, "aarch64": 220}
SOCKET = {"x86_64": 41, "aarch64": 198}
CLONE3 = 435
X32_BIT = 0x40000000
NEW_NAMESPACES = 0x7E020080

REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes' memory and the machine's counters
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    # keys, modules, clocks, the machine
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "lookup_dcookie": (212, 18),
}

LOAD, EQUAL, GREATER_EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCH, FIRST_ARGUMENT = 0, 4, 16


def program(machine: str) -> bytes:
    """The filter as BPF code. Every test jumps over exactly one answer, so the order of the lines is the order of the rules."""
    column = 0 if machine == "x86_64" else 1
    refuse = REFUSE | errno.EPERM
    lines: list[tuple[int, int, int, int]] = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, AUDIT_ARCH[machine]), (RETURN, 0, 0, KILL)]
    lines.append((LOAD, 0, 0, NUMBER))
    if machine == "x86_64":
        lines += [(GREATER_EQUAL, 0, 1, X32_BIT), (RETURN, 0, 0, KILL)]
    for numbers in REFUSED.values():
        if (number := numbers[column]) is not None:
            lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, refuse)]
    lines += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    lines += [(EQUAL, 0, 4, CLONE[machine]), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY_BIT, 0, 1, NEW_NAMESPACES)]
    lines += [(RETURN, 0, 0, refuse), (RETURN, 0, 0, ALLOW)]
    lines += [(EQUAL, 0, 3, SOCKET[machine]), (LOAD, 0, 0, FIRST_ARGUMENT), (EQUAL, 1, 0, 1), (RETURN, 0, 0, refuse)]
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


def close() -> bool:
    """Install the filter; False where this machine's call numbers are unknown or the kernel has no seccomp."""
    if system.MACHINE not in AUDIT_ARCH:
        return False

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))

    code = program(system.MACHINE)
    try:
        system.prctl(system.PR_SET_SECCOMP, 2, ctypes.byref(Program(len(code) // 8, code)))
    except OSError:
        return False
    return True
