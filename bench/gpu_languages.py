"""A table per family: how many tasks of the suites a GPU language gets `correct` without its device, and what its compiler says.

    python bench/gpu_languages.py --dsl triton,cuda_c,tilelang core fused --scale 0.12 --target a100,h100 --out bench/results

Each task is scaled down (core/task/scale.py: the same code path at sizes that an interpreter can run), designed, lowered and
judged at track
pure, in one language after the other. One line a task goes to DSL.jsonl in --out at once; a run that is started again continues with
what is missing. `--report FILE…` prints the table of such files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

FIGURES = ("registers", "shared_memory", "spills", "occupancy")


def tasks(names: list[str], pattern: str) -> list[tuple[str, str, str, str]]:
    """(suite, name, family, source) of all tasks asked for, in an order of which every beginning has its fair share of each family."""
    from kernelwright.suites import load

    families: dict[str, list[tuple[str, str, str, str]]] = {}
    for name in names:
        for task in load(name):
            if pattern in task.name:
                families.setdefault(task.family, []).append((name, task.name, task.family, task.source))
    placed = []
    for members in families.values():
        members.sort(key=lambda task: hashlib.sha256(task[1].encode()).digest())
        placed += [((number + 0.5) / len(members), task) for number, task in enumerate(members)]
    return [task for _, task in sorted(placed)]


def run(options: argparse.Namespace) -> None:
    """Judge what is not in the files yet."""
    from kernelwright.core.task import Task
    from kernelwright.judge import Judge
    from kernelwright.judge.conversation import Times
    from kernelwright.run.drafts import Drafter

    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    files = {dsl: folder / f"{dsl}.jsonl" for dsl in options.dsl.split(",")}
    done = {(row["dsl"], row["suite"], row["task"]) for row in rows([file for file in files.values() if file.exists()])}
    started = time.monotonic()
    with Judge(threads=1, times=Times(interpreted=options.call_seconds)) as judge, Drafter() as drafter:
        for suite, name, family, source in tasks(options.suites, options.filter):
            missing = [dsl for dsl in files if (dsl, suite, name) not in done]
            if not missing or time.monotonic() - started > options.seconds:
                continue
            for dsl in missing:
                row = {"suite": suite, "task": name, "family": family, "dsl": dsl, "scale": options.scale}
                row |= outcome(judge, drafter, Task.from_source(source, path=f"{name}.py"), dsl, options)
                with files[dsl].open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{dsl} {suite}/{name}: {row['status']} ({row['seconds']} s)", file=sys.stderr)


def outcome(judge: Any, drafter: Any, task: Any, dsl: str, options: argparse.Namespace) -> dict[str, Any]:
    """What came of one task in one language."""
    from kernelwright.core.job import JobSpec

    began = time.monotonic()
    try:
        task = scaled(drafter, task, options.scale)
        draft = drafter.drafts(JobSpec(task, dsl), 1)[0]
        verdict = judge.verify(task, draft.kernel, dsl=dsl, target=options.target, budget_s=options.budget)
        row: dict[str, Any] = {"status": str(verdict.status), "reason": verdict.reason[:300], "execution": verdict.execution}
        row["compiled_for"] = {
            target: {key: getattr(figures, key) for key in FIGURES} for target, figures in (verdict.compiled_for or {}).items()
        }
    except Exception as error:
        row = {"status": "not_generated", "reason": f"{type(error).__name__}: {error}"[:300], "compiled_for": {}}
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def scaled(drafter: object, task: object, factor: float) -> object:
    """The task at reduced sizes, made in a worker, because it executes the task file."""
    from kernelwright.core.task import Task

    if factor >= 1:
        return task
    for wanted in (factor, 2 * factor, 4 * factor):  # some networks cannot be as small as that
        message = {**task.as_json(), "factor": min(1.0, wanted)}
        reply = drafter.ask("core.task.scale:serve", message, timeout=120.0)  # type: ignore[attr-defined]
        if reply.get("ok"):
            return Task.from_source(reply["source"], path=task.path, class_name=task.class_name)  # type: ignore[attr-defined]
    raise ValueError(reply.get("error"))


def rows(files: list[Path]) -> list[dict]:
    return [json.loads(line) for file in files for line in file.read_text().splitlines() if line.strip()]


def report(files: list[Path]) -> str:
    """The table, with how many tasks of each family there are, then failures and spills by name."""
    found = rows(files)
    suites = sorted({row["suite"] for row in found})
    sizes = Counter(family for _, _, family, _ in tasks(suites, ""))
    families: dict[tuple[str, str], list[dict]] = {}
    for row in found:
        families.setdefault((row["dsl"], row["family"]), []).append(row)
    lines = ["| language | family | judged | correct | of them without spills |", "| --- | --- | --- | --- | --- |"]
    for (dsl, family), members in sorted(families.items()):
        correct = [row for row in members if row["status"] == "correct"]
        clean = [row for row in correct if not spills(row)]
        lines.append(f"| {dsl} | {family} | {len(members)} of {sizes[family]} | {len(correct)} | {len(clean)} |")
    for dsl in sorted({row["dsl"] for row in found}):
        members = [row for row in found if row["dsl"] == dsl]
        correct = [row for row in members if row["status"] == "correct"]
        clean = [row for row in correct if not spills(row)]
        share, spared = 100 * len(correct) / len(members), 100 * len(clean) / len(members)
        judged = f"{len(members)} of {sizes.total()}"
        lines.append(f"| **{dsl}** | all | {judged} | {len(correct)} ({share:.1f} %) | {len(clean)} ({spared:.1f} %) |")
    failed = [row for row in found if row["status"] != "correct"]
    lines += ["", *(f"- {row['suite']}/{row['task']}: {row['status']}: {row['reason'][:160]}" for row in failed)]
    lines += [f"- {row['suite']}/{row['task']}: spills {spills(row)}" for row in found if row not in failed and spills(row)]
    return "\n".join(lines)


def spills(row: dict) -> str:
    return ", ".join(
        f"{figures['spills']} B on {target}" for target, figures in row["compiled_for"].items() if figures["spills"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", default=["core", "fused"])
    parser.add_argument("--dsl", default="triton,cuda_c,tilelang")
    parser.add_argument("--target", default="a100,h100")
    parser.add_argument("--scale", type=float, default=0.12)
    parser.add_argument("--filter", default="")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of trials beyond the least number of them")
    parser.add_argument("--call-seconds", type=float, default=60.0, help="that one call of a kernel may take")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further task after this long")
    parser.add_argument("--out", default="kernelwright-out/gpu_languages")
    parser.add_argument("--report", nargs="+", type=Path)
    options = parser.parse_args()
    if options.report:
        print(report(options.report))
        return
    run(options)
    print(report([Path(options.out) / f"{dsl}.jsonl" for dsl in options.dsl.split(",")]))


if __name__ == "__main__":
    main()
