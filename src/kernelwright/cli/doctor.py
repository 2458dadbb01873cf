"""`kernelwright doctor`: what this machine can run, what is missing, and the one command that adds it.

Everything shown is looked at now: compilers are asked for their version, packages are looked up, and the sandbox level is that
of a worker started for this purpose. `--measure` also measures the CPU's bandwidth by level, its peak and what
a call costs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.core.tools import Tool, package_version, program_version, told

if TYPE_CHECKING:
    from kernelwright.compiler.language import Language

COMPILERS = ("g++", "clang++", "nvcc", "ninja")
PACKAGES = ("torch", "triton", "tilelang")
"""What is listed beside the languages, which say themselves what they need."""


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
    compilers = {name: program_version(name) for name in COMPILERS}
    packages = {name: package_version(name) for name in PACKAGES}
    gpus = find_gpus()
    return {
        "ways": [asdict(way) for way in ways(gpus)],
        "compilers": compilers,
        "packages": packages,
        "gpus": gpus,
        "models": models(),
        "store": store(),
        "search": search(),
        "proofs": proofs(),
        "lifting": lifting(),
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


def ways(gpus: list[str]) -> list[Way]:
    """Languages × ways to execute them, the language that every machine has first."""
    from kernelwright.compiler.language import languages
    from kernelwright.core.plugins import DEFAULT_LANGUAGE

    known = languages()
    rows = ways_of(known.pop(DEFAULT_LANGUAGE), gpus)
    rows.append(Way("python", "native", "ready", f"torch {package_version('torch')}"))
    return rows + [row for found in known.values() for row in ways_of(found, gpus)]


def ways_of(found: Language, gpus: list[str]) -> list[Way]:
    """How kernels of one language are executed here, by what it says that it needs."""
    has, detail, add = told(found.needs())
    rows = []
    if found.runtime is None:
        rows.append(Way(found.name, found.execution, "ready" if has else "missing", detail, add))
    else:
        gpu = gpus[0] if gpus else "no GPU found"
        rows.append(on_device(found.name, has, f"{gpu}; {detail}", add))
        here: list[tuple[str, Sequence[Tool]]] = [(found.execution, found.needs_off_device())]
        if found.fallback:
            here = [("emulator", found.needs_off_device()), (found.fallback, found.needs())]
        for name, needs in here:
            has, detail, add = told(needs)
            rows.append(Way(found.name, name, "ready" if has else "missing", detail, add))
    for way, needs in found.further_ways():
        has, detail, add = told(needs)
        rows.append(Way(found.name, way, "ready" if has else "missing", detail, add))
    return rows


def on_device(language: str, has: bool, detail: str, add: str) -> Way:
    """Whether kernels of a GPU language run on a GPU of this machine: one that is attached, that torch can reach."""
    from kernelwright.judge.device import torch_device
    from kernelwright.target.attached import attached

    here = attached()
    if here is None:
        return Way(language, "device", "missing", detail, "attach a GPU")
    if here.kind == "ascend" and not torch_device(here):
        return Way(language, "device", "missing", f"{detail}; torch_npu is missing", "pip install torch_npu")
    if not torch_device(here):
        return Way(language, "device", "missing", f"{detail}; torch was built for the CPU", f"install torch for {here.kind}")
    return Way(language, "device", "ready" if has else "missing", detail, add)


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


def proofs() -> str:
    """What shows that a kernel with dynamic sizes is right in all of them."""
    version = package_version("z3-solver")
    return f"index algebra, z3 {version}" if version else "index algebra alone (for more: pip install 'kernelwright[proofs]')"


def lifting() -> str:
    """Whose kernels `migrate` reads when they carry no sketch."""
    from kernelwright.compiler.language import languages

    parts = []
    for found in sorted(languages().values(), key=lambda one: one.name):
        if found.lifter:
            has, detail, add = told(found.needs_to_lift())
            parts.append(f"{found.name} ({detail})" if has else f"{found.name} (to add it: {add})")
    return "; ".join(parts)


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
        "proofs": escape(report["proofs"]),
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
