"""What a search finds of what is there: ten small spaces measured whole, and the proposer with a tenth of the measurements.

    python bench/tune_spaces.py [--only NAME,NAME] [--most 200] [--out bench/results/tune_spaces.jsonl] [--report]

A space is the first design of a task and as many of its axes as make no more than `--most` points; the others stay as designed. Every
point with code of its own is raced beside the design as it is, in races of five: one line a kernel, written when its race is over, so
that a run which was stopped goes on. Then the proposer searches the space by these lines (no clock, no past), once for each of some
seeds, and may look at a tenth of the kernels. What it chose races the best three of the whole space once more, longer, in turn: the
share found is how fast its choice is beside the fastest there, so that a lucky measurement of either side does not count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from kernelwright.search.features import Axes
from kernelwright.search.point import Point
from kernelwright.search.propose import Proposer

if TYPE_CHECKING:
    from kernelwright.judge.timing.race import Race
    from kernelwright.search.worker import SearchWorker

SPACES = (
    "core/gelu", "core/softmax", "core/layer_norm", "core/max_pool_2d", "core/cumsum", "core/gemm_odd", "core/conv_2d",
    "core/sum_middle", "fused/linear_bias_relu", "fused/conv_relu_bias",
)  # fmt: skip
HEAT, SHARE, WANTED, SEEDS = 5, 0.1, 0.95, 5
Line = dict[str, Any]
Table = dict[Point, str]
"""Which kernel (by its code) a point is written as; points that break a rule are not in it."""


def small(design: Axes, most: int) -> Axes:
    """The design with the axes that fit, in their own order."""
    chosen: dict[str, tuple[int, ...]] = {}
    for name, domain in design.axes.items():
        if math.prod(len(values) for values in chosen.values()) * len(domain) <= most:
            chosen[name] = domain
    return replace(design, axes=chosen, defaults={name: design.defaults[name] for name in chosen})


def points(space: Axes) -> list[Point]:
    """All of them, the design as it is first."""
    every = (Point.of(0, dict(zip(space.axes, values, strict=True))) for values in product(*space.axes.values()))
    own = Point.of(0, space.defaults)
    return [own, *(point for point in every if point != own)]


def searched(space: Axes, table: Table, times: dict[str, float | None], seed: int) -> tuple[str, int]:
    """The kernel that the proposer is left with, and how many measurements it took: at most its share of the kernels."""
    proposer = Proposer([space], seed=seed)
    allowed, seen = max(1, math.floor(SHARE * len(times))), set[str]()
    while len(seen) < allowed and (asked := proposer.ask(HEAT)):
        for point in asked:
            code = table.get(point)
            if code is not None and code not in seen and len(seen) >= allowed:
                continue  # more of the last batch than may be looked at
            if code is not None:
                seen.add(code)
            proposer.tell(point, times[code] if code is not None else None)
    known = {code: time for code in seen if (time := times[code]) is not None}
    return min(known, key=lambda code: known[code], default=table[Point.of(0, space.defaults)]), len(seen)


def measured(title: str, most: int, lines: list[Line], out: Path) -> None:
    """Bring one space to its end: what is not in the lines yet is measured and written."""
    from kernelwright.core.job import JobSpec
    from kernelwright.core.task import Task
    from kernelwright.judge import Judge
    from kernelwright.judge.timing.race import FINAL, Race
    from kernelwright.run.drafts import Drafter
    from kernelwright.search.worker import SearchWorker
    from kernelwright.suites import load

    suite, name = title.split("/")
    row = next(row for row in load(suite) if row.name == name)
    task = Task.from_source(row.source, path=f"{name}.py")
    with Drafter() as drafter, SearchWorker(drafter, JobSpec(task)) as worker:
        space = small(worker.designs[0], most)
        table, kernels = written(worker, space)
    own = table[Point.of(0, space.defaults)]
    times: dict[str, float | None] = {own: 1.0}
    times |= {line["code"]: line["relative"] for line in lines if line["space"] == title and line.get("code") in kernels}
    with Judge() as judge, Race(judge, task) as race:
        rest = [code for code in kernels if code not in times]
        for first in range(0, len(rest), HEAT):
            for code, relative in raced(race, kernels, [own, *rest[first : first + HEAT]]).items():
                times[code] = relative
                write(out, lines, {"space": title, "code": code, "relative": relative})
        best = sorted((code for code in times if times[code] is not None), key=lambda code: times[code] or 0.0)[:3]
        found = [searched(space, table, times, seed) for seed in range(SEEDS)]
        finalists = list(dict.fromkeys([*best, *(code for code, _ in found)]))
        places = race.race([kernels[code] for code in finalists], FINAL)
    seconds = {code: place.seconds for code, place in zip(finalists, places, strict=True) if place.seconds}
    fastest = min(seconds.values())
    shares = [fastest / seconds[code] if code in seconds else 0.0 for code, _ in found]
    line = {"space": title, "axes": {name: list(domain) for name, domain in space.axes.items()}, "points": len(points(space))}
    line |= {"kernels": len(times), "measurements": max(count for _, count in found), "shares": shares}
    line |= {"gain": 1 / min(time for time in times.values() if time is not None)}
    write(out, lines, {**line, "date": date.today().isoformat(), "load": round(os.getloadavg()[0], 1)})


def written(worker: SearchWorker, space: Axes) -> tuple[Table, dict[str, str]]:
    """Every point as a kernel; and the kernels by their code."""
    table: Table = {}
    kernels: dict[str, str] = {}
    whole = worker.designs[0].defaults
    for point in points(space):
        made = worker.write(Point.of(0, {**whole, **dict(point.values)}))
        if made is not None:
            table[point] = made.code
            kernels.setdefault(made.code, made.kernel.source)
    return table, kernels


def raced(race: Race, kernels: dict[str, str], codes: list[str]) -> dict[str, float | None]:
    """Times relative to the first of them; None for what could not run."""
    own, *others = race.race([kernels[code] for code in codes])
    if own.seconds is None:
        raise SystemExit(f"the design as it is does not run: {own.fault}")
    return {code: place.seconds and place.seconds / own.seconds for code, place in zip(codes[1:], others, strict=True)}


def write(out: Path, lines: list[Line], line: Line) -> None:
    """Put a line down, here and on disk."""
    lines.append(line)
    with out.open("a") as file:
        file.write(json.dumps(line) + "\n")


def report(lines: list[Line]) -> str:
    """A table of the spaces that are done, and whether the promise holds over them."""
    done = [line for line in lines if "shares" in line]
    rows = ["| space | points | kernels | measured by the search | best over the design | found: median | worst |"]
    rows += ["| --- | --- | --- | --- | --- | --- | --- |"]
    for line in done:
        shares = line["shares"]
        figures = f"{line['points']} | {line['kernels']} | {line['measurements']} | {line['gain']:.2f}x"
        rows.append(f"| {line['space']} | {figures} | {median(shares):.1%} | {min(shares):.1%} |")
    enough = sum(median(line["shares"]) >= WANTED for line in done)
    mean = sum(median(line["shares"]) for line in done) / len(done) if done else 0.0
    rows.append(f"\nat least {WANTED:.0%} found in {enough} of {len(done)} spaces (median of {SEEDS} seeds); mean {mean:.1%}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SPACES), help="suite/task, several with commas")
    parser.add_argument("--most", type=int, default=200, help="points of a space")
    parser.add_argument("--out", type=Path, default=Path("bench/results/tune_spaces.jsonl"))
    parser.add_argument("--report", action="store_true", help="measure nothing, print what is there")
    chosen = parser.parse_args()
    lines: list[Line] = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    done = {line["space"] for line in lines if "shares" in line}
    for title in chosen.only.split(",") if not chosen.report else ():
        if title not in done:
            measured(title, chosen.most, lines, chosen.out)
            print(json.dumps(lines[-1]), flush=True)
    print(report(lines))


if __name__ == "__main__":
    main()
