"""How fast PTX runs on the CPU: plain, with checks and counts, and Triton's interpreter beside it. `python bench/gpu_machine.py`.

Kernels as compiled for sm_80. Times are medians of rounds in which all ways take turns; the interpreter (a process of its own,
since Triton decides at import) runs small grids once. Results go to bench/results/gpu_machine.json with the machine and the load.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
ROUNDS = 5


def matmul_case(size: int, tile: int) -> dict[str, Any]:
    a, b = torch.randn(size, size).half(), torch.randn(size, size).half()
    c = torch.empty(size, size).half()
    signature = {**dict.fromkeys("abc", "*fp16"), **dict.fromkeys(("M", "N", "K"), "i32")}
    return {
        "kernel": "matmul", "signature": signature, "constants": {"BM": tile, "BN": tile, "BK": 32}, "grid": (size // tile, size // tile),
        "arguments": (a, b, c, size, size, size), "out": c, "want": lambda: a.float() @ b.float(), "tolerance": 0.2,
    }  # fmt: skip


def softmax_case() -> dict[str, Any]:
    x = torch.randn(1024, 1024)
    o = torch.empty_like(x)
    return {
        "kernel": "softmax", "signature": {"x": "*fp32", "o": "*fp32", "n": "i32"}, "constants": {"B": 1024}, "grid": (1024,),
        "arguments": (x, o, 1024), "out": o, "want": lambda: torch.softmax(x, 1), "tolerance": 1e-5,
    }  # fmt: skip


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "softmax 1024x1024": softmax_case,
    "fp16 product 512, tiles of 64": lambda: matmul_case(512, 64),
    "fp16 product 1024, tiles of 64": lambda: matmul_case(1024, 64),
    "fp16 product 1024, tiles of 128": lambda: matmul_case(1024, 128),
}


def measure(name: str) -> dict[str, Any]:
    """One row: milliseconds, and that the result is right."""
    from kernelwright.gpu import Program
    from tests.gpu import triton_kernels
    from tests.gpu.devices import memory_of, packed

    case = CASES[name]()
    ptx, shared = triton_kernels.compiled(case["kernel"], case["signature"], case["constants"])
    params, memory = packed(case["arguments"]), memory_of(case["arguments"])
    started = time.perf_counter()
    programs = {"plain": Program.from_ptx(ptx)}
    built = time.perf_counter() - started
    programs["checked"] = Program.from_ptx(ptx, checks=True, counts=True)
    times: dict[str, list[float]] = {key: [] for key in programs}
    spent: dict[str, list[float]] = {key: [] for key in programs}
    for round_ in range(ROUNDS + 1):
        for key, program in programs.items():
            started, used = time.perf_counter(), time.process_time()
            size = program.entries[case["kernel"]].parameter_bytes
            report = program.launch(case["kernel"], case["grid"], (128,), params.ljust(size, b"\0"), shared, memory=memory)
            if round_:
                times[key].append(time.perf_counter() - started)
                spent[key].append(time.process_time() - used)
            assert report.ok, report.faults
    worst = (case["out"].float() - case["want"]()).abs().max().item()
    assert worst <= case["tolerance"], (name, worst)
    row: dict[str, Any] = {f"{key}_ms": round(1e3 * statistics.median(found), 2) for key, found in times.items()}
    # Of all threads together: what a busy machine changes least.
    row |= {f"{key}_cpu_ms": round(1e3 * statistics.median(found), 2) for key, found in spent.items()}
    row |= {"built_or_loaded_s": round(built, 2), "largest_error": worst}
    row["checked_over_plain"] = round(row["checked_cpu_ms"] / row["plain_cpu_ms"], 2)
    return row


def interpreted(name: str) -> float | None:
    """Milliseconds of Triton's interpreter on the same launch."""
    command = [sys.executable, __file__, "--interpret", name]
    try:
        result = subprocess.run(
            command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=120, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return float(result.stdout.split()[-1])


def interpret(name: str) -> None:
    """In the process of the interpreter: one launch after a tiny one."""
    from tests.gpu import triton_kernels

    case = CASES[name]()
    function = getattr(triton_kernels, case["kernel"])
    function[(1,)](*case["arguments"], **case["constants"])
    started = time.perf_counter()
    function[case["grid"]](*case["arguments"], **case["constants"])
    print(1e3 * (time.perf_counter() - started))


def main() -> None:
    rows = {}
    for name in CASES:
        rows[name] = measure(name)
        rows[name]["interpreter_ms"] = interpreted(name)
        if rows[name]["interpreter_ms"]:
            rows[name]["over_interpreter"] = round(rows[name]["interpreter_ms"] / rows[name]["plain_ms"], 1)
        print(name, rows[name], flush=True)
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "rows": rows,
    }
    (ROOT / "bench/results/gpu_machine.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--interpret"]:
        interpret(sys.argv[2])
    else:
        main()
