"""Resource figures from AMD assembly: the text in, registers and spills out (the metadata that LLVM writes at its end)."""

from __future__ import annotations

import re

WIDTH = 4
"""Bytes of a spilled register."""


def usage(assembly: str) -> dict[str, int | None]:
    """Vector registers (accumulators included) and bytes spilled, per lane."""

    def figure(name: str) -> int | None:
        found = re.findall(rf"\.{name}:\s+(\d+)", assembly)
        return max(map(int, found)) if found else None

    vector, scalar = figure("vgpr_spill_count") or 0, figure("sgpr_spill_count") or 0
    return {"registers": figure("vgpr_count"), "spills": WIDTH * (vector + scalar)}
