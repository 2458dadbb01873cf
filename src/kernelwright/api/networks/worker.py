"""One network at one batch in a process of its own: eager, ours and Inductor on the same weights and inputs, in turns.

In: `python -m kernelwright.api.networks.worker NAME BATCH FILE --threads N --seconds S --contenders A,B`. Out: a `Measured` as JSON in
FILE. A process, because each network starts without caches, may take all of the machine's memory, and may die.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelwright.api.bounds import complaint, tensors
from kernelwright.api.explanation import explain
from kernelwright.api.machine_load import Watch
from kernelwright.api.networks.catalogue import Case, make
from kernelwright.api.networks.measured import Contender, Measured
from kernelwright.api.race import timed
from kernelwright.judge.reference.reference import Work
from kernelwright.judge.timing.statistics import paired_ratio, self_noise
from kernelwright.target import Target

BACKENDS: dict[str, dict[str, Any]] = {
    "kernelwright": {"backend": "kernelwright"},
    "compile": {"backend": "inductor"},
    "max-autotune": {"backend": "inductor", "mode": "max-autotune-no-cudagraphs"},
}


def measure(name: str, batch: int, contenders: list[str], seconds: float) -> Measured:
    """All contenders of one network; one that fails is told, and the others go on."""
    case = make(name, batch)
    found = Measured(name, batch, sum(p.numel() for p in case.model.parameters()))
    with torch.no_grad():
        want = [t.clone() for t in tensors(case.model(*case.inputs))]
        found.floor = _floor(case)
        runs: dict[str, Callable[[], Any]] = {}
        for contender in contenders:
            one = Contender(contender)
            found.contenders.append(one)
            compiled = torch.compile(case.model, **BACKENDS[contender])
            try:
                _tried(case, compiled, one, want)
            except Exception as error:
                one.why = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"
            if contender == "kernelwright":
                records = explain().records
                found.graphs, found.used, found.explained = len(records), sum(r.used for r in records), str(explain())
            if one.right:
                runs[contender] = partial(compiled, *case.inputs)
        _race(case, found, runs, seconds)
    return found


def _tried(case: Case, compiled: Any, one: Contender, want: list[Any]) -> None:
    started = time.perf_counter()
    compiled(*case.inputs)
    one.first = time.perf_counter() - started
    one.why = _complaint(case, tensors(compiled(*case.inputs)), want)
    one.right = not one.why


def _complaint(case: Case, got: list[Any], want: list[Any]) -> str:
    state = {**dict(case.model.named_parameters()), **dict(case.model.named_buffers())}
    names = list(state)

    def run(*values: Any) -> Any:
        return torch.func.functional_call(case.model, dict(zip(names, values, strict=False)), values[len(names) :])

    copies = [t.detach().clone() if isinstance(t, torch.Tensor) else t for t in (*state.values(), *case.inputs)]
    return complaint(run, copies, want, got)


def _race(case: Case, found: Measured, runs: dict[str, Callable[[], Any]], seconds: float) -> None:
    def eager() -> Any:
        return case.model(*case.inputs)

    watch = Watch()
    first, *others, second = timed([eager, *runs.values(), eager], seconds)
    found.quiet = watch.quiet
    found.noise = self_noise(first, second)
    both = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    found.eager = sorted(both)[len(both) // 2]
    for name, times in zip(runs, others, strict=True):
        one = next(c for c in found.contenders if c.name == name)
        ratio = paired_ratio(both, times)
        one.seconds, one.ratio, one.low, one.high = sorted(times)[len(times) // 2], ratio.middle, ratio.low, ratio.high


class _Products(TorchDispatchMode):  # type: ignore[misc]
    """Adds up the least time of each product: its operations at the peak, or its bytes at the bandwidth."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        share = min(1.0, torch.get_num_threads() / max(1, target.cores))
        self.target, self.peak, self.seconds = target, target.peak("float32") * share, 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with Work() as work:
            result = func(*args, **(kwargs or {}))
        if work.flops:
            read = sum(t.numel() * t.element_size() for t in args if isinstance(t, torch.Tensor))
            written = sum(t.numel() * t.element_size() for t in tensors(result) if isinstance(t, torch.Tensor))
            moved = self.target.memory_seconds(read, written)
            if read + written < self.target.last_level_cache:
                moved *= self.target.bandwidth / max(self.target.cache_bandwidth or 0.0, self.target.bandwidth)
            self.seconds += max(moved, work.flops / self.peak if self.peak else 0.0)
        return result


def _floor(case: Case) -> float:
    with _Products(Target.host(measure=True)) as products:
        case.model(*case.inputs)
    return float(products.seconds)


def main() -> None:
    """The command line."""
    words = argparse.ArgumentParser()
    words.add_argument("name")
    words.add_argument("batch", type=int)
    words.add_argument("file", type=Path)
    words.add_argument("--threads", type=int, default=torch.get_num_threads())
    words.add_argument("--seconds", type=float, default=1.0)
    words.add_argument("--contenders", default="kernelwright,compile")
    given = words.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(given.threads)
    found = measure(given.name, given.batch, given.contenders.split(","), given.seconds)
    given.file.write_text(json.dumps(found.data(), indent=1))


if __name__ == "__main__":
    main()
