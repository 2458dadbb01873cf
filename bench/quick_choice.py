"""Whether `--effort quick` picks the right design without measuring: its first design against all of them, raced.

    python bench/quick_choice.py [--suites core,fused] [--every N] [--out bench/results/quick_choice.jsonl] [--report]

The designs of a task are those among which `tune` searches; each is written as it is designed and raced beside the others in the
judge's own lanes, a dozen rounds in turn. The first, which is what `generate --effort quick` writes, was the right choice if none is
more than 5 % faster. Designs that spend rounding, or keep more beside their parameters than a tenth of what eager holds, are no choice for
quick, which may do neither; how much faster the best of them is, is told as `larger`. One line a task, written when it is done; a task that
has a line is not raced again. Designs with the same code count once, and a task with one design only says nothing about choosing: both
counts are reported.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from datetime import date
from pathlib import Path
from typing import Any

from kernelwright.compiler.schedule.sketch_builder import tensors_of
from kernelwright.core.errors import KernelwrightError
from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.judge import Judge
from kernelwright.judge.timing.race import FINAL, Race
from kernelwright.run.drafts import Drafter
from kernelwright.search.point import Point
from kernelwright.search.worker import SearchWorker
from kernelwright.sketch.nodes import Int, Kernel
from kernelwright.sketch.parse import parse
from kernelwright.suites import SuiteTask, load

SLACK = 1.05
Line = dict[str, Any]


def raced(task: SuiteTask, suite: str, judge: Judge, drafter: Drafter) -> Line:
    """One task's line."""
    line: Line = {"suite": suite, "task": task.name, "family": task.family, "date": date.today().isoformat()}
    whole = Task.from_source(task.source, path=f"{task.name}.py")
    try:
        with SearchWorker(drafter, JobSpec(whole)) as worker:
            written = [worker.write(Point.of(number, axes.defaults)) for number, axes in enumerate(worker.designs)]
            notes = [axes.note for axes in worker.designs]
        spending = {made.code for made, note in zip(written, notes, strict=True) if made is not None and "spends" in note}
        codes = list({made.code: made for made in written if made is not None}.values())
        small = [made for made in codes if made is codes[0] or not (made.code in spending or keeps_much(made.sketch))]
        large = [made for made in codes if made not in small]
        if len(small) < 2 or written[0] is None:
            return {**line, "designs": len(small)}
        with Race(judge, whole) as race:
            places = race.race([made.kernel.source for made in (*small, *large)], FINAL)
    except KernelwrightError as error:
        return {**line, "error": str(error)}
    first, *others = (place.seconds for place in places[: len(small)])
    if first is None:
        return {**line, "error": places[0].fault}
    best = min(first, *(seconds for seconds in others if seconds is not None))
    milliseconds = [seconds and seconds * 1e3 for seconds in (first, *others)]
    larger = max((first / place.seconds for place in places[len(small) :] if place.seconds), default=None)
    line |= {"designs": len(small), "ms": milliseconds, "loses": first / best, "larger": larger}
    return {**line, "load": round(os.getloadavg()[0], 1)}


def keeps_much(text: str) -> bool:
    """Whether a sketch keeps more from call to call than a tenth of its inputs, parameters and results."""
    sketch = parse(text)
    sizes = {t.name: t.dtype.size * math.prod(e.value for e in t.shape if isinstance(e, Int)) for t in sketch.tensors}
    once = [step for step in sketch.steps if isinstance(step, Kernel) and step.once]
    kept = {name for step in once for name in tensors_of(step.body)[1]}
    held = sum(sizes[t.name] for t in sketch.tensors if t.role in ("input", "param", "output"))
    return sum(sizes[name] for name in kept) > 0.1 * held


def report(lines: list[Line]) -> str:
    """How often the first design was right, and the others by name."""
    chosen = [line for line in lines if "loses" in line]
    wrong = sorted((line for line in chosen if line["loses"] > SLACK), key=lambda line: -line["loses"])
    single = sum(line.get("designs") == 1 for line in lines)
    right, total = len(chosen) - len(wrong), len(chosen)
    rows = [
        f"quick picked the right design in {right} of {total} tasks with several designs; {single} more have one design only"
    ]
    beaten = sum(max(line["loses"], line.get("larger") or 0.0) > SLACK for line in chosen)
    rows.append(f"against designs that need more memory, too: {total - beaten} of {total}")
    rows += [
        f"- {line['suite']}/{line['task']}: {line['loses']:.2f}x slower than the best of {line['designs']}" for line in wrong
    ]
    rows += [f"- {line['suite']}/{line['task']}: {line['error']}" for line in lines if "error" in line]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="core,fused")
    parser.add_argument("--every", type=int, default=1, help="every so many tasks")
    parser.add_argument("--out", type=Path, default=Path("bench/results/quick_choice.jsonl"))
    parser.add_argument("--report", action="store_true", help="measure nothing, print what is there")
    chosen = parser.parse_args()
    lines: list[Line] = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    done = {(line["suite"], line["task"]) for line in lines}
    tasks = [(suite, task) for suite in chosen.suites.split(",") for task in load(suite)][:: chosen.every]
    missing = [(suite, task) for suite, task in tasks if (suite, task.name) not in done and not chosen.report]
    with Judge() as judge, Drafter() as drafter:
        for suite, task in missing:
            lines.append(raced(task, suite, judge, drafter))
            with chosen.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
            print(json.dumps(lines[-1]), flush=True)
    print(report(lines))


if __name__ == "__main__":
    main()
