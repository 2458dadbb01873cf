"""The profile of a kernel on a target that is not at hand, as plain data: for people, for scripts, for models.

What each figure is stands in its name's place: `counted` was counted while the compiled code was executed here, `compiled` was read off the
machine code, `predicted` comes from a model over both. Nothing is measured.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MOST_LINES = 12


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LineFigures(_Figures):
    """A source line of a launch, over its whole grid. All are counted, save `share`: of the predicted time."""

    file: str
    line: int
    source: str = ""
    share: float
    instructions: float
    sectors_per_request: float | None = None
    least_sectors: float | None = None
    bank_passes_per_request: float | None = None
    least_passes: float | None = None
    second_level_bytes: float = 0.0


class Counts(_Figures):
    """Counted on `sampled` blocks, and taken for the whole grid; `spread` is how far these blocks differ (one standard deviation)."""

    sampled: int
    spread: float
    instructions: dict[str, float]
    """Executed by warps, by kind."""
    lanes_active: float
    """Of 32, in the average instruction."""
    operations: float
    """Floating-point."""
    barriers: float
    atomics: float
    global_requests: float
    sectors_per_request: float | None
    sector_efficiency: float | None
    """Sectors with which the same bytes could be had, over those that were."""
    first_level_hits: float | None
    shared_requests: float
    bank_passes_per_request: float | None
    bank_efficiency: float | None


class CompiledFigures(_Figures):
    """Read off the machine code of the target."""

    registers: int
    spilled_bytes: int
    shared_memory: int
    occupancy: float
    limiter: str
    blocks_resident: int


class PredictedFigures(_Figures):
    """From the interval model; `error` is relative, either way."""

    ms: float
    error: float
    bound: str
    parts_ms: dict[str, float]
    """What each resource would take alone."""
    waves: float
    second_level_bytes: float
    memory_bytes: float


class LaunchFigures(_Figures):
    """One kind of launch of a call of forward; it came `times` times."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    times: int = 1
    counted: Counts
    compiled: CompiledFigures
    predicted: PredictedFigures
    lines: tuple[LineFigures, ...] = ()
    advice: tuple[str, ...] = ()
