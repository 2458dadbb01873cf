"""The GPU of this machine, if it has one: what its driver's tool says in, a Target out.

Only the vendor's command-line tool is asked, so that no process of ours opens the device. A GPU whose sheet we have gets the sheet's
figures; any other one gets what its driver says, and rates that follow from its compute capability.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

from kernelwright.target.sheet import Target, load_sheets

QUERY = "name,compute_cap,memory.total,clocks.max.sm,clocks.max.memory"
SECONDS = 10.0
PER_CORE = {"7.5": (64, 1024, 65_536), "8.0": (64, 2048, 167_936), "8.6": (128, 1536, 102_400), "8.9": (128, 1536, 102_400),
            "9.0": (128, 2048, 233_472), "10.0": (128, 2048, 233_472), "12.0": (128, 1536, 102_400)}  # fmt: skip
"""By compute capability: fp32 lanes, threads and shared memory of a multiprocessor (CUDA Programming Guide)."""


def attached() -> Target | None:
    """The first GPU, or None."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        said = subprocess.run(
            [tool, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [line for line in said.splitlines() if line.count(",") == QUERY.count(",")]
    return describe(lines[0]) if lines else None


def describe(line: str) -> Target:
    """One line of the tool's answer as a Target."""
    name, capability, memory, clock, _ = (part.strip() for part in line.split(","))
    arch = f"sm_{capability.replace('.', '')}"
    bytes_of_memory = int(float(memory)) << 20
    words = set(name.lower().replace("-", " ").split())
    for sheet in load_sheets().values():
        if sheet.arch == arch and sheet.name in words | {"".join(sorted(words & {"rtx", "4090"}, reverse=True))}:
            return replace(sheet, title=name, memory=bytes_of_memory)
    lanes, threads, shared = PER_CORE.get(capability, PER_CORE["8.9"])
    cores = max(1, bytes_of_memory >> 28)
    return Target(
        name="attached",
        kind="cuda",
        title=name,
        cores=cores,
        bandwidth=5e11,
        peak_flops={"float32": 2.0 * lanes * cores * float(clock) * 1e6},
        shared_memory=shared,
        registers=65_536,
        threads_per_core=threads,
        memory=bytes_of_memory,
        arch=arch,
        origin="estimated",
        source="nvidia-smi; multiprocessors and bandwidth are guesses from the size of its memory: write a sheet for it",
    )
