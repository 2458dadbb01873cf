"""All twelve pairs of languages over sketches of every family: how many kernels are migrated, and compute the same off the device.

    python bench/migration.py --tasks 40 --out bench/results/migration.md

Tasks of our suites, scaled down until Triton's interpreter can bear them, one of each family in turn. Each is designed for its source
language and written in it; the file's sketch is read back, re-scheduled for the other language's default device and written in that
language. Source and migrated kernel run where the judge would run them without a device (Triton's interpreter, TileLang's interpreter,
the CUDA emulator; C++ natively), on the task's own inputs and with parameters drawn at random, and must give what the task's `Model` gives.
A child process for each language, because each redirects torch in its own way.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

LANGUAGES = ("cpp", "triton", "tilelang", "cuda_c")
TARGET = {"cpp": "cpu", "triton": "h100", "tilelang": "h100", "cuda_c": "h100"}
SECONDS = 300
"""For one kernel."""
SCALES = (0.25, 0.125, 0.0625, 0.03125, 0.015625)
ELEMENTS = 1 << 11
"""Elements of inputs, parameters and outputs up to which a task is small enough for Triton's interpreter."""


def sample(count: int) -> list[tuple[str, str, str]]:
    """(family, name, source) of tasks, families in turn, so that every family is there as soon as there are enough."""
    from kernelwright.suites import load

    families: dict[str, list[tuple[str, str, str]]] = {}
    for suite in ("core", "fused", "modern"):
        for task in load(suite):
            families.setdefault(task.family, []).append((task.family, task.name, task.source))
    for members in families.values():
        members.sort(key=lambda item: hashlib.sha256(item[1].encode()).digest())
    longest = max(map(len, families.values()))
    turns = [members[n] for n in range(longest) for _, members in sorted(families.items()) if n < len(members)]
    return turns[:count]


def small(source: str, name: str) -> tuple[Any, list[Any]]:
    """The task at the first scale at which it is small (else at the last), and its state_dict in outline."""
    import torch

    from kernelwright.core.task import Task
    from kernelwright.core.task.load import load_task
    from kernelwright.core.task.scale import fit
    from kernelwright.run.drafts import state_of

    whole = Task.from_source(source, path=f"{name}.py")
    for scale in SCALES:
        task = fit(whole, scale).task
        loaded = load_task(task)
        model = loaded.construct(0)
        inputs = loaded.draw(0)[0]
        tensors = [*model.state_dict().values(), *torch.utils._pytree.tree_leaves((inputs, model(*inputs)))]
        if sum(x.numel() for x in tensors if isinstance(x, torch.Tensor)) <= ELEMENTS:
            break
    return task, state_of(loaded)


def migrated(family: str, name: str, source: str) -> list[dict[str, Any]]:
    """One row for each pair (a language with itself: the source kernel), with the kernel, or why there is none."""
    from kernelwright.compiler.designer import design_task
    from kernelwright.compiler.hardware import capabilities_of
    from kernelwright.compiler.language import language
    from kernelwright.core.kernel import Kernel
    from kernelwright.jobs.migrate.reschedule import reschedule
    from kernelwright.jobs.migrate.source import carried

    rows: list[dict[str, Any]] = []
    try:
        task, state = small(source, name)
    except Exception as error:
        return [{"family": family, "task": name, "pair": "", "result": f"no task: {error}"[:200]}]
    designs: dict[bool, Any] = {}
    for one in LANGUAGES:
        try:
            machine = capabilities_of(language(one), TARGET[one])
            key = machine.vectors
            if key not in designs:
                designs[key] = design_task(task, capabilities=machine)[0]
            design = designs[key]
            text = language(one).lower(design.sketch, state=state, shapes=design.shapes, capabilities=machine)
        except Exception as error:
            rows += [
                {"family": family, "task": name, "pair": f"{one} {two}", "result": f"no source: {error}"[:200]}
                for two in LANGUAGES
                if two != one
            ]
            continue
        found = carried(Kernel.from_source(text, dsl=one))
        for two in LANGUAGES:
            row = {"family": family, "task": name, "pair": f"{one} {two}", "reference": task.source}
            try:
                plan = reschedule(found.sketches[0], capabilities_of(language(two), TARGET[two])) if two != one else None
                kernel = language(two).lower(plan.sketch, state=list(found.state)) if plan else text
                row |= {"kernel": kernel, "changes": len(plan.changes) if plan else 0, "result": ""}
            except Exception as error:
                row["result"] = f"refused: {error}"[:200]
            rows.append(row)
    return rows


def child(name: str, folder: Path, seconds: int) -> None:
    """Runs the kernels of one language beside their tasks' references; a line for each, before and after it."""
    runtime: Any = None
    if name != "cpp":
        from kernelwright.compiler.hardware import DEFAULT_TARGET
        from kernelwright.target import Target

        runtime = importlib.import_module(f"kernelwright.compiler.backends.{name}.runtime")
        runtime.install(asdict(Target.load(DEFAULT_TARGET)))

    def late(*_: Any) -> None:
        raise TimeoutError(f"not done in {seconds} s")

    signal.signal(signal.SIGALRM, late)
    for path in sorted(folder.glob("*.json")):
        print(json.dumps({"file": path.name, "result": "crashed"}), flush=True)
        signal.alarm(seconds)
        try:
            result = compared(json.loads(path.read_text()), path.with_suffix(".kernel.py"), runtime)
        except Exception as error:
            result = f"failed: {type(error).__name__}: {error}"[:200]
        finally:
            signal.alarm(0)
        path.unlink()
        print(json.dumps({"file": path.name, "result": result}), flush=True)


