"""The GPU or NPU of this machine, if it has one: what its driver's tool says in, a Target out.

Only the vendor's command-line tool is asked, so that no process of ours opens the device. A GPU whose sheet we have gets the sheet's
figures; any other one gets what its driver says, and rates that follow from its compute capability.
"""

from __future__ import annotations

import re
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
    """The first GPU, else the first NPU, or None."""
    said = asked("nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits")
    lines = [line for line in said.splitlines() if line.count(",") == QUERY.count(",")]
    if lines:
        return describe(lines[0])
    return described_by_rocm(asked("rocminfo")) or described_by_npu(asked("npu-smi", "info"))


def asked(name: str, *arguments: str) -> str:
    """What a vendor's tool answers; nothing where it is not there or fails."""
    tool = shutil.which(name)
    if tool is None:
        return ""
    try:
        return subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def described_by_rocm(said: str) -> Target | None:
    """The first GPU among the agents that rocminfo lists."""
    for agent in re.split(r"^Agent \d+", said, flags=re.MULTILINE)[1:]:
        told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in agent.splitlines())}
        if told.get("Device Type") != "GPU":
            continue
        arch, title = told.get("Name", ""), told.get("Marketing Name") or told.get("Name", "")
        sheet = next((sheet for sheet in load_sheets().values() if sheet.arch == arch), None)
        if sheet is not None:
            return replace(sheet, title=title)
        cores, clock = (int(told.get(key, "0").split("(")[0]) for key in ("Compute Unit", "Max Clock Freq. (MHz)"))
        return Target(
            name="attached",
            kind="rocm",
            title=title,
            cores=max(1, cores),
            bandwidth=5e11,
            peak_flops={"float32": 2.0 * 128 * max(1, cores) * max(1, clock) * 1e6},
            shared_memory=65_536,
            registers=131_072,
            threads_per_core=2048,
            arch=arch,
            warp=64 if arch.startswith("gfx9") else 32,
            origin="estimated",
            source="rocminfo; its bandwidth is a guess: write a sheet for it",
        )
    return None


def npu_models(said: str) -> list[str]:
    """The NPUs in the table of `npu-smi info`, e.g. 910B3: rows of a number and a name, then the state, then power."""
    return re.findall(r"^\|\s*\d+\s+([0-9A-Za-z_-]+)\s*\|\s*[A-Za-z]+\s*\|", said, flags=re.MULTILINE)


def described_by_npu(said: str) -> Target | None:
    """The first NPU of that table. A model without a sheet gets the figures of ours, marked as the guess that this is."""
    models = npu_models(said)
    if not models:
        return None
    arch = f"Ascend{models[0].removeprefix('Ascend')}"
    sheets = [sheet for sheet in load_sheets().values() if sheet.kind == "ascend"]
    known = next((sheet for sheet in sheets if sheet.arch == arch), None)
    if known is not None:
        return known
    like = next((sheet for sheet in sheets if sheet.arch[:-1] == arch[:-1]), sheets[0])
    source = f"npu-smi; the figures are those of {like.title}: write a sheet for it"
    return replace(like, name="attached", title=f"Huawei Ascend {models[0]}", arch=arch, origin="estimated", source=source)


def describe(line: str) -> Target:
    """One line of nvidia-smi's answer as a Target."""
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
