"""`kernelwright bench networks`: whole networks through the torch.compile backend; report.md and report.json out."""

from __future__ import annotations

import json
import os
from pathlib import Path


def bench_networks(
    text: str, batches: str, contenders: tuple[str, ...], threads: int | None, folder: Path, *, resume: bool, as_json: bool
) -> int:
    """Exit code 0: every network that ran is right. 1: one is wrong or failed."""
    from rich.console import Console

    from kernelwright.api.networks import report
    from kernelwright.api.networks.bench import planned, run
    from kernelwright.api.networks.measured import Measured
    from kernelwright.core.errors import ConfigError

    try:
        sizes = tuple(int(word) for word in batches.split(","))
    except ValueError:
        raise ConfigError(f"--batches takes numbers with commas, such as 1,8; not {batches!r}") from None
    others = tuple(name for name in contenders if name not in ("eager", "kernelwright"))
    plan = planned(text, batches=sizes, contenders=("kernelwright", *others), threads=threads or os.cpu_count() or 1)
    console = Console(stderr=True, highlight=False)

    def tell(one: Measured) -> None:
        said = one.failed or "  ".join(f"{c.name} {f'{c.ratio:.2f}x' if c.right else c.why}" for c in one.contenders)
        console.print(f"{one.name:20} batch {one.batch:<3} {said}{'' if one.quiet else '  (busy machine)'}", markup=False)

    found = run(plan, folder, resume=resume, tell=tell)
    summary = report.write(plan, found, folder)
    if as_json:
        print(json.dumps({"folder": str(folder), **summary}))
    else:
        print((folder / "report.md").read_text())
    return 1 if summary["wrong"] or summary["failed"] else 0
