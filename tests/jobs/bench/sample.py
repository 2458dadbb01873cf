"""A made-up report of any size, for tests of what is written about it: known speeds, failures of every kind, hostile texts."""

from __future__ import annotations

import random
from pathlib import Path

from kernelwright.core.verdict import Status, Timing, Verdict
from kernelwright.jobs.bench.record import Machine, Options, Record, Step
from kernelwright.jobs.bench.report import Report, build

FAMILIES = ("gemm", "conv", "activation", "norm", "pooling", "reduction", "scan", "loss", "attention", "movement", "sorting")
HOSTILE = "</script><script>document.title = 'broken'</script><!-- | `x` \u2028 <b>bold</b>"
MACHINE = Machine(
    cpu="A CPU",
    cores=2,
    threads=2,
    memory_gb=16,
    system="Linux",
    python="3.11",
    torch="2.13",
    compiler="g++ 12",
    kernelwright="0.1",
)
KERNEL = (
    '''"""A kernel."""
import torch  # everything it needs
SOURCE = r"""
#include <cmath>
// one pass over the rows
extern "C" void run(const float *x, float *y, long n) {
    for (long i = 0; i < n; ++i) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
'''
    + "// "
    + "padding " * 60
    + '''
"""
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clamp(min=0)
'''
)


def timing(speedup: float, versus: float | None, roof: float, roofline_ms: float, spread: float) -> Timing:
    kernel = roofline_ms / roof
    return Timing(
        kernel_ms=kernel,
        eager_ms=kernel * speedup,
        compile_ms=kernel * versus if versus else None,
        speedup=speedup,
        speedup_low=speedup * (1 - spread),
        speedup_high=speedup * (1 + spread),
        speedup_vs_compile=versus,
        speedup_vs_compile_low=versus * (1 - spread) if versus else None,
        speedup_vs_compile_high=versus * (1 + spread) if versus else None,
        roofline_ms=roofline_ms,
        roofline_fraction=roof,
        noise=0.02,
        rounds=9,
        threads=2,
    )


def records(count: int, folder: Path | None = None) -> list[Record]:
    """As many records; where a folder is given, with kernels, sketches and verdicts below it."""
    dice = random.Random(1)
    made = []
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        name = f"{number + 1}_{family}"
        fields: dict[str, object] = {"outcome": "correct", "reason": "right in 9 trials", "tried": 1}
        if number % 13 == 5:
            failed = ("wrong_values", "not_designed", "too_large", "build_failed", "timed_out")[number % 5]
            fields = {"outcome": failed, "reason": f"{failed}: {HOSTILE}"}
        else:
            speedup = max(0.2, dice.lognormvariate(0.5, 0.6))
            fields["timing"] = timing(
                speedup, speedup * dice.uniform(0.7, 1.2), dice.uniform(0.1, 0.95), dice.lognormvariate(0, 1.2), 0.04
            )
        level = f"level{1 + number % 3}"
        if folder is not None and "timing" in fields:
            place = folder / "tasks" / level / name
            place.mkdir(parents=True)
            (place / "kernel.py").write_text(KERNEL)
            (place / "sketch.py").write_text("@kernel\ndef rows():\n    for i in parallel(0, 64):\n        pass\n")
            (place / "task.py").write_text(f"# {HOSTILE}\nclass Model: ...\n")
            (place / "verdict.json").write_text(Verdict(status=Status.correct, reason="right").model_dump_json())
            fields |= {part: f"tasks/{level}/{name}/{part}.py" for part in ("kernel", "sketch")}
            fields["verdict"] = f"tasks/{level}/{name}/verdict.json"
        made.append(
            Record(
                key=f"Suite/{level}/{name}",
                suite="Suite",
                level=level,
                name=name,
                family=family,
                path=f"{name}.py",
                dsl="cpp",
                track="pure",
                reference_ms=3.2,
                seconds=dice.uniform(6, 20),
                lineage=(
                    Step(step="designed", seconds=1.2, facts={"drafts": 3}),
                    Step(step="judged", seconds=7.5, facts={"status": "correct", "reason": HOSTILE}),
                ),
                finished="2026-01-01T00:00:00Z",
                **fields,
            )
        )
    return made


def report(count: int, folder: Path | None = None) -> Report:
    return build("Suite in cpp", Options(), [MACHINE], records(count, folder), count)
