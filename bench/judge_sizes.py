"""What a verdict costs at real sizes: seconds beside the runs of eager that the rule allows, and memory beside what one run holds.

    python bench/judge_sizes.py [--sizes 64,256,1024,2048] [--only relu,softmax] [--untimed] [--out bench/results/judge_sizes.json]

Fifteen families at four sizes (megabytes of inputs and outputs of a call), the kernels written by the built-in mind beforehand. The rule:
an untimed verdict takes at most 15 runs of eager and 4 s, a timed one 60 runs and 8 s, and memory at most 2.5 times what one run
holds; building the kernel is left out. Seconds of processors stand beside those on the wall, for runs on a busy machine. A run adds to
the file what it measured.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.judge import Judge
from kernelwright.run.drafts import Drafter
from kernelwright.target import Target

MEGABYTE = 1 << 20
UNTIMED, TIMED = (15, 4.0), (60, 8.0)
TASK = """
import torch
from torch import nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, *inputs):
        x = inputs[0]
        return {call}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
"""A family: what it computes, its inputs for `n` floats of them and of outputs together, and its parameters."""
FAMILIES: dict[str, tuple[str, str, str]] = {
    "relu": ("torch.relu(x)", "torch.randn({n} // 2048, 1024)", "pass"),
    "gelu": ("F.gelu(x)", "torch.randn({n} // 2048, 1024)", "pass"),
    "scaled": ("x * 3.14", "torch.randn({n} // 8192, 4096)", "pass"),
    "sum_of_three": ("inputs[0] + inputs[1] * inputs[2]", ", ".join(["torch.randn({n} // 8192, 2048)"] * 3), "pass"),
    "softmax": ("torch.softmax(x, -1)", "torch.randn({n} // 8192, 4096)", "pass"),
    "layer_norm": ("self.norm(x)", "torch.randn({n} // 2048, 1024)", "self.norm = nn.LayerNorm(1024)"),
    "row_sums": ("x.sum(1)", "torch.rand({n} // 4096, 4096)", "pass"),
    "row_maxima": ("torch.argmax(x, 1)", "torch.randn({n} // 4096, 4096)", "pass"),
    "cumsum": ("torch.cumsum(x, 1)", "torch.rand({n} // 8192, 4096)", "pass"),
    "batch_norm": ("self.norm(x)", "torch.randn({n} // (2 * 64 * 4096), 64, 64, 64)", "self.norm = nn.BatchNorm2d(64)"),
    "max_pool": ("F.max_pool2d(x, 2)", "torch.randn({n} * 4 // (5 * 64 * 16384), 64, 128, 128)", "pass"),
    "linear": ("F.relu(self.linear(x))", "torch.randn({n} // 1024, 512)", "self.linear = nn.Linear(512, 512)"),
    "matrix_vector": ("x @ inputs[1]", "torch.randn({n} // 8192, 8192), torch.randn(8192, 1)", "pass"),
    "convolution": ("self.conv(x)", "torch.randn({n} // (2 * 32 * 4096), 32, 64, 64)", "self.conv = nn.Conv2d(32, 32, 3, padding=1)"),
    "transposed_3d": (
        "self.conv(x)",
        "torch.randn({n} // (9 * 16 * 4096) or 1, 16, 16, 16, 16)",
        "self.conv = nn.ConvTranspose3d(16, 16, 3, stride=2, padding=1, output_padding=1)",
    ),
}  # fmt: skip


