"""Closing a forked process in: namespaces with a root of its own, no privileges, landlock, seccomp, rlimits.

Two steps, because a process enters a new pid namespace only by being forked into it:

1. `detach(mode)`  in the process that forks the keeper: leave the host's namespaces;
2. `close(cell)`   in the keeper (pid 1 in there): a private root of read-only binds and one writable folder, then no privileges;
   `seal(cell)`    in the worker that the keeper forks: landlock, seccomp, rlimits, a clean environment. No way back.

In: a `Cell` (plain data from the parent). Out: the level that was reached, as one string for the verdict. Modes: "namespaces"
(root, or user namespaces), "landlock" (no namespaces to be had: landlock + seccomp), "none". Whoever calls decides what to try
next when a step raises OSError. Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import site
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from kernelwright.workers import landlock, limits, seccomp
from kernelwright.workers import system_calls as system

HOME = "/home/kernel"
MODES = ("namespaces", "landlock", "none")
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
CPU_FACTS = "/sys/devices/system/cpu"
COMPILER_REFUSAL = "a kernel must not be written by the compiler of torch"
"""What a kernel is told that imports a hidden package; the verdict is known by it (rejection.py)."""
TOOLS = ("g++", "gcc", "c++", "cc", "clang++", "clang", "ld", "as", "ninja", "bisheng", "bishengir-compile")
"""Compilers that a kernel may start; the last two are those of CANN, for Ascend."""
CANN = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH", "ASCEND_RT_VISIBLE_DEVICES")
"""Where CANN is, by the variables of its own set_env.sh: nothing runs on an NPU without them."""


@dataclass(frozen=True)
class Cell:
    """Where and as whom a worker will live. `root` is an empty folder of the host on which the private root is mounted;
    `folder` the host folder that may be written (made here when None and namespaces are used)."""

    mode: str
    root: str
    folder: str | None
    uid: int
    limits: limits.Limits = field(default_factory=limits.Limits)
    readable: tuple[str, ...] = ()
    """Paths of the host that the worker may read beside what every worker may (`dsl.language.readable`)."""
    devices: tuple[str, ...] = ()
    """Device files that it may open beside those that every worker may (`device.nodes`)."""
    hidden: tuple[str, ...] = ()
    """Python packages that cannot be imported inside, by the worker or by a process that it starts (namespaces only)."""

    def as_message(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Cell:
        lists = {name: tuple(message[name]) for name in ("readable", "devices", "hidden")}
        return cls(**{**message, **lists, "limits": limits.Limits.from_message(message["limits"])})

    @property
    def home(self) -> str:
        """The writable folder as the worker sees it."""
        return HOME if self.mode == "namespaces" else (self.folder or "/nonexistent")


def readable_folders() -> list[str]:
    """What Python, torch and the compiler need of this host, and nothing else: no home, no project, no /tmp."""
    found = [*SYSTEM_FOLDERS, sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *site.getsitepackages()]
    for name in ("torch", "numpy"):
        module = sys.modules.get(name)
        if module is not None and getattr(module, "__file__", None):
            found.append(os.path.dirname(os.path.dirname(os.path.realpath(str(module.__file__)))))
    for tool in TOOLS:
        place = shutil.which(tool)
        if place:
            found.append(os.path.dirname(os.path.realpath(place)))
    kept: list[str] = []
    for path in sorted({os.path.normpath(path) for path in found if os.path.isdir(path)}):
        if path != "/" and not any(path.startswith(other + "/") for other in kept):
            kept.append(path)
    return kept


def detach(mode: str) -> None:
    """Leave the host's namespaces: mounts, processes, network, IPC and host name; as a plain user by way of a user namespace."""
    if mode != "namespaces":
        return
    flags = system.CLONE_NEWNS | system.CLONE_NEWPID | system.CLONE_NEWNET | system.CLONE_NEWIPC | system.CLONE_NEWUTS
    if os.geteuid() == 0:
        system.unshare(flags)
        return
    uid, gid = os.getuid(), os.getgid()
    system.unshare(flags | system.CLONE_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"65534 {uid} 1")
    _write("/proc/self/gid_map", f"65534 {gid} 1")


def close(cell: Cell) -> None:
    """Become a process that sees only the cell and may do nothing with it that an unprivileged user may not."""
    privileged = os.geteuid() == 0
    if cell.mode == "namespaces":
        _build_root(cell)
    if cell.mode != "none" and privileged:
        _become(cell.uid if cell.mode == "namespaces" else _owner(cell.folder))
    if cell.mode != "none":
        with contextlib.suppress(OSError):
            system.drop_capabilities()
        system.no_new_privileges()


def seal(cell: Cell) -> str:
    """The last step, in the worker itself: environment, rlimits, landlock, seccomp. Returns the level for the verdict."""
    os.makedirs(f"{cell.home}/tmp", exist_ok=True)
    os.chdir(cell.home)
    clean = environment(cell.home)
    os.environ.clear()
    os.environ.update(clean)
    # Outside namespaces the limit on processes would count everything else that this user runs.
    limits.impose(cell.limits, processes=cell.limits.processes if cell.mode == "namespaces" else None)
    if cell.mode == "none":
        return "none"
    # After a change of uid the kernel closes /proc/self to its owner; some honest libraries read their own maps.
    system.prctl(system.PR_SET_DUMPABLE, 1)
    reached = ["namespaces"] if cell.mode == "namespaces" else []
    readable = [*readable_folders(), *cell.readable, *SYSTEM_FILES, "/etc/passwd", CPU_FACTS, "/proc"]
    # Inside namespaces /proc shows only the cell's own processes, which may write to their own entries (as /proc/self/comm).
    own = [cell.home, "/tmp", "/var/tmp", "/dev/shm", "/proc"] if cell.mode == "namespaces" else [cell.home]
    if landlock.close(readable, [*own, *DEVICES, *cell.devices]):
        reached.append("landlock")
    if seccomp.close():
        reached.append("seccomp")
    return "+".join(reached) or "none"


