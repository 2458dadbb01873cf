"""`kernelwright doctor`: what this machine can run, what is missing, and the one command that adds it.

Everything shown is looked at now: compilers are asked for their version, packages are looked up, and the sandbox level is that
of a worker started for this purpose. `--measure` also measures the CPU's bandwidth by level, its peak and what
a call costs.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

COMPILERS = ("g++", "clang++", "nvcc", "ninja")
PACKAGES = ("torch", "triton", "tilelang")


@dataclass(frozen=True)
class Way:
    """One way to execute one language. `state`: ready, or missing (then `add` says how to get it)."""

    language: str
    way: str
    state: str
    detail: str = ""
    add: str = ""


def doctor_command(
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the CPU: bandwidth, peak, cost of a call (seconds).")
    ] = False,
    sandbox: Annotated[bool, typer.Option("--sandbox/--no-sandbox", help="Start a worker to see its sandbox level.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show what this machine can run and what is missing. Exit code 0 if C++ kernels can be built and judged."""
    report = examine(measure=measure, sandbox=sandbox)
    if as_json:
        print(json.dumps(report))
    else:
        _show(report)
    return 0 if report["ways"][0]["state"] == "ready" else 1


def examine(*, measure: bool = False, sandbox: bool = True) -> dict[str, Any]:
    """The report as plain data."""
    from kernelwright.target import Target, known_targets

    host = Target.host(measure=measure)
    compilers = {name: compiler_version(name) for name in COMPILERS}
    packages = {name: package_version(name) for name in PACKAGES}
    gpus = find_gpus()
    return {
        "ways": [asdict(way) for way in ways(compilers, packages, gpus)],
        "compilers": compilers,
        "packages": packages,
        "gpus": gpus,
        "models": models(),
        "store": store(),
        "search": search(),
        "lifting": lifting(compilers),
        "sandbox": sandbox_level() if sandbox else "not examined",
        "cpu": {
            "model": host.title,
            "cores": host.cores,
            "features": list(host.features),
            "caches": host.caches,
            "bandwidth_gb_s": round(host.bandwidth / 1e9, 1),
            "read_gb_s": round((host.read_bandwidth or host.bandwidth) / 1e9, 1),
            "write_gb_s": round((host.write_bandwidth or host.bandwidth) / 1e9, 1),
            "level_gb_s": {name: round(rate / 1e9, 1) for name, rate in host.level_bandwidth.items()},
            "peak_gflop_s": round(host.peak() / 1e9, 1),
            "call_us": round(host.call_seconds * 1e6, 2),
            "wake_us": round(host.wake_seconds * 1e6, 2),
            "figures": host.origin,
        },
        "targets": list(known_targets()),
    }


def ways(compilers: dict[str, str | None], packages: dict[str, str | None], gpus: list[str]) -> list[Way]:
    """Languages × ways to execute them."""
    from kernelwright.compiler.language import installed

    compiler = compilers["g++"] or compilers["clang++"]
    native = (
        Way("cpp", "native", "ready", compiler) if compiler else Way("cpp", "native", "missing", "g++", "apt-get install g++")
    )
    rows = [native, Way("python", "native", "ready", f"torch {packages['torch']}")]
    for language, package in (("triton", "triton"), ("tilelang", "tilelang"), ("cuda_c", None)):
        has = f"{package} {packages[package]}" if package and packages[package] else None if package else compilers["nvcc"]
        need = package or "nvcc"
        add = "" if has else f"pip install {package}" if package else "install the CUDA toolkit"
        without = "emulator" if language == "cuda_c" else "interpreter"
        gpu = gpus[0] if gpus else "no GPU found"
        rows.append(on_device(language, bool(has), f"{gpu}; {has or f'{need} missing'}", add))
        runs, told = bool(has), has or f"{need} missing"
        if language == "cuda_c":  # the emulator is built by the C++ compiler; nvcc only compiles for targets
            runs, told = bool(compiler), f"{compiler or 'g++ missing'}; {has or 'no nvcc, so nothing is compiled for targets'}"
        rows.append(Way(language, without, "ready" if runs else "missing", told, add))
        if language == "triton":
            rows.append(ascend())
    known = {row.language for row in rows}
    return [*rows, *(outside(name) for name in installed() if name not in known)]


