"""A search as a program, for tests that kill it: `python searcher.py STORE OUT RUN`. A new run, or the next process of one.

Search, proposals, memory, journal and store are the real ones. In place of builds and the clock stand a worker that writes a point
down as its own kernel and a race whose seconds follow from the point, so that a search takes a second and ends the same way every
time. Every race that is really run is put down in OUT/raced before it is.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from kernelwright.core.job import JobSpec
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.verdict import Status, Timing, Verdict
from kernelwright.judge.timing.race import Place
from kernelwright.run.attempts import Attempt
from kernelwright.run.folder import JobFolder
from kernelwright.run.journal import Journal
from kernelwright.run.memo import Memory
from kernelwright.run.observer import Observer
from kernelwright.run.workbench import Workbench
from kernelwright.search.codegen_options import code_of
from kernelwright.search.features import Axes
from kernelwright.search.point import Point
from kernelwright.search.races import Races
from kernelwright.search.tune import tune
from kernelwright.search.worker import Written
from kernelwright.store import Store

TASK = "import torch\nclass Model(torch.nn.Module):\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"
TILES = (8, 16, 32, 64, 128)
DESIGNS = [
    Axes({"a": TILES, "b": TILES, "coder c": (0, 1)}, {"a": 32, "b": 32, "coder c": 0}, 1.0),
    Axes({"a": TILES}, {"a": 64}, 2.0),
]
SEED = json.dumps({"seconds": 4.0})


class Both:
    """SearchWorker and race at once."""

    designs = DESIGNS

    def __init__(self, out: Path) -> None:
        self._out = out

    def write(self, point: Point) -> Written | None:
        values = dict(point.values)
        if values["a"] == values.get("b") == 8:
            return None  # as the checker objects to some points
        far = abs(TILES.index(values["a"]) - 3) + abs(TILES.index(values.get("b", 128)) - 1) + values.get("coder c", 1)
        kernel = json.dumps({"design": point.design, **values, "seconds": 1.0 + 0.3 * far + point.design})
        return Written(Kernel.from_source(kernel, dsl="cpp"), f"# {kernel}", code_of(kernel))

    def race(self, kernels: list[str], stages: tuple[tuple[int, float], ...]) -> list[Place]:
        with (self._out / "raced").open("a") as log:
            log.write(json.dumps([kernels, stages]) + "\n")
        time.sleep(0.02)
        return [Place(json.loads(kernel)["seconds"], 10) for kernel in kernels]

    def verify(self, *_: Any, **__: Any) -> Verdict:
        return right()


def right() -> Verdict:
    timing = Timing(kernel_ms=1, eager_ms=2, speedup=2, speedup_low=2, speedup_high=2, noise=0, rounds=9)
    return Verdict(status=Status.correct, reason="right", execution="native", track="pure", timing=timing)


def search(store: Store, out: Path, name: str) -> None:
    session: Any = Both(out)
    Races._worker = lambda self: session  # type: ignore[method-assign]
    Races._racing = lambda self: session  # type: ignore[method-assign]
    known = any(run.id == name for run in store.runs())
    run = store.resume(name) if known else store.begin({"dsl": "cpp", "task": "t"}, run_id=name)
    bench = Workbench(JobSpec(Task.from_source(TASK)), session, session, Memory(run.id, store))
    folder = JobFolder(out, run.id)
    journal = Journal(folder, store, run)
    seed = Attempt(1, 0, "builtin", "# seed", Kernel.from_source(SEED, dsl="cpp"), right(), True)
    tuned = tune(bench, journal, folder, Observer(lambda line: print(line, flush=True)), seed, seconds=1e6)
    journal.finish("done", tuned.attempt.kernel.source)
    print("gain", tuned.gain, flush=True)


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    with Store.open(sys.argv[1]) as opened:
        search(opened, Path(sys.argv[2]), sys.argv[3])
