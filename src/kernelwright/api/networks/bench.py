"""The cases of `bench networks`, one after the other: each in a worker with empty caches, its finding in a file of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.api.networks.catalogue import names
from kernelwright.api.networks.measured import Measured
from kernelwright.core.errors import ConfigError

CONTENDERS = ("kernelwright", "compile", "max-autotune")


@dataclass(frozen=True)
class Plan:
    """What is run, and under which conditions."""

    networks: tuple[str, ...]
    batches: tuple[int, ...] = (1, 8)
    contenders: tuple[str, ...] = ("kernelwright", "compile")
    threads: int = os.cpu_count() or 1
    seconds: float = 1.0
    limit: float = 900.0
    """Seconds that a case may take."""


def planned(text: str = "", **more: object) -> Plan:
    """The plan for the networks whose name contains one of these words (with commas); all of them for an empty text."""
    words = [w.strip() for w in text.split(",") if w.strip()]
    chosen = tuple(n for n in names() if not words or any(w in n for w in words))
    if not chosen:
        raise ConfigError(f"no network is called like {text!r}; the networks are {', '.join(names())}")
    plan = Plan(chosen, **more)  # type: ignore[arg-type]
    if unknown := set(plan.contenders) - set(CONTENDERS):
        raise ConfigError(f"contender {sorted(unknown)[0]!r} is unknown; choose from {', '.join(CONTENDERS)}")
    if plan.threads < 1 or min(plan.batches, default=0) < 1:
        raise ConfigError("--batches and --threads need numbers from 1 on")
    return plan


def run(plan: Plan, folder: Path, *, resume: bool = False, tell: Callable[[Measured], None] = lambda _: None) -> list[Measured]:
    """All cases; with `resume` those that the folder does not know yet."""
    cases = folder / "cases"
    cases.mkdir(parents=True, exist_ok=True)
    found = []
    for name, batch in _cases(plan):
        file = cases / f"{name}-{batch}.json"
        if not (resume and file.exists()):
            file.write_text(json.dumps(_one(name, batch, plan).data(), indent=1) + "\n")
        found.append(Measured.read(json.loads(file.read_text())))
        tell(found[-1])
    return found


def _cases(plan: Plan) -> Iterator[tuple[str, int]]:
    return ((name, batch) for name in plan.networks for batch in plan.batches)


def _one(name: str, batch: int, plan: Plan) -> Measured:
    with tempfile.TemporaryDirectory(prefix="kernelwright-networks-") as work:
        file = Path(work, "found.json")
        words = [name, str(batch), str(file), "--threads", str(plan.threads), "--seconds", str(plan.seconds)]
        own = {"XDG_CACHE_HOME": f"{work}/cache", "TORCHINDUCTOR_CACHE_DIR": f"{work}/inductor", **_threads(plan)}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "kernelwright.api.networks.worker", *words, "--contenders", ",".join(plan.contenders)],
                env={**os.environ, **own},
                capture_output=True,
                text=True,
                timeout=plan.limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Measured(name, batch, failed=f"not done after {plan.limit:.0f} s")
        if not file.exists():
            return Measured(name, batch, failed=_last_line(done.stderr) or f"the worker ended with {done.returncode}")
        return Measured.read(json.loads(file.read_text()))


def _threads(plan: Plan) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(plan.threads), "MKL_NUM_THREADS": str(plan.threads)}


def _last_line(text: str) -> str:
    lines: Sequence[str] = text.strip().splitlines()
    return lines[-1][:300] if lines else ""