def ascend() -> Way:
    """Whether Triton kernels are lowered for Ascend, how far, and whether an NPU could run them."""
    from kernelwright.compiler.backends.triton.ascend import environment

    found, npu = environment.find(), environment.torch_npu()
    told = [f"triton-ascend {found.version}" if found else "triton-ascend missing"]
    told.append("CANN, so to a binary" if environment.find_cann()[0] else "no CANN, so to linalg only")
    told.append(f"torch_npu {npu}" if npu else "no torch_npu, so nothing runs on an NPU")
    return Way(
        "triton", "lowered for Ascend", "ready" if found else "missing", "; ".join(told), "; ".join(environment.missing())
    )


def on_device(language: str, has: bool, told: str, add: str) -> Way:
    """Whether kernels of a GPU language run on a GPU of this machine: one that is attached, that torch can reach."""
    from kernelwright.judge.device import torch_device
    from kernelwright.target.attached import attached

    here = attached()
    if here is None:
        return Way(language, "device", "missing", told, "attach a GPU")
    if here.kind == "ascend" and not torch_device(here):
        return Way(language, "device", "missing", f"{told}; torch_npu is missing", "pip install torch_npu")
    if not torch_device(here):
        return Way(language, "device", "missing", f"{told}; torch was built for the CPU", f"install torch for {here.kind}")
    return Way(language, "device", "ready" if has else "missing", told, add)


def outside(name: str) -> Way:
    """A language of another package, by what it says of itself; `missing: command` is a fact that is not there."""
    from kernelwright.compiler.language import language

    found = language(name)
    facts = found.facts()
    lacking = {fact: text.removeprefix("missing").lstrip(": ") for fact, text in facts.items() if text.startswith("missing")}
    told = ", ".join(f"{fact} missing" if fact in lacking else text for fact, text in facts.items())
    return Way(
        name, getattr(found, "execution", "native"), "missing" if lacking else "ready", told, "; ".join(lacking.values())
    )


def compiler_version(name: str) -> str | None:
    """The first line that says a version, or None if the program is not there or does not run."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        lines = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    versions = (re.search(r"\d+\.\d+(\.\d+)?", line) for line in lines if "opyright" not in line)
    return next((f"{name} {found.group()}" for found in versions if found), path)


def package_version(name: str) -> str | None:
    """The installed version without importing the package: torch alone would take seconds."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def models() -> str:
    """Which language models could be asked: the package, and for whom there is a key (its name, never its value)."""
    version = package_version("pydantic-ai-slim")
    keys = [name for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "KERNELWRIGHT_API_KEY") if os.environ.get(name)]
    servers = f"pydantic-ai {version}" if version else "no servers (to add them: pip install 'kernelwright[llm]')"
    return f"builtin, mailbox, replay; {servers}; keys set: {', '.join(keys) or 'none'}"


def search() -> str:
    """What `tune` has beyond the neighbours of a design."""
    version = package_version("optuna")
    return f"optuna {version}" if version else "neighbours of a design only (for more: pip install 'kernelwright[search]')"


def lifting(compilers: dict[str, str | None]) -> str:
    """Whose kernels `migrate` reads when they carry no sketch."""
    from kernelwright.compiler.lift.door import LANGUAGES

    parsers = {name: package_version(name) for name in ("tree-sitter", "tree-sitter-cuda")}
    missing = {
        "triton": package_version("triton") is None and "pip install 'kernelwright[triton]'",
        "cuda_c": (not all(parsers.values()) and "pip install 'kernelwright[lift]'")
        or (compilers["g++"] is None and "apt-get install g++"),
    }
    has = {"cuda_c": f" ({', '.join(f'{name} {version}' for name, version in parsers.items())})"}
    return "; ".join(
        f"{language} (to add it: {add})" if (add := missing.get(language)) else language + has.get(language, "")
        for language in sorted(LANGUAGES)
    )


