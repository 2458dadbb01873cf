"""What a verdict on a Triton kernel costs off the device: this tree and another one (`--other SRC`) in turns, each verdict in a process
of its own, in seconds of the wall clock, with the machine's load beside it.

    python bench/verdict_seconds.py --other /path/to/older/src --out bench/results/verdict_seconds.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

HEAD = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, {names}):\n        return {result}\n\n"
TAIL = "def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n"
TASKS = {
    "product 1024^3 fp16": ("a, b", "a @ b", ", ".join(["torch.randn(1024, 1024, dtype=torch.float16)"] * 2)),
    "softmax 1024x1024": ("x", "torch.softmax(x, -1)", "torch.randn(1024, 1024)"),
    "add 1M": ("a, b", "a + b", "torch.randn(1 << 20), torch.randn(1 << 20)"),
}
KERNELS = {
    "product 1024^3 fp16": """
import torch, triton
import triton.language as tl

@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        total += tl.dot(tl.load(a + rows[:, None] * K + inner[None, :]), tl.load(b + inner[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
        grid = (a.shape[0] // 128, b.shape[1] // 128)
        product[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], 128, 128, 32, num_warps=8)
        return c
""",
    "softmax 1024x1024": """
import torch, triton
import triton.language as tl

@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n
    row = tl.load(x + at, mask=inside, other=float("-inf"))
    top = tl.exp(row - tl.max(row, 0))
    tl.store(y + at, top / tl.sum(top, 0), mask=inside)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return y
""",
    "add 1M": """
import torch, triton
import triton.language as tl

@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n), mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), 1024)
        return c
""",
}


def one(name: str) -> None:
    """One verdict, in this process; prints a line of JSON."""
    from kernelwright.core.task import Task
    from kernelwright.judge import Judge

    names, result, inputs = TASKS[name]
    text = HEAD.format(names=names, result=result) + TAIL.format(inputs=inputs)
    with Judge() as judge:
        found = judge.verify(Task.from_source(text, path="task.py"), KERNELS[name], target="a100")
    print(
        json.dumps(
            {
                "status": found.status.value,
                "execution": found.execution,
                "seconds": found.seconds,
                "trials": found.reason.partition(" over ")[0] if found.status.value == "correct" else "",
                "left_out": next((w for w in found.warnings if "left out" in w), ""),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one")
    parser.add_argument("--other", help="the src folder of another tree")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.one:
        one(given.one)
        return
    trees = {"this": str(Path(__file__).parents[1] / "src"), **({"other": given.other} if given.other else {})}
    rows = []
    for _ in range(given.rounds):
        for name in TASKS:
            for tree, source in trees.items():
                command = [sys.executable, __file__, "--one", name]
                ran = subprocess.run(
                    command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=False
                )
                line = ran.stdout.splitlines()[-1] if ran.returncode == 0 else json.dumps({"error": ran.stderr[-300:]})
                rows.append({"task": name, "tree": tree, **json.loads(line), "load": round(os.getloadavg()[0], 1)})
                print(json.dumps(rows[-1]), flush=True)
                if given.out:
                    facts = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "verdicts": rows}
                    given.out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
