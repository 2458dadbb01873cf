"""What a dynamic batch costs: the kernel for every batch against the kernel made for that very one, C++, side by side in one process.

    python bench/dynamic_cost.py [--every 6] [--seconds 2] [--clock wall|cpu] [--out bench/results/dynamic_cost.json] [TASK …]

Both are the designer's first choice, built from their kernel files, called in turn on the same inputs with the same weights. A ratio is the
median over rounds of dynamic / static; `best` is the ratio of the fastest calls of both, which other programs on the machine disturb less.
On a machine that is busy with other things, `--clock cpu` counts the processor's time of one thread: being put aside does not count.
The results of the two are held against each other within the tolerance of sums in another order.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SLOW = 1.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--every", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.clock == "cpu":
        os.environ["OMP_NUM_THREADS"] = "1"  # before torch or a kernel starts threads
    clock = time.process_time if given.clock == "cpu" else time.perf_counter
    from kernelwright import suites

    named = [f"{suite}/{task.name}" for suite in ("core", "fused") for task in suites.load(suite)[:: given.every]]
    rows = []
    for name in given.tasks or named:
        row = measured(name, given.seconds, clock)
        rows.append(row)
        print(_line(row), flush=True)
        if given.out:
            given.out.write_text(json.dumps(_report(rows, given.every, given.clock), indent=1) + "\n")
    print(json.dumps(_report(rows, given.every, given.clock)["summary"], indent=1))


def measured(name: str, seconds: float, clock: Callable[[], float]) -> dict[str, Any]:
    """One task: both kernels, their times and whether they agree."""
    import torch

    from kernelwright import suites
    from kernelwright.compiler.designer import design_task
    from kernelwright.compiler.language import language
    from kernelwright.core.errors import KernelwrightError
    from kernelwright.core.task.load import load_task
    from kernelwright.run.drafts import state_of

    loaded = load_task(suites.task(name))
    model, inputs = loaded.construct(0).eval(), loaded.draw(0)[0]
    made = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for dynamic in ("", "batch"):
                sketch = design_task(suites.task(name, dynamic))[0].sketch
                path = Path(folder) / f"kernel_{dynamic}.py"
                path.write_text(language("cpp").lower(sketch, state=state_of(loaded)))
                made.append(_module(path))
        except KernelwrightError as error:
            return {"task": name, "refused": str(error)}
    for one in made:
        one.load_state_dict(model.state_dict())
    with torch.no_grad():
        static, varying = (one(*inputs) for one in made)
        agrees = _agree(varying, static)
        times: tuple[list[float], list[float]] = ([], [])
        begun = clock()
        while len(times[0]) < 7 or (clock() - begun < seconds and len(times[0]) < 2000):
            order = (0, 1) if len(times[0]) % 2 else (1, 0)
            for which in order:
                started = clock()
                made[which](*inputs)
                times[which].append(clock() - started)
    pairs = sorted(b / a for a, b in zip(*times, strict=True))
    return {
        "task": name,
        "agrees": agrees,
        "static_ms": statistics.median(times[0]) * 1e3,
        "dynamic_ms": statistics.median(times[1]) * 1e3,
        "ratio": statistics.median(pairs),
        "best": min(times[1]) / min(times[0]),
        "rounds": len(pairs),
    }


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelNew()


def _agree(got: Any, want: Any) -> bool:
    import torch
    import torch.utils._pytree as pytree

    def close(a: Any, b: Any) -> bool:
        if not isinstance(a, torch.Tensor):
            return bool(a == b)
        if not a.is_floating_point():
            return torch.equal(a, b)
        scale = float(b.abs().nan_to_num(0.0, 0.0, 0.0).max()) if b.numel() else 0.0
        return a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-4 * max(scale, 1e-30), equal_nan=True)

    return all(close(a, b) for a, b in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True))


def _line(row: dict[str, Any]) -> str:
    if "refused" in row:
        return f"{row['task']:45} refused: {row['refused'][:90]}"
    mark = "" if row["agrees"] else "  DOES NOT AGREE"
    figures = f"{row['static_ms']:9.3f} {row['dynamic_ms']:9.3f} ms  ratio {row['ratio']:.3f}  best {row['best']:.3f}"
    return f"{row['task']:45} {figures}  ({row['rounds']}){mark}"


def _report(rows: list[dict[str, Any]], every: int, clock: str) -> dict[str, Any]:
    timed = [row for row in rows if "ratio" in row]
    logs = {key: [math.log(row[key]) for row in timed] for key in ("ratio", "best")}
    summary = {
        "tasks": len(rows),
        "every": every,
        "clock": clock,
        "made": len(timed),
        "agree": sum(row["agrees"] for row in timed),
        "geometric_mean": math.exp(statistics.fmean(logs["ratio"])) if timed else None,
        "geometric_mean_best": math.exp(statistics.fmean(logs["best"])) if timed else None,
        "slower_than_a_quarter": [row["task"] for row in timed if min(row["ratio"], row["best"]) > SLOW],
        "load": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
    }
    return {"summary": summary, "rows": rows}


if __name__ == "__main__":
    main()
