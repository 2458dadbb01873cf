"""Runs as jobs write them, without doing the work: one with a search, one with a model, one that was rejected, and very many."""

from __future__ import annotations

import json
import time
from typing import Any

import sqlalchemy as sa

from kernelwright.core.job import JobSpec, ModelChoice
from kernelwright.core.launch_figures import CompiledFigures, Counts, LaunchFigures, LineFigures, PredictedFigures
from kernelwright.core.task import Task
from kernelwright.core.verdict import CompiledFor, Heat, Mismatch, Status, Timing, Verdict
from kernelwright.store import Store, tables

TASK = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
"""
KERNEL = '''import torch

SOURCE = """
extern "C" void softmax(const float* x, float* out) {{ /* {0} */ }}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return softmax(x, tile={0})
'''
SKETCH = 'name = "softmax"\n\nx = tensor([64, 128], f32, role="input")\n# tile {0}\n'
PLACE = "/home/ada/secret-project"


def job(**more: Any) -> dict[str, Any]:
    task = Task.from_source(TASK, path=f"{PLACE}/softmax.py")
    return JobSpec(task, "cpp", out=f"{PLACE}/out", store=f"{PLACE}/store", models=ModelChoice()).as_json() | more


def timing(speedup: float) -> Timing:
    return Timing(
        kernel_ms=1.0 / speedup, eager_ms=1.0, compile_ms=1.1, speedup=speedup, speedup_low=speedup * 0.95, speedup_high=speedup * 1.05,
        speedup_vs_compile=speedup * 1.1, speedup_vs_compile_low=speedup, speedup_vs_compile_high=speedup * 1.2,
        roofline_ms=0.4, roofline_fraction=min(1.0, 0.4 * speedup), bound="memory", noise=0.02, rounds=12, threads=2,
    )  # fmt: skip


def verdict(speedup: float) -> str:
    return Verdict(
        status=Status.correct,
        reason=f"right in 27 trials; {speedup:.2f}x eager",
        task="softmax",
        dsl="cpp",
        timing=timing(speedup),
    ).model_dump_json()


def tuned_run(store: Store, run_id: str = "20260101-120000-aaaaaa", heats: int = 6) -> str:
    """A finished run with a judged draft, a search on three islands, and a winner."""
    run = store.begin(job(tune_seconds=60.0), run_id=run_id)
    put = lambda text: store.put(text.encode())  # noqa: E731
    run.step("start", "softmax", {"task": put(TASK)}, None, {"dsl": "cpp"})
    run.step("designed", "3 drafts of the built-in mind", {}, put(SKETCH.format(8)), {"notes": [f"read {PLACE}/softmax.py:3"]})
    given = {"sketch": put(SKETCH.format(8)), "kernel": put(KERNEL.format(8))}
    run.step("judged", "draft 1: right", given, put(verdict(1.5)), {"status": "correct", "speedup": 1.5, "author": "builtin"})
    leader, best = put(KERNEL.format(8)), 1.0
    for heat in range(heats):
        best *= 1.07
        result = put(KERNEL.format(16 + heat))
        places = [
            {"what": f"tile {8 << at}", "relative": (0.9 + 0.1 * at) / best, "island": at, "kind": f"kind {at % 2}",
             "features": {"estimate": 1.0}, "values": {"tile": 8 << at}, "seconds": 0.001, "kernel": result}
            for at in range(3)
        ]  # fmt: skip
        run.step(
            "heat",
            f"3 variants, the best is {best:.2f}x",
            {"leader": leader},
            result,
            {"places": places, "best": best, "target": "cpu"},
        )
        leader = result
    won = {"sketch": put(SKETCH.format(16)), "kernel": put(KERNEL.format(99))}
    run.step("judged", "the winner: right", won, put(verdict(2.2)), {"status": "correct", "speedup": 2.2, "author": "builtin"})
    run.finish("done", won["kernel"])
    return run_id


def wrong_verdict(**more: Any) -> Verdict:
    mismatch = Mismatch(output="output", wrong=96, total=8192, region="last 3 columns", worst_error=0.5, bound=1e-5, place=(0, 125),
                        samples=("[0, 125]: expected 0.01, got 0",), **more)  # fmt: skip
    return Verdict(status=Status.wrong_values, reason="output is wrong", task="softmax", dsl="cpp", mismatch=mismatch)


def profiled_run(store: Store, run_id: str = "20260101-140000-dddddd") -> str:
    """A run for a GPU that is not at hand: a kernel with the profile of its launch, after one that was wrong."""
    run = store.begin(job(dsl="triton"), run_id=run_id)
    put = lambda text: store.put(text.encode())  # noqa: E731
    heat = Heat(shape=(64, 128), axes=(0, 1), rows=2, columns=4, share=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.5))
    run.step(
        "judged",
        "wrong",
        {"kernel": put(KERNEL.format(1))},
        put(wrong_verdict(heat=heat).model_dump_json()),
        {"status": "wrong_values"},
    )
    counted = Counts(sampled=4, spread=0.0, instructions={"fma": 10.0}, lanes_active=32.0, operations=1e6, barriers=0.0, atomics=0.0,
                     global_requests=100.0, sectors_per_request=8.0, sector_efficiency=0.5, first_level_hits=0.0, shared_requests=0.0,
                     bank_passes_per_request=None, bank_efficiency=None)  # fmt: skip
    compiled = CompiledFigures(
        registers=32, spilled_bytes=0, shared_memory=0, occupancy=0.75, limiter="registers", blocks_resident=6
    )
    predicted = PredictedFigures(
        ms=0.25, error=0.2, bound="memory", parts_ms={"memory": 0.25}, waves=1.5, second_level_bytes=1e6, memory_bytes=1e6
    )
    line = LineFigures(
        file="kernel.py",
        line=7,
        source="x = tl.load(x_ptr + offsets)",
        share=0.8,
        instructions=4096.0,
        sectors_per_request=8.0,
        least_sectors=4.0,
    )
    launch = LaunchFigures(name="softmax_rows", grid=(64, 1, 1), block=(128, 1, 1), counted=counted, compiled=compiled, predicted=predicted,
                           lines=(line,), advice=("Let neighbouring lanes access neighbouring addresses at kernel.py:7.",))  # fmt: skip
    told = Verdict(status=Status.correct, reason="right in 9 trials", task="softmax", dsl="triton", target="h100", execution="emulator",
                   compiled_for={"h100": CompiledFor(registers=32, occupancy=0.75, predicted_ms=0.25, launches=(launch,))})  # fmt: skip
    given = {"kernel": put(KERNEL.format(2))}
    run.step("judged", "right", given, put(told.model_dump_json()), {"status": "correct"})
    run.finish("done", given["kernel"])
    return run_id


def rejected_run(store: Store, run_id: str = "20260101-130000-bbbbbb") -> str:
    """A run of a model: prompts, answers, tokens, a rejected kernel."""
    run = store.begin(job(model="openai:gpt-test"), run_id=run_id)
    put = lambda text: store.put(text.encode())  # noqa: E731
    told = {"role": "coder", "tokens_in": 1200, "tokens_out": 340, "cost_usd": 0.012}
    run.step("answer", "the Coder writes", {"prompt": put("Write a kernel.")}, put("```python\nclass ModelNew: ...\n```"), told)
    run.step("judged", f"wrong, see {PLACE}/x/kernel.py:9", {"kernel": put(KERNEL.format(1))}, put(wrong_verdict().model_dump_json()),
             {"status": "wrong_values", "author": "coder"})  # fmt: skip
    run.finish("failed")
    return run_id


def many_runs(store: Store, count: int, steps: int = 3) -> None:
    """Rows of finished runs, written at once."""
    now = time.time()
    text = {
        name: json.dumps(job(task=f"task_{name}", dsl=dsl)) for name, dsl in (("a", "cpp"), ("b", "triton"), ("c", "cuda_c"))
    }
    runs = [
        {"id": f"run-{number:06d}", "job": list(text.values())[number % 3], "status": ("done", "failed", "done", "done")[number % 4],
         "best": None, "owner": "", "started": now - 60 - number * 60, "touched": now - 30 - number * 60, "seconds": 30.0}
        for number in range(count)
    ]  # fmt: skip
    rows = [
        {"run": one["id"], "number": step, "kind": "judged", "reason": "draft", "inputs": "{}", "result": None,
         "at": float(one["started"]) + step, "facts": json.dumps({"status": "correct", "speedup": 1.0 + step / 4 + (place % 7) / 10})}
        for place, one in enumerate(runs) for step in range(1, steps + 1)
    ]  # fmt: skip
    with store._database.write() as connection:
        connection.execute(sa.insert(tables.runs), runs)
        connection.execute(sa.insert(tables.steps), rows)
