"""Bandwidth and peak of this CPU: builds and runs roofline.c once, keeps program and result by CPU model and core count.

In: model name, cores. Out: the FIGURES and a "date", in base units. Other programs on the machine only ever lower a figure, so a
new measurement is merged with the cached one by taking the larger.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from kernelwright.errors import ToolMissing
from kernelwright.folders import cache_folder

SOURCE = Path(__file__).with_name("roofline.c")
FIGURES = ("flops", "bandwidth", "read_bandwidth", "write_bandwidth", "cache_bandwidth")


def cached(model: str, cores: int) -> dict[str, Any] | None:
    """What was measured on such a CPU before, or None; a damaged file counts as none."""
    try:
        figures = json.loads(_cache_file(model, cores).read_text())
        valid = all(float(figures[key]) > 0 for key in FIGURES) and isinstance(figures["date"], str)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return figures if valid else None


def measure(model: str, cores: int, *, seconds: float = 0.6) -> dict[str, Any]:
    """Run the benchmark now and remember the best figures seen on this CPU."""
    figures = run_benchmark(model, cores, seconds)
    before = cached(model, cores)
    if before:
        figures |= {key: max(figures[key], before[key]) for key in FIGURES}
    figures["date"] = time.strftime("%Y-%m-%d")
    path = _cache_file(model, cores)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(figures, indent=1))
    part.replace(path)
    return figures


def run_benchmark(model: str, cores: int, seconds: float) -> dict[str, Any]:
    """Run roofline.c on all cores."""
    command = [str(program(model, cores)), str(cores), str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60 + 10 * seconds)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def program(model: str, cores: int) -> Path:
    """roofline.c built for this CPU, once."""
    built = _cache_file(model, cores).with_suffix("")
    if built.exists():
        return built
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise ToolMissing("g++", "measuring the CPU", "apt-get install g++")
    built.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-x", "c", "-O3", "-march=native", "-fopenmp", "-ffp-contract=fast"]
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        part = Path(folder) / "roofline"
        subprocess.run([compiler, *flags, str(SOURCE), "-o", str(part)], check=True, capture_output=True, timeout=120)
        part.replace(built)
    return built


def _cache_file(model: str, cores: int) -> Path:
    identity = hashlib.sha256(f"{model}/{cores}".encode() + SOURCE.read_bytes()).hexdigest()[:16]
    return cache_folder("targets", f"{identity}.json")
