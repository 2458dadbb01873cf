"""Predicted against published times of GPU kernels. `python bench/gpu_predictions`, with nvcc; no GPU.

Kernels of published structures (sgemm.cu, memory.cu) are counted on sampled blocks and predicted from the target's sheet; nothing is
fitted to one kernel. Results go to bench/results/gpu_predictions.json, and as a table to docs/gpu_predictions.md.
"""

from __future__ import annotations

import json
import statistics
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))
N = 4096
SGEMM = {  # entry: (grid, block, published GFLOP/s on an RTX A6000)
    "naive": ((128, 128), (32, 32), 309.0),
    "coalesced": ((128, 128), (1024,), 1986.5),
    "shared_tiles": ((128, 128), (1024,), 2980.3),
    "column_of_eight": ((64, 64), (512,), 8474.7),
    "eight_by_eight": ((32, 32), (256,), 15971.7),
    "vectorized": ((32, 32), (256,), 18237.3),
    "linear_order": ((32, 32), (256,), 16213.4),
    "padded": ((32, 32), (256,), 16459.2),
    "searched": ((32, 32), (256,), 19721.0),
    "warp_tiles": ((32, 32), (128,), 21779.3),
    "two_buffers": ((32, 32), (128,), 17278.3),
}
SOURCE = "github.com/siboehm/SGEMM_CUDA"


def ptx_of(name: str, arch: str) -> str:

    from kernelwright.compiler.offdevice.nvcc import NVCC, run

    with tempfile.TemporaryDirectory() as work:
        out = Path(work) / "kernel.ptx"
        code, said = run(
            [str(NVCC), "-ptx", f"-arch={arch}", "-O3", "-lineinfo", str(HERE / f"{name}.cu"), "-o", str(out)], 300
        )
        assert code == 0, said
        return out.read_text()


def sgemm() -> list[dict[str, Any]]:
    from kernelwright.compiler.offdevice.profiling import profile_launch
    from kernelwright.target.sheet import Target

    target = Target.load("rtx_a6000")
    ptx = ptx_of("sgemm", target.arch)
    a, b, c = (torch.randn(N, N) for _ in range(3))
    params = struct.pack("<iiixxxxQQQ", N, N, N, a.data_ptr(), b.data_ptr(), c.data_ptr())
    rows = []
    for entry, (grid, block, published) in SGEMM.items():
        p = profile_launch(ptx, entry, grid, block, params, 0, target)
        predicted = 2 * N**3 / p.prediction.seconds / 1e9
        rows.append(row(entry, SOURCE, "GFLOP/s", published, predicted, p))
        print(line(rows[-1]), flush=True)
        print(
            "     ",
            {k: round(v * 1e3, 2) for k, v in p.prediction.parts.items() if v > 1e-5},
            p.registers,
            p.occupancy.blocks,
            flush=True,
        )
    return rows


def memory() -> list[dict[str, Any]]:
    from kernelwright.compiler.offdevice.profiling import profile_launch
    from kernelwright.target.sheet import Target

    rows = []
    n = 1 << 24
    x, y, z = (torch.randn(4 * n) for _ in range(3))
    for name, share in (("a100", 0.90), ("h100", 0.90), ("rtx4090", 0.92)):
        target = Target.load(name)
        ptx = ptx_of("memory", target.arch)
        for entry, tensors in (("copy4", (x, y)), ("add4", (x, y, z))):
            params = struct.pack(f"<{len(tensors)}Qi", *(t.data_ptr() for t in tensors), n)
            p = profile_launch(ptx, entry, (n // 256,), (256,), params, 0, target)
            predicted = len(tensors) * 16 * n / p.prediction.seconds / target.bandwidth
            rows.append(row(f"{entry} on {name}", "vendors' and public figures", "share of bandwidth", share, predicted, p))
            print(line(rows[-1]), flush=True)
    target = Target.load("l40s")
    ptx = ptx_of("memory", target.arch)
    for entry, published in (("softmax_passes", 0.0486), ("softmax_vectors", 0.0102)):
        params = struct.pack("<QQi", x.data_ptr(), y.data_ptr(), 1024)
        p = profile_launch(ptx, entry, (4096,), (256,), params, 0, target, warm=True)
        rows.append(row(entry, "github.com/xlite-dev/LeetCUDA", "ms", published, p.prediction.seconds * 1e3, p))
        print(line(rows[-1]), flush=True)
    return rows


def row(name: str, source: str, unit: str, published: float, predicted: float, p: Any) -> dict[str, Any]:
    return {
        "kernel": name, "source": source, "unit": unit, "published": published, "predicted": round(predicted, 4),
        "bound": p.prediction.bound,
        "registers": p.registers, "occupancy": round(p.occupancy.fraction, 3), "advice": list(p.prediction.advice),
    }  # fmt: skip


def line(r: dict[str, Any]) -> str:
    off = r["predicted"] / r["published"] - 1
    return f"{r['kernel']:24} {r['published']:10.4g} {r['predicted']:10.4g} {r['unit']:18} {100 * off:+6.0f} %  {r['bound']}"


def rank_correlation(rows: list[dict[str, Any]]) -> float:
    def ranks(key: str) -> list[float]:
        order = sorted(range(len(rows)), key=lambda k: rows[k][key])
        return [float(order.index(k)) for k in range(len(rows))]

    return statistics.correlation(ranks("published"), ranks("predicted"))


def main() -> None:
    ladder, others = sgemm(), memory()
    errors = [abs(r["predicted"] / r["published"] - 1) for r in ladder]
    result = {
        "command": "python bench/gpu_predictions", "ladder": ladder, "memory": others,
        "rank_correlation": round(rank_correlation(ladder), 3), "median_error": round(statistics.median(errors), 3),
        "memory_error": [round(abs(r["predicted"] / r["published"] - 1), 3) for r in others],
    }  # fmt: skip
    print(json.dumps({k: v for k, v in result.items() if k not in ("ladder", "memory")}))
    (ROOT / "bench/results/gpu_predictions.json").write_text(json.dumps(result, indent=1) + "\n")
    text = ["| kernel | published | predicted | | bound |", "| --- | --- | --- | --- | --- |"]
    text += [
        f"| {r['kernel']} | {r['published']:g} | {r['predicted']:.4g} | {r['unit']} | {r['bound']} |"
        for r in (*ladder, *others)
    ]
    page = ROOT / "docs/gpu_predictions.md"
    head = page.read_text().split("<!-- table -->")[0] if page.exists() else "# Predicted against published\n\n"
    page.write_text(f"{head}<!-- table -->\n" + "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
