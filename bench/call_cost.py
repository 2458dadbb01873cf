"""What a call of ModelNew costs beside its work: kernels of a few elements, timed in one process, and eager beside them.

    python bench/call_cost.py [--out bench/results/call_cost.json]

The best of fifteen repetitions of two thousand calls: a few elements take no time to compute, so what is left is Python, the checks of
shapes and the way into C++ and back.
"""

from __future__ import annotations

import argparse
import json
import os
import timeit
import types
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import nn

CALLS, REPEATS = 2000, 15


class Map(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


CASES: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "relu": (Map(torch.relu), (torch.rand(8),)),
    "two inputs": (Map(torch.add), (torch.rand(4, 4), torch.rand(4, 4))),
    "linear and gelu": (nn.Sequential(nn.Linear(4, 4), nn.GELU()), (torch.rand(2, 4),)),
    "softmax": (nn.Softmax(-1), (torch.rand(2, 8),)),
}


def microseconds(call: Callable[[], Any]) -> float:
    """Of one call."""
    return min(timeit.repeat(call, number=CALLS, repeat=REPEATS)) / CALLS * 1e6


def measured() -> dict[str, dict[str, float]]:
    """Each case: our kernel's microseconds, and eager's."""
    from kernelwright.compiler.backends.cpp.emit import lower
    from kernelwright.compiler.designer import design_module

    told = {}
    for name, (module, inputs) in CASES.items():
        module.eval()
        state = [(name, tuple(value.shape), value.dtype, False) for name, value in module.state_dict().items()]
        file = types.ModuleType("kernel")
        exec(compile(lower(design_module(module, inputs)[0].sketch, state=state), "kernel.py", "exec"), file.__dict__)
        ours = file.ModelNew()
        ours.load_state_dict(module.state_dict())
        torch.testing.assert_close(ours(*inputs), module(*inputs))
        told[name] = {
            "kernel_us": round(microseconds(lambda: ours(*inputs)), 2),  # noqa: B023
            "eager_us": round(microseconds(lambda: module(*inputs)), 2),  # noqa: B023
        }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    with torch.no_grad():
        told = {"date": date.today().isoformat(), "load": round(os.getloadavg()[0], 1), "cases": measured()}
    print(json.dumps(told, indent=1))
    if chosen.out:
        chosen.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
