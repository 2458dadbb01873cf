"""The device that a kernel runs on, as the parent sees it (no torch here): its name for torch, its nodes, a lock, its state.

In: the Target that is attached. Out: what a worker needs to reach it (`torch_device`, `nodes`), a lock so that one verdict at a time has it
(`held`), and its clocks, power and temperature in words (`condition`), taken before and after a measurement and told in the verdict.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from kernelwright.target import Target

TORCH = {"cuda": "cuda", "rocm": "cuda", "ascend": "npu"}
"""torch's name for the devices of each kind of target: ROCm answers to CUDA's."""
NODES = {
    "cuda": ("/dev/nvidia*", "/dev/nvidia-caps/*"),
    "rocm": ("/dev/kfd", "/dev/dri/render*"),
    "ascend": ("/dev/davinci*", "/dev/hisi_hdc", "/dev/devmm_svm"),
}
ASKS = {
    "cuda": ("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu", "--format=csv,noheader", "--id=0"),
    "rocm": ("rocm-smi", "--showclocks", "--showpower", "--showtemp", "--csv", "-d", "0"),
    "ascend": ("npu-smi", "info", "-t", "common", "-i", "0"),
}
SECONDS = 10.0


def torch_device(target: Target) -> str:
    """What torch calls the device, or nothing where the torch that is installed cannot reach it."""
    try:
        version = importlib.metadata.version("torch")
        if target.kind == "ascend":
            importlib.metadata.version("torch_npu")
    except importlib.metadata.PackageNotFoundError:
        return ""
    return "" if version.endswith("+cpu") and target.kind != "ascend" else TORCH.get(target.kind, "")


def nodes(target: Target) -> tuple[str, ...]:
    """The device files that a sandboxed worker must be able to open."""
    return tuple(
        sorted({path for pattern in NODES.get(target.kind, ()) for path in glob.glob(pattern) if not os.path.isdir(path)})
    )


@contextlib.contextmanager
def held(target: Target) -> Iterator[None]:
    """The device for this verdict alone, among all processes of this machine that ask here."""
    path = os.path.join(tempfile.gettempdir(), f"kernelwright-{target.kind}-0.lock")
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def condition(target: Target) -> str:
    """Clocks, power and temperature in the words of the vendor's tool; empty where it says nothing."""
    ask = ASKS.get(target.kind)
    tool = shutil.which(ask[0]) if ask else None
    if ask is None or tool is None:
        return ""
    try:
        said = subprocess.run([tool, *ask[1:]], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return " ".join(said.split())[:300]