def compared(row: dict[str, str], file: Path, runtime: Any) -> str:
    """`same`, or how a kernel's results differ from those of the reference."""
    import torch

    from kernelwright.core.task import Task
    from kernelwright.core.task.load import load_task
    from kernelwright.sketch.interpret.compare import difference

    torch.manual_seed(0)
    loaded = load_task(Task.from_source(row["reference"], path="task.py"))
    reference, (inputs, *_) = loaded.construct(0), loaded.draw(0)
    file.write_text(row["kernel"])
    spec = importlib.util.spec_from_file_location(f"kernel_{file.name.partition('.')[0]}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with runtime.context(calling=False) if runtime else nullcontext():
        spec.loader.exec_module(module)
        model = module.ModelNew(*loaded.init_args, **loaded.init_kwargs)
    moved = {
        k: v + 0.1 * torch.rand(v.shape).to(v.dtype) if v.is_floating_point() else v for k, v in reference.state_dict().items()
    }
    reference.load_state_dict(moved)
    model.load_state_dict(moved)
    leaves, copied = torch.utils._pytree.tree_leaves, torch.utils._pytree.tree_map
    with torch.no_grad():
        wanted = reference(*copied(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, inputs))
        with runtime.context(calling=True) if runtime else nullcontext():
            got = model(*inputs)
    reasons = [difference(a, b)[1] for a, b in zip(leaves(wanted), leaves(got), strict=True)]
    return next((f"wrong: {reason}" for reason in reasons if reason), "same")


def run(count: int, seconds: int = SECONDS, names: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """All rows with their results. Equal kernels are run once."""
    chosen = [task for task in sample(count) if not names or task[1] in names]
    rows = [row for task in chosen for row in migrated(*task)]
    with tempfile.TemporaryDirectory() as root:
        for name in LANGUAGES:
            folder = Path(root) / name
            folder.mkdir()
            files: dict[str, list[dict[str, Any]]] = {}
            for row in rows:
                if row.get("kernel") and row["pair"].endswith(f" {name}"):
                    digest = hashlib.sha256((row["kernel"] + row["reference"]).encode()).hexdigest()[:16]
                    files.setdefault(f"{digest}.json", []).append(row)
            for file, same in files.items():
                (folder / file).write_text(json.dumps({"kernel": same[0]["kernel"], "reference": same[0]["reference"]}))
            done = _answers([sys.executable, __file__, "--child", name, str(folder), "--seconds", str(seconds)], folder)
            for file, same in files.items():
                for row in same:
                    row["result"] = done[file]
    for row in rows:
        row.pop("kernel", None)
        row.pop("reference", None)
    return rows


def _answers(command: list[str], folder: Path) -> dict[str, str]:
    """Results by file. A kernel that takes its process down costs itself only."""
    found: dict[str, str] = {}
    while any(folder.glob("*.json")):
        # Builds lie in a folder of their own: what an emulator of another day built under the same name is not to be found.
        ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(folder)})
        lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"file"')]
        found |= {line["file"]: line["result"] for line in lines}
        if not lines:
            raise RuntimeError(ended.stderr[-2000:])
        (folder / lines[-1]["file"]).unlink(missing_ok=True)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Pairs by result, families by pairs that agree, then what did not."""
    lines = [
        "| from | to | kernels | same | re-scheduled | refused | not the same |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    moves = [row for row in rows if row["pair"] and len(set(row["pair"].split())) == 2]
    for pair in (f"{one} {two}" for one in LANGUAGES for two in LANGUAGES if one != two):
        mine = [row for row in moves if row["pair"] == pair]
        same = sum(row["result"] == "same" for row in mine)
        refused = sum(row["result"].startswith(("refused", "no source")) for row in mine)
        changed = sum(bool(row.get("changes")) for row in mine)
        cells = (*pair.split(), len(mine), same, changed, refused, len(mine) - same - refused)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    own = [[row["result"] == "same" for row in rows if row["pair"] == f"{one} {one}"] for one in LANGUAGES]
    told = ", ".join(f"{one} {sum(mine)} of {len(mine)}" for one, mine in zip(LANGUAGES, own, strict=True))
    lines += ["", f"Source kernels that give what the task gives: {told}.", ""]
    lines += ["| family | tasks | migrations | same |", "| --- | --- | --- | --- |"]
    for family in sorted({row["family"] for row in rows}):
        mine = [row for row in moves if row["family"] == family]
        cells = (family, len({row["task"] for row in mine}), len(mine), sum(row["result"] == "same" for row in mine))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    bad = [row for row in rows if row["result"] != "same"]
    return "\n".join([*lines, "", *(f"- {row['task']} ({row['pair'] or 'all'}): {row['result']}" for row in bad)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each kernel")
    parser.add_argument("--names", default="", help="only these of the sample, separated by commas")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("LANGUAGE", "FOLDER"))
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]), options.seconds)
        return
    text = table(run(options.tasks, options.seconds, tuple(filter(None, options.names.split(",")))))
    print(text)
    if options.out:
        options.out.write_text(heading() + text)


def heading() -> str:
    """What was run, where and when."""
    from importlib.metadata import version

    told = ", ".join(f"{name} {version(name)}" for name in ("torch", "triton", "tilelang"))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return (
        f"# All twelve pairs of languages\n\n`python bench/{Path(__file__).name} {' '.join(sys.argv[1:])}`, "
        f"{date.today()}, {told}, commit {commit}; no GPU. Compared with the task's reference, not judged; nothing is timed.\n\n"
    )


if __name__ == "__main__":
    main()