def store() -> str:
    """Where runs are kept."""
    from kernelwright.core.config import load
    from kernelwright.core.folders import data_folder

    if package_version("SQLAlchemy") is None:
        return "missing (to add it: pip install 'kernelwright[store]')"
    place = load().settings.store
    return "a database URL of the configuration" if "://" in place else place or str(data_folder("store"))


def find_gpus() -> list[str]:
    """Names of GPUs and NPUs by their driver's own tool; a device node without a tool is still told."""
    from kernelwright.target.attached import asked, npu_models

    commands = (["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], ["rocm-smi", "--showproductname", "--csv"])
    for command in commands:
        if shutil.which(command[0]):
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
            except (OSError, subprocess.SubprocessError):
                continue
            names = [line.strip() for line in done.stdout.splitlines() if line.strip()]
            if names:
                return names
    if npus := npu_models(asked("npu-smi", "info")):
        return [f"Ascend {name}" for name in npus]
    nodes = [node for node in ("/dev/nvidia0", "/dev/kfd", "/dev/davinci0") if Path(node).exists()]
    return [f"a device at {node} whose tool is missing" for node in nodes]


def sandbox_level() -> str:
    """The level that a candidate really gets here, from a worker started and ended for this purpose."""
    from kernelwright.core.errors import JudgeError
    from kernelwright.judge.servers import CANDIDATE, judge_server

    try:
        with judge_server() as server:
            return server.spawn(CANDIDATE, sandboxed=True).level
    except JudgeError as error:
        return f"no worker could be started: {error}"


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("language", "runs by", "state", "with", "to add it"):
        table.add_column(title)
    colours = {"ready": "green", "missing": "yellow"}
    for way in report["ways"]:
        colour = colours[way["state"]]
        table.add_row(way["language"], way["way"], f"[{colour}]{way['state']}[/{colour}]", way["detail"], way["add"])
    console.print(table)
    cpu = report["cpu"]
    rates = {name: f" at {rate:g} GB/s" for name, rate in cpu["level_gb_s"].items()}
    caches = ", ".join(f"{name} {_size(size)}{rates.get(name, '')}" for name, size in cpu["caches"].items())
    calls = f"{cpu['call_us']} µs from Python into C, {cpu['wake_us']} µs to wake all threads"
    facts = {
        "CPU": f"{cpu['model']}, {cpu['cores']} cores, {' '.join(cpu['features'])}",
        "caches": caches,
        "roofline": f"{cpu['bandwidth_gb_s']} GB/s both ways ({cpu['read_gb_s']} read, {cpu['write_gb_s']} written), "
        f"{cpu['peak_gflop_s']} GFLOP/s fp32 ({cpu['figures']})",
        "a call": calls if cpu["call_us"] else "not measured",
        "sandbox": report["sandbox"],
        "models": escape(report["models"]),
        "store": escape(report["store"]),
        "search": escape(report["search"]),
        "lifting": escape(report["lifting"]),
        "GPUs": ", ".join(report["gpus"]) or "none",
        "compilers": ", ".join(version or f"no {name}" for name, version in report["compilers"].items()),
        "targets": ", ".join(report["targets"]),
    }
    grid = Table.grid(padding=(0, 2))
    for name, text in facts.items():
        grid.add_row(f"[bold]{name}[/bold]", text)
    console.print()
    console.print(grid)
    if cpu["figures"] == "estimated":
        console.print("\nThe roofline is an estimate; measure it with: kernelwright doctor --measure")
    elif (load := os.getloadavg()[0]) > cpu["cores"] / 2:
        console.print(
            f"\nThe machine is busy (load {load:.1f}): figures that are measured now are too low. The best ever seen are kept."
        )


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