def task_of(family: str, megabytes: int) -> Task:
    """The family at this size."""
    call, inputs, init = FAMILIES[family]
    text = TASK.format(call=call, inputs=inputs.format(n=megabytes * MEGABYTE // 4), init=init)
    return Task.from_source(text, path=f"{family}_{megabytes}.py")


class Memory(threading.Thread):
    """The most that a process's family holds, watched: its share of mapped pages, and memory files that nobody maps."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.spent: dict[int, float] = {}
        self.begun: dict[int, float] | None = None
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.25):
            family = family_of(os.getpid())
            self.peak = max(self.peak, family_bytes(family))
            now = {pid: seconds for pid in family if (seconds := processor_seconds(pid)) is not None}
            self.begun = now if self.begun is None else self.begun
            self.spent |= now

    def processor_seconds(self) -> float:
        """Of all processes that were seen, while they were."""
        return sum(seconds - (self.begun or {}).get(pid, 0.0) for pid, seconds in self.spent.items())


def processor_seconds(pid: int) -> float | None:
    """Of one process; None when it has ended."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def family_of(root: int) -> set[int]:
    """A process and its descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def family_bytes(family: set[int]) -> int:
    """Bytes of these processes."""
    total, files, mapped = 0, {}, set()
    for pid in family:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                if "/memfd:" in line:
                    mapped.add(int(line.split()[4]))
            for fd in os.scandir(f"/proc/{pid}/fd"):
                if "/memfd:" in os.readlink(fd.path):
                    told = os.stat(fd.path)
                    files[told.st_ino] = told.st_blocks * 512
        except OSError:
            continue
    return total + sum(size for inode, size in files.items() if inode not in mapped)


def watched(run: Any) -> tuple[Any, float, float, int]:
    """What it returns, seconds, seconds of processors, and bytes at its peak beyond what was held before."""
    before, memory = family_bytes(family_of(os.getpid())), Memory()
    memory.start()
    started = time.monotonic()
    try:
        result = run()
    finally:
        seconds = time.monotonic() - started
        memory.done.set()
        memory.join()
    return result, seconds, memory.processor_seconds(), memory.peak - before


def one_run(task: Task) -> tuple[float, int]:
    """Seconds and bytes of a call of the reference."""
    import torch

    from kernelwright.core.task.load import open_task

    loaded, model, drawn = open_task(task, 0)
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        output = loaded.forward(model, drawn[0])
        best = min(best, time.perf_counter() - started)
    tensors = [*drawn[0], output, *model.state_dict().values()]
    return best, sum(tensor.numel() * tensor.element_size() for tensor in tensors if isinstance(tensor, torch.Tensor))


def row(judge: Judge, drafter: Drafter, family: str, megabytes: int, timed: bool) -> dict[str, Any]:
    """One task: an untimed verdict, a second one of the same task, and a timed one."""
    task = task_of(family, megabytes)
    drafts = drafter.drafts(JobSpec(task, "cpp"), 1)
    if not drafts:
        return {"family": family, "mb": megabytes, "status": "no kernel"}
    kernel = drafts[0].kernel
    found: dict[str, Any] = {"family": family, "mb": megabytes}
    eager, run_bytes = one_run(task)
    for name, again in (("untimed", False), ("second", False), *([("timed", True)] if timed else [])):
        verdict, seconds, processors, memory = watched(lambda again=again: judge.verify(task, kernel, timing=again))
        seconds -= verdict.phases.get("build", 0.0)
        runs, least = TIMED if again else UNTIMED
        allowed = runs * eager + least
        found |= {
            f"{name}_s": round(seconds, 2),
            f"{name}_cpu_s": round(processors, 2),
            f"{name}_allowed_s": round(allowed, 2),
            f"{name}_phases": verdict.phases,
            f"{name}_memory": round(memory / run_bytes, 2),
            "status": verdict.status,
            "reason": verdict.reason[:200],
        }
        if verdict.timing is not None:
            timing = verdict.timing
            found |= {"speedup": round(timing.speedup, 3), "roofline": round(timing.roofline_fraction or 0, 3)}
        if verdict.status != "correct":
            break
    return {**found, "eager_s": round(eager, 4), "load_average": round(os.getloadavg()[0], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64,256,1024,2048", help="megabytes of inputs and outputs of a call")
    parser.add_argument("--only", default="", help="families, with commas")
    parser.add_argument("--untimed", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(FAMILIES)
    kept: dict[str, Any] = {}
    if options.out and options.out.exists():
        kept = {f"{one['family']} {one['mb']}": one for one in json.loads(options.out.read_text())["tasks"]}
    with Judge() as judge, Drafter() as drafter:
        judge.server.start()
        for megabytes in map(int, options.sizes.split(",")):
            for name in names:
                try:
                    found = row(judge, drafter, name, megabytes, not options.untimed)
                except Exception as error:  # one task that cannot be judged is a row, not the end
                    found = {"family": name, "mb": megabytes, "status": "error", "reason": str(error)[:300]}
                kept[f"{name} {megabytes}"] = found
                print(json.dumps(found), flush=True)
                if options.out:
                    host = Target.host()
                    report = {
                        "date": datetime.date.today().isoformat(),
                        "machine": f"{host.title}, {host.cores} cores",
                        "tasks": list(kept.values()),
                    }
                    options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