def environment(home: str) -> dict[str, str]:
    """The whole environment of a worker: the same for all, so that nothing in it tells checking from timing."""
    kept = ("OMP_", "MKL_", "OPENBLAS_", "MALLOC_", "KMP_", "GOMP_", "LD_LIBRARY_PATH", "NUMEXPR_", *CANN)
    result = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    path = [os.path.join(sys.prefix, "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    for tool in TOOLS:
        place = shutil.which(tool)
        if place and os.path.dirname(place) not in path:
            path.append(os.path.dirname(place))
    result |= {
        "HOME": home,
        "PATH": ":".join(path),
        "LANG": "C.UTF-8",
        "USER": "kernel",
        "LOGNAME": "kernel",
        "TMPDIR": f"{home}/tmp",
        "XDG_CACHE_HOME": f"{home}/cache",
        "TORCH_EXTENSIONS_DIR": f"{home}/extensions",
        "TORCHINDUCTOR_CACHE_DIR": f"{home}/inductor",
        "TRITON_CACHE_DIR": f"{home}/triton",
        "MAX_JOBS": "2",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return result


def _build_root(cell: Cell) -> None:
    root = cell.root
    system.mount("none", "/", None, system.MS_REC | system.MS_PRIVATE)
    system.mount("tmpfs", root, "tmpfs", system.MS_NOSUID | system.MS_NODEV, "mode=0755,size=16m")
    _make_home(cell)
    for path in (*readable_folders(), CPU_FACTS):
        _bind(path, root, read_only=True)
    for path in (*SYSTEM_FILES, *cell.readable):
        if os.path.exists(path) and not os.path.lexists(root + path):
            _bind(path, root, read_only=True)
    for package in cell.hidden:
        _cover(package, root)
    for path in (*DEVICES, *cell.devices):
        _bind(path, root, read_only=False)
    os.makedirs(root + "/dev/shm", exist_ok=True)
    system.mount("tmpfs", root + "/dev/shm", "tmpfs", system.MS_NOSUID | system.MS_NODEV, "mode=1777,size=64m")
    os.symlink("/proc/self/fd", root + "/dev/fd")
    _write(root + "/etc/passwd", f"root:x:0:0::/:/bin/sh\nkernel:x:{cell.uid}:{cell.uid}::{HOME}:/bin/sh\n")
    os.makedirs(root + "/proc")
    with contextlib.suppress(OSError):  # some containers forbid a fresh /proc; kernels can do without
        system.mount("proc", root + "/proc", "proc", system.MS_NOSUID | system.MS_NODEV | system.MS_NOEXEC)
    os.makedirs(root + "/.host")
    system.pivot_root(root, root + "/.host")
    os.chdir("/")
    system.umount("/.host")
    os.rmdir("/.host")
    system.make_read_only_top("/")


def _make_home(cell: Cell) -> None:
    """The one writable folder, which also stands for /tmp. It comes first: a Python environment may itself lie below /tmp, and is
    then bound inside."""
    home = cell.root + HOME
    os.makedirs(home)
    if cell.folder:
        system.mount(cell.folder, home, None, system.MS_BIND)
    else:
        owner = f",uid={cell.uid},gid={cell.uid}" if os.geteuid() == 0 else ""
        size = cell.limits.folder_bytes
        system.mount("tmpfs", home, "tmpfs", system.MS_NOSUID | system.MS_NODEV, f"mode=0700,size={size}{owner}")
    os.makedirs(home + "/tmp", exist_ok=True)
    if os.geteuid() == 0:
        os.chown(home + "/tmp", cell.uid, cell.uid)
    for place in ("/tmp", "/var/tmp"):
        os.makedirs(cell.root + place)
        system.mount(home + "/tmp", cell.root + place, None, system.MS_BIND)


def _bind(path: str, root: str, *, read_only: bool) -> None:
    """Show a path of the host at the same place under `root`; a symbolic link is made again instead."""
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        _write(target, "")
    system.mount(path, target, None, system.MS_BIND | system.MS_REC)
    if read_only:
        system.make_read_only(target)


def _cover(package: str, root: str) -> None:
    """Put a package that only says no in the place of a real one, whose top module this process has imported."""
    top, *rest = package.split(".")
    folder = os.path.join(os.path.dirname(os.path.realpath(str(sys.modules[top].__file__))), *rest)
    if os.path.isdir(root + folder):
        system.mount("tmpfs", root + folder, "tmpfs", system.MS_NOSUID | system.MS_NODEV, "mode=0755,size=64k")
        _write(f"{root}{folder}/__init__.py", f"raise ImportError({COMPILER_REFUSAL!r})\n")
        system.make_read_only(root + folder)


def _become(uid: int) -> None:
    os.setgroups([])
    try:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError:  # a container whose user namespace maps few ids
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)


def _owner(folder: str | None) -> int:
    return os.stat(folder).st_uid if folder else 65534


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
