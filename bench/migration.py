"""All twelve pairs of languages over sketches of every family: how many kernels are migrated, and compute the same off the device.

    python bench/migration.py --tasks 30 --scale 0.125 --out bench/results/migration.md

Tasks of our suites, scaled down, one of each family in turn. Each is designed for its source language and written in it; the file's sketch
is read back, re-scheduled for the other language's default device and written in that language. The migrated kernel runs where the
judge would run it without a device (Triton's interpreter, TileLang's interpreter, the CUDA emulator; C++ natively) and must give
what the interpreter gives for the source's sketch. A child process for each language, because each redirects torch in its own way.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

LANGUAGES = ("cpp", "triton", "tilelang", "cuda_c")
TARGET = {"cpp": "cpu", "triton": "h100", "tilelang": "h100", "cuda_c": "h100"}
SECONDS = 1800


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


def migrated(family: str, name: str, source: str, scale: float) -> list[dict[str, Any]]:
    """One row for each pair: the migrated kernel and the source's sketch, or why there is none."""
    from kernelwright.agents.drafts import state_of
    from kernelwright.design import design_task
    from kernelwright.dsl import language
    from kernelwright.dsl.kernel import Kernel
    from kernelwright.migrate.reschedule import reschedule
    from kernelwright.migrate.source import carried
    from kernelwright.target import Target
    from kernelwright.task import Task
    from kernelwright.task.load import load_task
    from kernelwright.task.scale import fit

    rows: list[dict[str, Any]] = []
    try:
        task = Task.from_source(source, path=f"{name}.py")
        task = fit(task, scale).task if scale < 1 else task
        state = state_of(load_task(task).construct(0))
    except Exception as error:
        return [{"family": family, "task": name, "pair": "", "result": f"no task: {error}"[:200]}]
    designs: dict[bool, Any] = {}
    for one in LANGUAGES:
        try:
            key = one == "cpp"
            if key not in designs:
                designs[key] = design_task(task, dsl=one)[0]
            design = designs[key]
            text = language(one).lower(design.sketch, state=state, shapes=design.shapes)
        except Exception as error:
            rows += [
                {"family": family, "task": name, "pair": f"{one} {two}", "result": f"no source: {error}"[:200]}
                for two in LANGUAGES
                if two != one
            ]
            continue
        found = carried(Kernel.from_source(text, dsl=one))
        for two in LANGUAGES:
            if two == one:
                continue
            row = {"family": family, "task": name, "pair": f"{one} {two}", "sketch": found.texts[0]}
            try:
                plan = reschedule(found.sketches[0], Target.load(TARGET[two]), two)
                kernel = language(two).lower(plan.sketch, state=list(found.state))
                row |= {"kernel": kernel, "changes": len(plan.changes), "result": ""}
            except Exception as error:
                row["result"] = f"refused: {error}"[:200]
            rows.append(row)
    return rows


def child(name: str, folder: Path) -> None:
    """Runs the kernels of one language and compares each with its sketch; a line for each."""
    import torch

    from kernelwright.sketch import interpret
    from kernelwright.sketch.compare import difference
    from kernelwright.sketch.parse import parse

    stage: Any = None
    if name != "cpp":
        from kernelwright.target import Target

        stage = importlib.import_module(f"kernelwright.dsl.{name}.stage")
        stage.install(asdict(Target.load("h100")))
    torch.manual_seed(0)
    for path in sorted(folder.glob("*.json")):
        row = json.loads(path.read_text())
        file = path.with_suffix(".kernel.py")
        file.write_text(row["kernel"])
        try:
            spec = importlib.util.spec_from_file_location(f"kernel_{path.stem}", file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            with stage.scene(calling=False) if stage else nullcontext():
                spec.loader.exec_module(module)
                model = module.ModelNew()
            state = {
                key: (torch.rand(value.shape) + 0.1).to(value.dtype) if value.is_floating_point() else value
                for key, value in model.state_dict().items()
            }
            model.load_state_dict(state)
            sketch = parse(row["sketch"])
            inputs = drawn(sketch)
            wanted = interpret.call(sketch, [x.clone() if hasattr(x, "clone") else x for x in inputs], state)
            with torch.no_grad(), stage.scene(calling=True) if stage else nullcontext():
                got = model(*inputs)
            leaves = torch.utils._pytree.tree_leaves
            reasons = [difference(a, b)[1] for a, b in zip(leaves(wanted), leaves(got), strict=True)]
            result = next((f"wrong: {reason}" for reason in reasons if reason), "same")
        except Exception as error:
            result = f"failed: {type(error).__name__}: {error}"[:200]
        print(json.dumps({"file": path.name, "result": result}), flush=True)


def drawn(sketch: Any) -> list[Any]:
    """Inputs of a sketch; integers stay below what they pick from."""
    import torch

    from kernelwright.agents.task_from_code import draw, split_arguments
    from kernelwright.migrate.reference import inputs_of

    return [eval(draw(item), {"torch": torch}) for item in split_arguments(inputs_of(sketch))]


def run(count: int, scale: float, seconds: float = SECONDS) -> list[dict[str, Any]]:
    """All rows with their results. Equal kernels are run once."""
    rows = [row for task in sample(count) for row in migrated(*task, scale)]
    with tempfile.TemporaryDirectory() as root:
        for name in LANGUAGES:
            folder = Path(root) / name
            folder.mkdir()
            files: dict[str, list[dict[str, Any]]] = {}
            for row in rows:
                if row.get("kernel") and row["pair"].endswith(f" {name}"):
                    digest = hashlib.sha256((row["kernel"] + row["sketch"]).encode()).hexdigest()[:16]
                    files.setdefault(f"{digest}.json", []).append(row)
            for file, same in files.items():
                (folder / file).write_text(json.dumps({"kernel": same[0]["kernel"], "sketch": same[0]["sketch"]}))
            done = _answers([sys.executable, __file__, "--child", name, str(folder)], seconds)
            for file, same in files.items():
                for row in same:
                    row["result"] = done.get(file, "no time: not run")
    for row in rows:
        row.pop("kernel", None)
        row.pop("sketch", None)
    return rows


def _answers(command: list[str], seconds: float) -> dict[str, str]:
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=seconds).stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith('{"file"')]
    return {line["file"]: line["result"] for line in lines}


def table(rows: list[dict[str, Any]]) -> str:
    """Pairs by result, families by pairs that agree, then what did not."""
    pairs = [f"{one} {two}" for one in LANGUAGES for two in LANGUAGES if one != two]
    lines = [
        "| from | to | kernels | same | re-scheduled | refused | not the same |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for pair in pairs:
        mine = [row for row in rows if row["pair"] == pair and not row["result"].startswith("no ")]
        same = sum(row["result"] == "same" for row in mine)
        refused = sum(row["result"].startswith("refused") for row in mine)
        changed = sum(bool(row.get("changes")) for row in mine)
        cells = (*pair.split(), len(mine), same, changed, refused, len(mine) - same - refused)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "| family | migrations | same |", "| --- | --- | --- |"]
    for family in sorted({row["family"] for row in rows}):
        mine = [row for row in rows if row["family"] == family and row["pair"]]
        lines.append(f"| {family} | {len(mine)} | {sum(row['result'] == 'same' for row in mine)} |")
    bad = [row for row in rows if row["result"] != "same"]
    return "\n".join([*lines, "", *(f"- {row['task']} ({row['pair'] or 'all'}): {row['result']}" for row in bad)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--scale", type=float, default=0.125)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each language's child process")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("LANGUAGE", "FOLDER"))
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]))
        return
    text = table(run(options.tasks, options.scale, options.seconds))
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
