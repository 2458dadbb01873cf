"""How long a verdict of a small task takes without its device: the whole command `kernelwright verify`, from a cold start.

    python bench/small_verdicts.py --out bench/results/small_verdicts.json

Three operators in each GPU language, the kernels written by the built-in mind beforehand. Wall clock, beside the load average: it says
something on a quiet machine only.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.run.drafts import Drafter
from kernelwright.target import Target

LANGUAGES = ("triton", "cuda_c", "tilelang")
TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, *inputs):
        return {call}

def get_inputs():
    return [torch.randn(shape) for shape in {shapes}]

def get_init_inputs():
    return []
"""
TASKS = {
    "relu": ("torch.relu(*inputs)", [[64, 256]]),
    "softmax": ("torch.softmax(inputs[0], dim=-1)", [[64, 256]]),
    "gemm": ("torch.matmul(*inputs)", [[64, 64], [64, 64]]),
}


def timed(command: list[str]) -> dict[str, object]:
    """Runs a command to its end: the verdict's status, and seconds."""
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    spent = time.monotonic() - began
    return {
        "status": json.loads(done.stdout)["status"],
        "seconds": round(spent, 1),
        "load_average": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="a100")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = str(Path(sys.executable).with_name("kernelwright"))
    rows = []
    with tempfile.TemporaryDirectory() as work, Drafter() as drafter:
        for name, (call, shapes) in TASKS.items():
            task = Path(work) / f"{name}.py"
            task.write_text(TASK.format(call=call, shapes=shapes))
            for dsl in LANGUAGES:
                kernel = Path(work) / f"{name}_{dsl}.py"
                kernel.write_text(drafter.drafts(JobSpec(Task.from_path(task), dsl), 1)[0].kernel.source)
                found = timed([program, "verify", str(task), str(kernel), "--dsl", dsl, "--target", options.target, "--json"])
                rows.append({"language": dsl, "task": name, **found})
                print(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    if options.out:
        machine = f"{Target.host().title}, {os.cpu_count()} cores"
        result = {"date": datetime.date.today().isoformat(), "machine": machine, "target": options.target, "verdicts": rows}
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
