"""Bandwidth by level, peak, and what a call costs on this CPU: builds and runs roofline.c once, keeps program and result by CPU model
and core count.

In: model name, cores, caches. Out: the FIGURES, the COSTS, "levels" and a "date", in base units. Other programs on the machine only
ever make a figure worse, so a new measurement is merged with the cached one by taking the better of each.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
import tempfile
import time
import timeit
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwright.core.errors import ToolMissing
from kernelwright.core.folders import cache_folder

SOURCE = Path(__file__).with_name("roofline.c")
FIGURES = ("flops", "bandwidth", "read_bandwidth", "write_bandwidth")
COSTS = ("call", "wake")
"""Seconds: of a call from Python into C with three pointers, and of waking all threads for a loop."""


def cached(model: str, cores: int) -> dict[str, Any] | None:
    """What was measured on such a CPU before, or None; a damaged file counts as none."""
    try:
        figures = json.loads(_cache_file(model, cores).read_text())
        rates = [figures[key] for key in (*FIGURES, *COSTS)] + list(figures["levels"].values())
        valid = all(float(rate) > 0 for rate in rates) and isinstance(figures["date"], str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return figures if valid else None


def measure(model: str, cores: int, caches: Mapping[str, int], *, seconds: float = 0.6) -> dict[str, Any]:
    """Run the benchmark now and remember the best figures seen on this CPU."""
    figures = run_benchmark(model, cores, caches, seconds)
    before = cached(model, cores)
    if before:
        figures |= {key: max(figures[key], before[key]) for key in FIGURES}
        figures |= {key: min(figures[key], before[key]) for key in COSTS}
        figures["levels"] = {key: max(rate, before["levels"].get(key, 0.0)) for key, rate in figures["levels"].items()}
    figures["date"] = time.strftime("%Y-%m-%d")
    path = _cache_file(model, cores)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(figures, indent=1))
    part.replace(path)
    return figures


def run_benchmark(model: str, cores: int, caches: Mapping[str, int], seconds: float) -> dict[str, Any]:
    """Run roofline.c on all cores, and call C from Python. A thread reads half of what each level holds; of the last, its share of it."""
    last = max(caches.values(), default=0)
    pieces = [str(size // 2 // (cores if size == last else 1)) for size in caches.values()]
    command = [str(program(model, cores)), str(cores), str(seconds), str(256 << 20), *pieces]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60 + 20 * seconds)
    figures: dict[str, Any] = json.loads(done.stdout)
    return {**figures, "levels": dict(zip(caches, figures["levels"], strict=True)), "call": call_seconds()}


def call_seconds(calls: int = 20_000, repeats: int = 5) -> float:
    """What a call into C costs that moves nothing: as a kernel is called, with addresses by ctypes."""
    move = ctypes.CDLL(None).memmove
    move.argtypes, move.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], None
    place = ctypes.create_string_buffer(8)
    at = ctypes.addressof(place)
    return min(timeit.repeat(lambda: move(at, at, 0), number=calls, repeat=repeats)) / calls


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
