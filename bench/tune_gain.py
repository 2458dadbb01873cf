"""What tuning gains: `tune` against the kernel of `generate --effort quick`, task by task over the suites core and fused.

    python bench/tune_gain.py [--suites core,fused] [--shard 0/8] [--every N] [--budget 60] [--out bench/results/tune_gain.jsonl]

A search begins with the kernel that `generate --effort quick` makes and ends with a race of the best few beside it, a dozen rounds in
turn; the gain is from that race, and 1.0 where nothing beat the first kernel beyond noise. One line a task, written when it is
done; a task that has a line is not run again. `--report` prints the geometric mean of what is there, and over how many tasks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import tempfile
import time
from datetime import date
from pathlib import Path

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.jobs.generate import Generated
from kernelwright.jobs.start import start
from kernelwright.suites import SuiteTask, load

GAIN = re.compile(r"tuned to ([\d.]+)x")
RACED = re.compile(r"(\d+) variants raced")
AGREEMENT = re.compile(r"rank correlation (-?[\d.]+)")


def measured(task: SuiteTask, suite: str, budget: float, store: str) -> dict[str, object]:
    """One task's line."""
    started = time.monotonic()
    line: dict[str, object] = {"suite": suite, "task": task.name, "budget": budget, "date": date.today().isoformat()}
    with tempfile.TemporaryDirectory() as out:
        whole = Task.from_source(task.source, path=f"{task.name}.py")
        job = JobSpec(whole, compile_contender=False, out=out, store=store, tune_seconds=budget)
        try:
            result = start(job).result
            assert isinstance(result, Generated)
        except KernelwrightError as error:
            return {**line, "error": str(error)}
    gain, raced, agreement = (pattern.search(result.ended) for pattern in (GAIN, RACED, AGREEMENT))
    line |= {"status": str(result.verdict.status), "gain": float(gain.group(1)) if gain else 1.0}
    line |= {"raced": int(raced.group(1)) if raced else 0, "agreement": float(agreement.group(1)) if agreement else None}
    line |= {"speedup": result.verdict.timing.speedup if result.verdict.timing else None, "path": result.path}
    return {**line, "seconds": round(time.monotonic() - started, 1), "load": round(os.getloadavg()[0], 1)}


def report(lines: list[dict[str, object]]) -> str:
    """The geometric mean, with its scope."""
    gains = [float(str(line["gain"])) for line in lines if "gain" in line]
    if not gains:
        return "nothing was measured"
    mean = math.exp(sum(map(math.log, gains)) / len(gains))
    better = sum(gain > 1 for gain in gains)
    return (
        f"tune over generate --effort quick: {mean:.3f}x (geometric mean of {len(gains)} tasks, {better} of them with a gain)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="core,fused")
    parser.add_argument("--shard", default="0/1", help="this part of so many, e.g. 2/8")
    parser.add_argument("--every", type=int, default=1, help="every so many tasks of the shard")
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("bench/results/tune_gain.jsonl"))
    parser.add_argument("--store", default="", help="folder of the store: the cost model learns from the searches in it")
    parser.add_argument("--report", action="store_true", help="measure nothing, print what is there")
    chosen = parser.parse_args()
    known = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    if not chosen.report:
        part, parts = map(int, chosen.shard.split("/"))
        tasks = [(suite, task) for suite in chosen.suites.split(",") for task in load(suite)]
        done = {(line["suite"], line["task"]) for line in known}
        for suite, task in tasks[part::parts][:: chosen.every]:
            if (suite, task.name) in done:
                continue
            line = measured(task, suite, chosen.budget, chosen.store)
            known.append(line)
            with chosen.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)
    print(report(known))


if __name__ == "__main__":
    main()
