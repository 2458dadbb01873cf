"""The CPU at hand as a Target: /proc and /sys in, a sheet out. Measured figures where cached, else a careful estimate.

The estimate errs upwards for peaks (so that the judge's "faster than the hardware allows" never hits an honest kernel) and is
marked as such in `origin`.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from kernelwright.target import measure as measuring
from kernelwright.target.sheet import Target

CPU_ROOT = Path("/sys/devices/system/cpu")
INTERESTING = (
    *("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2"),
)
ESTIMATED_BANDWIDTH_PER_CORE = 15e9
ESTIMATED_GHZ = 3.5


def describe_host(*, measure: bool = False) -> Target:
    """This machine's CPU. `measure` runs the benchmark (a few seconds, needs g++) unless it is cached for this CPU."""
    info = cpu_info()
    cores, features, caches = physical_cores(), cpu_features(info), cpu_caches()
    last = max(caches.values(), default=8 << 20)
    measured = measuring.measure(info["model"], cores, caches) if measure else measuring.cached(info["model"], cores)
    common: dict[str, Any] = {
        "name": "cpu",
        "kind": "cpu",
        "title": info["model"],
        "cores": cores,
        "caches": caches,
        "last_level_cache": last,
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "arch": platform.machine(),
        "features": features,
        "threads_per_core": max(1, (os.cpu_count() or 1) // max(1, cores)),
    }
    if measured:
        peaks = peaks_of(measured["flops"], features)
        return Target(
            **common,
            bandwidth=measured["bandwidth"],
            read_bandwidth=measured["read_bandwidth"],
            write_bandwidth=measured["write_bandwidth"],
            level_bandwidth=measured["levels"],
            call_seconds=measured["call"],
            wake_seconds=measured["wake"],
            peak_flops=peaks,
            origin="measured",
            source=f"kernelwright doctor --measure, {measured['date']}",
        )
    peak = cores * ESTIMATED_GHZ * 1e9 * flops_per_cycle(features)
    return Target(
        **common,
        bandwidth=ESTIMATED_BANDWIDTH_PER_CORE * min(cores, 8) + 10e9,
        level_bandwidth={"L1d": 100e9 * cores},
        peak_flops=peaks_of(peak, features),
        origin="estimated",
        source="instruction set and core count; kernelwright doctor --measure replaces it",
    )


def cpu_info(path: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Model name and flags; `model` is never empty."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        lines = []
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        found.setdefault(key.strip().lower(), value.strip())
    model = found.get("model name") or found.get("cpu part") or platform.processor() or platform.machine()
    family = "-".join(found[key] for key in ("cpu family", "model", "stepping") if key in found)
    return {"model": f"{model} ({family})" if family else model, "flags": found.get("flags") or found.get("features") or ""}


def cpu_features(info: dict[str, str]) -> tuple[str, ...]:
    """The instruction sets that decide how a kernel is written."""
    flags = set(info["flags"].split())
    return tuple(name for name in INTERESTING if name in flags)


def peaks_of(flops: float, features: tuple[str, ...]) -> dict[str, float]:
    """Peaks by dtype from that of float32; AVX-512 BF16 multiplies two bf16 in the place of one float."""
    pairs = 2 if "avx512_bf16" in features else 1
    return {"float32": flops, "float64": flops / 2, "float16": flops, "bfloat16": pairs * flops}


def flops_per_cycle(features: tuple[str, ...]) -> int:
    """fp32 operations a core may finish in a cycle: two fused multiply-adds of the widest vector."""
    if "avx512f" in features:
        return 64
    if "avx2" in features or "sve" in features:
        return 32
    return 16


def physical_cores() -> int:
    """Cores this process may use, hyper-threads counted once: the default number of threads for all contenders."""
    allowed = os.sched_getaffinity(0)
    siblings = set()
    for cpu in allowed:
        try:
            siblings.add((CPU_ROOT / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip())
        except OSError:
            siblings.add(str(cpu))
    return max(1, len(siblings))


def cpu_caches() -> dict[str, int]:
    """Bytes by level, e.g. {"L1d": 32768, "L2": 524288, "L3": 33554432}."""
    found: dict[str, int] = {}
    for index in sorted((CPU_ROOT / "cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            units = {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 1)
            found[f"L{level}" + ("d" if kind == "Data" else "")] = int(size.rstrip("KM")) * units
    return found
