"""How cost grows: time over size and threads of ten generated C++ kernels, beside PyTorch eager and the roofline.

    python bench/growth.py [--threads 1] [--only NAME,NAME] [--seconds S] [--out bench/results/growth.json]

Calls of both alternate in one process, a time is the best of them: other programs make a call slower, never faster. Each case
is checked against eager first. A run replaces the points it measured in the file and writes the table beside it again, so that
threads and kernels can be measured one slice after another on a machine that is shared. Inputs stay the same, so that small sizes
are read from a cache: there a kernel may beat the roofline, which is that of memory. Real-time priority (where allowed) keeps the
threads of one call on cores of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
"""Elements of the input."""


def table() -> dict[str, Callable[[Any], Any]]:
    """Name → function of one matrix."""
    import torch
    from torch.nn import functional

    return {
        "relu": torch.relu,
        "gelu": functional.gelu,
        "softmax": lambda x: torch.softmax(x, dim=1),
        "layer_norm": lambda x: functional.layer_norm(x, x.shape[1:]),
        "sum_rows": lambda x: x.sum(dim=1),
        "max_columns": lambda x: x.amax(dim=0),
        "argmax_rows": lambda x: x.argmax(dim=1),
        "cumsum": lambda x: torch.cumsum(x, dim=1),
        "transpose": lambda x: x.t().contiguous(),
        "max_pool": lambda x: functional.max_pool2d(x[None, None], 3, stride=2, padding=1),
    }


def module(function: Callable[[Any], Any]) -> Any:
    """The function as a module: what a kernel replaces, and called like one."""
    import torch

    class Call(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    return Call().eval()


def kernel(function: Callable[[Any], Any], x: Any) -> Any:
    """The built-in mind's first design for this function at this shape, built and loaded."""
    from kernelwright.compiler.backends.cpp.emit import lower
    from kernelwright.compiler.designer import design_module

    file = types.ModuleType("kernel")
    exec(compile(lower(design_module(module(function), (x,))[0].sketch), "kernel.py", "exec"), file.__dict__)
    return file.ModelNew().eval()


def precedence(policy: int, priority: int) -> None:
    """Every thread of this process, where we may."""
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


def race(calls: list[Callable[[Any], Any]], x: Any, seconds: float) -> list[float]:
    """Best time of each, called in turn in short bursts; the other programs run between them."""
    best = [math.inf for _ in calls]
    for call in calls:
        call(x)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or math.inf in best:
        precedence(os.SCHED_RR, 1)
        stop = time.perf_counter() + 0.02
        while time.perf_counter() < stop:
            for k, call in enumerate(calls):
                begin = time.perf_counter()
                call(x)
                best[k] = min(best[k], time.perf_counter() - begin)
        precedence(os.SCHED_OTHER, 0)
        time.sleep(0.02)
    return best


def measured(threads: int, name: str, seconds: float) -> list[dict[str, Any]]:
    """One row a size."""
    import torch

    from kernelwright.target.cpu import describe_host

    host = describe_host(measure=True)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    rows = []
    with torch.no_grad():
        function = table()[name]
        for elements in SIZES:
            columns = 1 << (elements.bit_length() // 2)
            x = torch.randn(elements // columns, columns)
            ours, expected = kernel(function, x), function(x)
            if not torch.allclose(ours(x), expected, rtol=1e-4, atol=1e-4):
                raise SystemExit(f"{name} of {elements} elements: wrong values")
            mine, eager = race([ours, module(function)], x, seconds)
            floor = host.memory_seconds(x.nbytes, expected.nbytes)
            row = {"kernel": name, "elements": elements, "threads": threads, "kernel_us": round(mine * 1e6, 2)}
            rows.append(row | {"eager_us": round(eager * 1e6, 2), "roofline_us": round(floor * 1e6, 2)})
            print(f"{name:12s} {elements:8d} {threads} threads {mine * 1e6:10.1f} us, eager {eager * 1e6:10.1f}", flush=True)
    return rows


def markdown(data: dict[str, Any]) -> str:
    """The curves as a table: microseconds, and how many times as fast as eager."""
    out = [
        "# How cost grows",
        "",
        f"Microseconds a call of the generated kernel (times as fast as eager), best of alternating calls, `python bench/growth.py`; "
        f"{data['machine']}, torch {data['torch']}, {data['date']}. The roofline is that of memory: what fits a cache may beat it.",
        "",
        f"| kernel | threads | {' | '.join(f'{n:,} elements' for n in SIZES)} | of the roofline at the largest |",
        "| --- | --- |" + " --- |" * (len(SIZES) + 1),
    ]
    points = {(r["kernel"], r["threads"], r["elements"]): r for r in data["rows"]}
    for name, threads in dict.fromkeys((k, t) for k, t, _ in sorted(points, key=lambda p: (p[0], p[1]))):
        cells = []
        for n in SIZES:
            row = points.get((name, threads, n))
            cells.append(f"{row['kernel_us']:,.1f} ({row['eager_us'] / row['kernel_us']:.2f}x)" if row else "-")
        last = points.get((name, threads, SIZES[-1]))
        share = f"{last['roofline_us'] / last['kernel_us']:.0%}" if last else "-"
        out.append(f"| {name} | {threads} | {' | '.join(cells)} | {share} |")
    return "\n".join(out) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--seconds", type=float, default=0.1)
    arguments.add_argument("--out", type=Path, default=Path("bench/results/growth.json"))
    options = arguments.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before torch starts its threads

    import torch

    from kernelwright.target.cpu import describe_host

    for name in options.only.split(",") if options.only else table():
        rows = measured(options.threads, name, options.seconds)
        old = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
        points = {(r["kernel"], r["elements"], r["threads"]): r for r in [*old, *rows]}
        about = {"date": datetime.date.today().isoformat(), "machine": describe_host().title, "torch": torch.__version__}
        data = about | {"rows": [points[key] for key in sorted(points)]}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(data, indent=1) + "\n")
        options.out.with_suffix(".md").write_text(markdown(data))


if __name__ == "__main__":
    main()
