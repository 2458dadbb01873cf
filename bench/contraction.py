"""Generated C++ against PyTorch eager for matrix products, convolutions and attention, interleaved in one process.

    python bench/contraction.py [--threads N] [--seconds S] [--only TEXT] [--out FILE]

Times are the best of many interleaved calls. With one thread (the default) the clock is the CPU time of that thread, which other
processes on the machine hardly disturb; with more it is wall time, which wants a quiet machine. Every result is compared first.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any


def table() -> list[tuple[str, Any, tuple[Any, ...], float]]:
    """(name, module, inputs, floating-point operations) for each case."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Call(nn.Module):
        def __init__(self, function: Callable[..., torch.Tensor]) -> None:
            super().__init__()
            self.function = function

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return self.function(*inputs)

    cases: list[tuple[str, Any, tuple[Any, ...], float]] = []
    r = torch.randn
    for m, n, k in [
        (512, 512, 512),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (491, 739, 613),
        (96, 80, 49152),
        (24576, 20, 192),
    ]:
        cases.append((f"mm {m}x{n}x{k}", Call(torch.mm), (r(m, k), r(k, n)), 2.0 * m * n * k))
    cases.append(("mm nt 1024", Call(lambda a, b: a @ b.T), (r(1024, 1024), r(1024, 1024)), 2.0 * 1024**3))
    cases.append(("mm tn 1024", Call(lambda a, b: a.T @ b), (r(1024, 1024), r(1024, 1024)), 2.0 * 1024**3))
    cases.append(("bmm 48x96x128x192", Call(torch.bmm), (r(48, 96, 192), r(48, 192, 128)), 2.0 * 48 * 96 * 128 * 192))
    cases.append(("gemv 4096", Call(torch.mv), (r(4096, 4096), r(4096)), 2.0 * 4096**2))
    cases.append(("linear gelu 1024", nn.Sequential(nn.Linear(1024, 1024), nn.GELU()), (r(1024, 1024),), 2.0 * 1024**3))

    def conv(name: str, layer: Any, x: torch.Tensor) -> None:
        with torch.no_grad():
            out = layer(x)
        points = x if layer.transposed else out
        taps = math.prod(layer.kernel_size) * layer.in_channels * layer.out_channels / layer.groups
        cases.append((name, layer, (x,), 2.0 * points.shape[0] * math.prod(points.shape[2:]) * taps))

    conv("conv2d 16x64x64x64 k3", nn.Conv2d(64, 64, 3, padding=1), r(16, 64, 64, 64))
    conv("conv2d 8x256x28x28 k3", nn.Conv2d(256, 256, 3, padding=1), r(8, 256, 28, 28))
    conv("conv2d 4x3x224x224 k7 s2", nn.Conv2d(3, 64, 7, stride=2, padding=3), r(4, 3, 224, 224))
    conv("conv2d 6x96x56x56 k1", nn.Conv2d(96, 128, 1), r(6, 96, 56, 56))
    conv("conv2d 8x64x56x56 k3 groups 4", nn.Conv2d(64, 64, 3, groups=4, padding=1), r(8, 64, 56, 56))
    conv("depthwise 8x64x56x56 k3", nn.Conv2d(64, 64, 3, groups=64, padding=1), r(8, 64, 56, 56))
    conv("conv1d 8x48x2048 k3", nn.Conv1d(48, 64, 3), r(8, 48, 2048))
    conv("conv1d 8x32x1024 k5", nn.Conv1d(32, 64, 5, padding=2), r(8, 32, 1024))
    conv("conv3d 2x8x16x28x28 k3", nn.Conv3d(8, 24, 3, padding=1), r(2, 8, 16, 28, 28))
    conv("deconv2d 4x32x40x40 k3", nn.ConvTranspose2d(32, 32, 3), r(4, 32, 40, 40))
    conv("deconv2d 4x24x24x24 k3 p1", nn.ConvTranspose2d(24, 32, 3, padding=1), r(4, 24, 24, 24))
    conv("deconv2d 4x32x40x40 k4 s2", nn.ConvTranspose2d(32, 32, 4, stride=2, padding=1), r(4, 32, 40, 40))
    conv("deconv3d 2x16x8x14x14 k3 s2", nn.ConvTranspose3d(16, 16, 3, stride=2, padding=1), r(2, 16, 8, 14, 14))

    attend = functional.scaled_dot_product_attention
    q = r(2, 8, 512, 64)
    cases.append(("attention 2x8x512x64", Call(attend), (q, r(q.shape), r(q.shape)), 4.0 * 16 * 512 * 512 * 64))
    causal = Call(lambda q, k, v: attend(q, k, v, is_causal=True))
    cases.append(("attention causal 2x8x512x64", causal, (q, r(q.shape), r(q.shape)), 2.0 * 16 * 512 * 512 * 64))
    decode = Call(lambda q, k, v: attend(q, k, v, enable_gqa=True))
    cases.append(
        ("decode 2x16x4096x128", decode, (r(2, 16, 1, 128), r(2, 4, 4096, 128), r(2, 4, 4096, 128)), 4.0 * 32 * 4096 * 128)
    )
    return cases


def kernel(module: Any, inputs: tuple[Any, ...]) -> Any:
    """The built-in designer's first sketch for a module, lowered to C++, built and loaded with its weights."""
    from kernelwright.compiler.backends.cpp.emit import lower
    from kernelwright.compiler.designer import design_module

    sketch = design_module(module, inputs)[0].sketch
    state = module.state_dict()
    entries = [(name, tuple(t.shape), str(t.dtype).removeprefix("torch."), False) for name, t in state.items()]
    space = types.ModuleType("kernel")
    exec(compile(lower(sketch, state=entries), "kernel.py", "exec"), space.__dict__)
    model = space.ModelNew()
    model.load_state_dict(state)
    return model


def race(ours: Any, eager: Any, inputs: tuple[Any, ...], seconds: float, clock: Callable[[], float]) -> tuple[float, float]:
    """Best times of both, called in turn."""
    best = [math.inf, math.inf]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or math.inf in best:
        for k, call in enumerate((ours, eager)):
            begin = clock()
            call(*inputs)
            best[k] = min(best[k], clock() - begin)
    return best[0], best[1]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=1.5)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--out", type=Path, default=None)
    options = arguments.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before torch starts its threads

    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    rows = []
    with torch.no_grad():
        for name, module, inputs, flops in table():
            if options.only not in name:
                continue
            ours = kernel(module.eval(), inputs)
            expected, got = module(*inputs), ours(*inputs)
            error = float((got - expected).abs().max() / expected.abs().max())
            if not error < 1e-4:
                raise SystemExit(f"{name}: wrong values, relative error {error:.1e}")
            mine, theirs = race(ours, module, inputs, options.seconds, clock)
            rows.append({"case": name, "kernel_ms": mine * 1e3, "eager_ms": theirs * 1e3, "speedup": theirs / mine})
            print(
                f"{name:32s} {mine * 1e3:9.3f} ms {flops / mine / 1e9:7.1f} GFLOP/s   eager {theirs * 1e3:9.3f} ms   x{theirs / mine:.2f}",
                flush=True,
            )
    mean = math.exp(sum(math.log(row["speedup"]) for row in rows) / len(rows))
    print(f"geometric mean of {len(rows)}: x{mean:.2f}")
    if options.out:
        about = {
            "date": datetime.date.today().isoformat(), "machine": platform.processor() or platform.machine(), "torch": torch.__version__,
            "threads": options.threads, "clock": "cpu time" if options.threads == 1 else "wall time", "geometric_mean": mean,
        }  # fmt: skip
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
