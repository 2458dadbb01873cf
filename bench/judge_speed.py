"""How fast the judge itself is: N small verdicts without timing, wall time, and memory of the judge's processes.

Usage: python bench/judge_speed.py [--verdicts 100] [--jobs 2] [--timed 3]. Alternates a right, a wrong and a slow-to-build C++ kernel
with sources that differ each time, so that no build is ever cached. Writes bench/results/judge_speed.json with machine and date.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import psutil

from kernelwright.core.task import Task
from kernelwright.judge import Judge
from kernelwright.target import Target

RESULTS = Path(__file__).parent / "results"

TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.relu(x) + y
def get_inputs():
    return [torch.randn(128, 256), torch.randn(128, 256)]
def get_init_inputs():
    return []
"""

KERNEL = '''
import ctypes, hashlib, os, subprocess, tempfile
import torch
from torch import nn
SOURCE = r"""
// variant NUMBER
extern "C" void run(const float *x, const float *y, float *z, long n) {
    for (long i = 0; i < n; i++) z[i] = (x[i] < 0 ? 0 : x[i]) + y[i]WRONG;
}
"""
name = os.path.join(tempfile.gettempdir(), hashlib.sha256(SOURCE.encode()).hexdigest()[:16])
with open(name + ".cpp", "w") as file:
    file.write(SOURCE)
flags = ["-O3", "-march=native", "-shared", "-fPIC"]
subprocess.run(["g++", *flags, name + ".cpp", "-o", name + ".so"], check=True, capture_output=True)
library = ctypes.CDLL(name + ".so")
class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        library.run(*(ctypes.c_void_p(t.data_ptr()) for t in (x, y, z)), ctypes.c_long(x.numel()))
        return z
'''


def kernel(number: int) -> str:
    """A source nobody has built before; every third one is wrong."""
    return KERNEL.replace("NUMBER", f"{number} {os.urandom(8).hex()}").replace("WRONG", " + 1e-3f" if number % 3 == 2 else "")


class PeakMemory(threading.Thread):
    """Samples the private memory of this process's family until told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.done = threading.Event()

    def run(self) -> None:
        me = psutil.Process()
        while not self.done.wait(0.5):
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_full_info().uss
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timed", type=int, default=3, help="how many verdicts with timing (without torch.compile) to add")
    arguments = parser.parse_args()
    task = Task.from_source(TASK, path="add_relu.py")
    memory = PeakMemory()
    memory.start()
    seconds: list[float] = []

    def judge_one(number: int) -> None:
        started = time.monotonic()
        verdict = judge.verify(task, kernel(number), dsl="cpp", timing=False)
        expected = "wrong_values" if number % 3 == 2 else "correct"
        if verdict.status != expected:
            raise SystemExit(f"verdict {number} is {verdict.status} ({verdict.reason}), expected {expected}")
        seconds.append(time.monotonic() - started)

    with Judge() as judge:
        started = time.monotonic()
        judge_one(0)
        first = time.monotonic() - started
        seconds.clear()
        started = time.monotonic()
        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(judge_one, range(arguments.verdicts)))
        wall = time.monotonic() - started
        timed = []
        for number in range(arguments.timed):
            started = time.monotonic()
            judge.verify(task, kernel(3 * number), dsl="cpp", compile_contender=False)
            timed.append(time.monotonic() - started)
    memory.done.set()
    host = Target.host()
    report = {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": f"{host.title}, {host.cores} cores",
        "load_average": os.getloadavg()[0],
        "verdicts": arguments.verdicts,
        "jobs": arguments.jobs,
        "first_verdict_s": round(first, 2),
        "wall_s": round(wall, 2),
        "median_verdict_s": round(median(seconds), 3),
        "slowest_verdict_s": round(max(seconds), 3),
        "median_timed_verdict_s": round(median(timed), 2) if timed else None,
        "peak_memory_mb": memory.peak >> 20,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "judge_speed.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
