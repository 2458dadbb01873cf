"""Kernels as other people write them, end to end: lifted, migrated to C++ and CUDA-C, judged against their tasks; C++ timed against eager.

    python bench/lifted.py --out bench/results/lifted.md                       # all of tests/lift; --only triton, --filter softmax
    python bench/lifted.py --out bench/results/lifted.md --rows rows.jsonl     # goes on where an earlier run with these rows stopped

What `kernelwright migrate KERNEL --to LANGUAGE --task TASK --no-compile` does, with one judge for all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.job import JobSpec, Source
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.jobs.migrate.steps import Tools, migrate
from kernelwright.judge import Judge
from kernelwright.run.drafts import Drafter
from kernelwright.run.folder import open_folder
from kernelwright.run.journal import Journal
from kernelwright.run.memo import Memory
from kernelwright.run.observer import Observer

KERNELS = Path(__file__).parents[1] / "tests" / "compiler" / "lift"
FOLDERS = {"triton": "triton", "tilelang": "tilelang", "cuda_c": "cuda"}
TO = ("cpp", "cuda_c")


class Recall:
    """What one kernel's first migration found out, for its second: the sketch and the source's verdict."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], bytes] = {}

    def keep(self, kind: str, key: str, data: bytes, **_: Any) -> None:
        self._kept[kind, key] = data

    def recall(self, kind: str, key: str) -> bytes | None:
        return self._kept.get((kind, key))


def task_of(path: Path) -> Task:
    """A kernel's task: a file beside it, or (CUDA-C) what of the file itself is neither extension nor ModelNew."""
    beside = path.parent.with_name("tasks") / path.name
    if beside.is_file():
        return Task.from_path(beside)
    head, _, rest = path.read_text().partition("class ModelNew")
    text = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n" + head[head.index("class Model(") :]
    return Task.from_source(text + rest[rest.index("def get_inputs") :], path=path.name)


def migrated(path: Path, dsl: str, to: str, tools: dict[str, Any], recall: Recall) -> dict[str, Any]:
    """One row: the verdicts, and how fast it is."""
    task = task_of(path)
    row: dict[str, Any] = {"kernel": path.stem, "from": dsl, "to": to}
    source = Source(Kernel.from_source(path.read_text(), path=path.name, dsl=dsl))
    job = JobSpec(task, to, compile_contender=False, source=source)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        folder = open_folder(Path(out), path.stem, to)
        try:
            made = migrate(job, Tools(folder=folder, journal=Journal(folder), memory=Memory(path.stem, recall), **tools))
        except KernelwrightError as error:
            return {**row, "status": "refused", "reason": str(error)}
    verdict = made.verdict
    row |= {"status": str(verdict.status), "reason": verdict.reason, "schedule": made.chosen.kind}
    row |= {"source": str(made.source.status) if made.source else "", "notes": list(made.notes)}
    if verdict.timing is not None:
        speed = verdict.timing
        row |= {
            "ms": speed.kernel_ms,
            "eager": speed.eager_ms,
            "speedup": [speed.speedup, speed.speedup_low, speed.speedup_high],
        }
    return {**row, "seconds": round(time.monotonic() - started, 1)}


def run(languages: list[str], wanted: str, rows: Path) -> list[dict[str, Any]]:
    """All rows; each is written down before the next begins."""
    found = [json.loads(line) for line in rows.read_text().splitlines()] if rows.is_file() else []
    done = {(row["kernel"], row["from"], row["to"]) for row in found}
    with ExitStack() as stack:
        tools = {"judge": stack.enter_context(Judge()), "drafter": stack.enter_context(Drafter()), "observer": Observer()}
        for dsl in languages:
            for path in sorted((KERNELS / FOLDERS[dsl] / "kernels").glob("*.py")):
                recall = Recall()
                for to in TO:
                    if to == dsl or wanted not in path.stem or (path.stem, dsl, to) in done:
                        continue
                    row = migrated(path, dsl, to, tools, recall)
                    found.append(row)
                    with rows.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(f"{dsl} {path.stem} to {to}: {row['status']}: {row['reason'][:200]}", file=sys.stderr, flush=True)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """How many of each, then every kernel, then what is not correct."""
    lines = ["| from | to | kernels | correct | C++ over eager, median |", "| --- | --- | --- | --- | --- |"]
    for dsl in FOLDERS:
        for to in TO:
            mine = [row for row in rows if row["from"] == dsl and row["to"] == to]
            if mine:
                ratios = sorted(row["speedup"][0] for row in mine if "speedup" in row)
                middle = f"{ratios[len(ratios) // 2]:.2f}x" if ratios else "–"
                right = sum(row["status"] == "correct" for row in mine)
                lines.append(f"| {dsl} | {to} | {len(mine)} | {right} | {middle} |")
    lines += [
        "",
        "| kernel | from | to cpp | ms | eager ms | over eager | to cuda_c |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, dsl in dict.fromkeys((row["kernel"], row["from"]) for row in rows):
        two = {row["to"]: row for row in rows if (row["kernel"], row["from"]) == (name, dsl)}
        cpp, cuda = two.get("cpp", {}), two.get("cuda_c", {})
        speed = "{:.2f}x [{:.2f}, {:.2f}]".format(*cpp["speedup"]) if "speedup" in cpp else "–"
        times = [f"{cpp[key]:.3g}" if key in cpp else "–" for key in ("ms", "eager")]
        cells = (name, dsl, cpp.get("status", "–"), *times, speed, cuda.get("status", "–"))
        lines.append(f"| {' | '.join(cells)} |")
    bad = [row for row in rows if row["status"] != "correct"]
    told = [f"- {row['kernel']} ({row['from']} to {row['to']}): {row['status']}: {row['reason']}" for row in bad]
    return "\n".join([*lines, "", *told]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(FOLDERS))
    parser.add_argument("--filter", default="")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = options.rows or Path(folder) / "rows.jsonl"
        text = table(run([options.only] if options.only else list(FOLDERS), options.filter, rows))
    print(text)
    if options.out:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
        model = next(
            (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ""
        )
        options.out.write_text(
            "# Kernels of others, lifted and migrated\n\n"
            f"`python bench/{Path(__file__).name}`, {date.today()}, {model}, commit {commit}. Each kernel of tests/lift through the judge: "
            "C++ natively and timed against eager (small shapes, so that interpreter and emulator can bear them: call overhead "
            "counts), CUDA-C in the emulator.\n\n" + text
        )


if __name__ == "__main__":
    main()
