"""Generate and time every task of a suite: how fast are the built-in kernels against eager and torch.compile.

    .venv/bin/python bench/suite_speed.py core fused --out bench/results/suites.jsonl [--no-compile] [--filter relu] [--limit 5]
    .venv/bin/python bench/suite_speed.py --table --out bench/results/suites.jsonl      # the table of docs/results.md, nothing run

One line of JSON a task, appended as soon as it is known; a second start goes on where the first one ended. The summary at the end
(geometric means, counts, the slowest) is made from the file.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from kernelwright import suites
from kernelwright.agents.drafts import Drafter
from kernelwright.agents.effort import preset
from kernelwright.agents.folder import open_folder
from kernelwright.agents.generate import Job, generate
from kernelwright.errors import KernelwrightError
from kernelwright.judge import Judge
from kernelwright.target.cpu import describe_host
from kernelwright.task import Task


def main() -> None:
    options = _arguments()
    if options.table:
        print(table(read(options.out)))
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["suite"], row["task"]) for row in read(options.out)}
    machine = {
        "cpu": describe_host().name,
        "system": platform.platform(),
        "date": time.strftime("%Y-%m-%d"),
        "commit": _commit(),
    }
    with Drafter() as drafter, Judge() as judge, tempfile.TemporaryDirectory() as scratch:
        for suite in options.suites:
            entries = [entry for entry in suites.load(suite) if options.filter in entry.name]
            for entry in entries[: options.limit]:
                if (suite, entry.name) in done:
                    continue
                row = {
                    "suite": suite,
                    "task": entry.name,
                    "family": entry.family,
                    **_one(entry, suite, (judge, drafter), Path(scratch), options),
                    **machine,
                }
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{suite:7} {entry.name:44} {row['status']:14} {_times(row)}", flush=True)
    print(summary(read(options.out)))


def _commit() -> str:
    """Which code was measured; one file may hold rows of several."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _one(entry: Any, suite: str, team: tuple[Judge, Drafter], scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    started = time.monotonic()
    track = "pure"
    while True:
        try:
            task = Task.from_source(entry.source, path=f"{entry.name}.py")
            job = Job(task, "cpp", track, preset(options.effort), None, not options.no_timing, not options.no_compile)
            result = generate(job, *team, open_folder(scratch / suite / entry.name, entry.name, "cpp"))
            verdict = result.verdict.model_dump(mode="json")
            facts = {"status": verdict["status"], "reason": verdict["reason"], "timing": verdict["timing"], "track": track}
        except KernelwrightError as error:
            facts = {"status": "not_designed", "reason": str(error), "timing": None, "track": track}
        if facts["status"] == "correct" or track == "hybrid" or suite != "modern":
            return {**facts, "seconds": round(time.monotonic() - started, 2)}
        track = "hybrid"


def read(path: Path) -> list[dict[str, Any]]:
    """The rows measured so far; a line that was cut off by a kill is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def summary(rows: list[dict[str, Any]]) -> str:
    """Geometric means over correct kernels and with failures counted as 1.0x, fast_1, and what is slower than eager."""
    lines = []
    for suite in dict.fromkeys(row["suite"] for row in rows):
        mine = [row for row in rows if row["suite"] == suite]
        right = [row for row in mine if row["status"] == "correct"]
        over_eager = [row["timing"]["speedup"] for row in right if row["timing"]]
        over_compile = [
            row["timing"]["speedup_vs_compile"] for row in right if row["timing"] and row["timing"]["speedup_vs_compile"]
        ]
        lines.append(
            f"{suite}: {len(right)}/{len(mine)} correct; geomean over eager {geomean(over_eager):.2f}x (failures as 1.0x: "
            f"{geomean(over_eager + [1.0] * (len(mine) - len(over_eager))):.2f}x), over torch.compile {geomean(over_compile):.2f}x; "
            f"fast_1 {sum(value > 1 for value in over_eager)}/{len(mine)}; median seconds to a verdict "
            f"{sorted(row['seconds'] for row in mine)[len(mine) // 2]:.1f}"
        )
        slow = sorted(
            (row for row in right if row["timing"] and row["timing"]["speedup"] < 1), key=lambda row: row["timing"]["speedup"]
        )
        lines += [f"  {row['task']:44} {row['timing']['speedup']:.2f}x" for row in slow]
        lines += [f"  {row['task']:44} {row['status']}: {row['reason'][:140]}" for row in mine if row["status"] != "correct"]
    return "\n".join(lines)


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: for each suite and family how many tasks, how many correct, and the geometric mean over the timed ones."""
    lines = [
        "| suite | family | tasks | correct | geomean over eager | slowest | fastest |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for suite in dict.fromkeys(row["suite"] for row in rows):
        mine = [row for row in rows if row["suite"] == suite]
        for family in [*dict.fromkeys(row["family"] for row in mine), "all"]:
            some = [row for row in mine if family in (row["family"], "all")]
            speeds = [row["timing"]["speedup"] for row in some if row["timing"]]
            right = sum(row["status"] == "correct" for row in some)
            span = f"{min(speeds):.2f}x | {max(speeds):.2f}x" if speeds else "- | -"
            lines.append(f"| {suite} | {family} | {len(some)} | {right} | {geomean(speeds):.2f}x | {span} |")
    return "\n".join(lines)


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def _times(row: dict[str, Any]) -> str:
    timing = row["timing"]
    if not timing:
        return f"{row['reason'][:90]}  {row['seconds']:.1f} s"
    compiled = f"{timing['speedup_vs_compile']:.2f}x" if timing["speedup_vs_compile"] else "-"
    roof = f"roofline {timing['roofline_fraction'] or 0:.0%}"
    return f"eager {timing['speedup']:.2f}x  compile {compiled}  kernel {timing['kernel_ms']:.3f} ms  {roof}  {row['seconds']:.1f} s"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", help="core, fused, modern")
    parser.add_argument("--table", action="store_true", help="print the results so far as Markdown and run nothing")
    parser.add_argument("--out", type=Path, default=Path("bench/results/suites.jsonl"))
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--filter", default="")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--no-timing", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
