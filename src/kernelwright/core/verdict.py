"""The Verdict: one status, and exactly the fields that this status may have. An impossible verdict cannot be constructed."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kernelwright.core.launch_figures import LaunchFigures

Track = Literal["pure", "hybrid", "source"]
Execution = Literal["native", "device", "interpreter", "emulator"]


class Status(StrEnum):
    """What became of a kernel. Scripts rely on these words."""

    correct = "correct"
    wrong_values = "wrong_values"
    wrong_shape = "wrong_shape"
    wrong_dtype = "wrong_dtype"
    cheating = "cheating"
    build_failed = "build_failed"
    crashed = "crashed"
    timed_out = "timed_out"
    out_of_memory = "out_of_memory"
    unusable_task = "unusable_task"


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rival(Frozen):
    """A further contender of the same measurement, and how many times as fast the kernel is."""

    name: str
    ms: float
    speedup: float
    speedup_low: float
    speedup_high: float


class Timing(Frozen):
    """One interleaved measurement. `speedup` is the median paired ratio over eager, `speedup_low`/`high` its 95 % bootstrap interval,
    `noise` the half-width of the same ratio for eager against itself."""

    kernel_ms: float
    eager_ms: float
    compile_ms: float | None = None
    speedup: float
    speedup_low: float
    speedup_high: float
    speedup_vs_compile: float | None = None
    speedup_vs_compile_low: float | None = None
    speedup_vs_compile_high: float | None = None
    rivals: tuple[Rival, ...] = ()
    roofline_ms: float | None = None
    roofline_fraction: float | None = None
    bound: Literal["memory", "arithmetic"] | None = None
    """What the roofline is made of."""
    bandwidth_gb_s: float | None = None
    """What memory gave at most in the rounds of this measurement."""
    kernel_mb: float | None = None
    eager_mb: float | None = None
    """Memory of a call at its peak: weights, inputs, outputs, temporaries, and what is kept between calls (packed weights)."""
    noise: float
    rounds: int
    cache: Literal["warm", "cold"] = "warm"
    threads: int = 1

    @property
    def faster(self) -> bool:
        """Faster than eager beyond doubt: the whole interval lies above 1."""
        return self.speedup_low > 1.0


class Heat(Frozen):
    """The share of wrong elements in each block of an output, row by row, along at most two of its axes."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    rows: int
    columns: int
    share: tuple[float, ...]


class Mismatch(Frozen):
    """Where the numbers differ, for the next attempt: which output, how many elements, which region, a few values."""

    output: str
    wrong: int
    total: int
    region: str
    worst_error: float | None = None
    bound: float | None = None
    samples: tuple[str, ...] = ()
    place: tuple[int, ...] = ()
    """The first wrong element; empty where an output is not compared element by element."""
    trial: str = ""
    heat: Heat | None = None
    """Where the error lies, as a map."""


class Trials(Frozen):
    """What was run before the verdict was given."""

    seeds: int = 0
    distributions: tuple[str, ...] = ()
    shapes: int = 0
    noncontiguous: int = 0
    reference: str = ""


class SizeTiming(Frozen):
    """One measurement at other sizes than the task's own."""

    sizes: str
    kernel_ms: float
    eager_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float


class Sizes(Frozen):
    """For a task whose sizes vary: in which ranges, at which sizes nobody listed the kernel was tried, at which the reference itself
    has no answer, and a ratio for each size that was timed. `speedup` is the geometric mean of these and of the one at the task's own
    sizes."""

    ranges: str
    tried: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    timed: tuple[SizeTiming, ...] = ()
    speedup: float | None = None


class ProofGap(Frozen):
    """One access (or extent, or division) of a sketch: what may be wrong with it; `at` are sizes at which it certainly is."""

    line: int
    reason: str
    source: str = ""
    at: str = ""


class SizeProof(Frozen):
    """What was shown for every size in the declared ranges, not only for those that were tried: that accesses are in bounds, and that no
    two parallel iterations write one place. It is about the sketch that the kernel file carries, of which the trials show that it computes
    the same; `trusted_lines` read positions from data, which nothing but the trials can tell."""

    outcome: Literal["proved", "unproved", "refuted"]
    statement: str
    ranges: str = ""
    accesses: int = 0
    by_solver: int = 0
    """Of `accesses`: those that the index algebra alone did not show."""
    refuted: tuple[ProofGap, ...] = ()
    open: tuple[ProofGap, ...] = ()
    trusted_lines: tuple[int, ...] = ()


class Build(Frozen):
    """The build's failure, distilled: the first error and the lines around it."""

    message: str
    excerpt: str = ""


class KernelFigures(Frozen):
    """What the compiler says of one launched kernel, and how much of a core it can fill."""

    name: str
    registers: int | None = None
    shared_memory: int | None = None
    spills: int | None = None
    threads: int | None = None
    """Threads in a block."""
    blocks: int | None = None
    """Blocks in the grid of the launch."""
    occupancy: float | None = None
    limiter: str | None = None


class CompiledFor(Frozen):
    """What the compiler of a target that is not at hand says of a kernel; the time is a prediction, never a measurement. With
    several launches: the most registers and shared memory, all spills, the lowest occupancy and what limits it. `stage` is how far the
    compiler went where it says so: "binary", or "linalg" where what makes a binary of that is not installed."""

    registers: int | None = None
    shared_memory: int | None = None
    spills: int | None = None
    occupancy: float | None = None
    limiter: str | None = None
    predicted_ms: float | None = None
    architecture: str = ""
    compiler: str = ""
    stage: str = ""
    kernels: tuple[KernelFigures, ...] = ()
    predicted_error: float | None = None
    """Relative, either way, where the time was predicted from counts."""
    speed_of_light_ms: float | None = None
    """What the task's bytes and operations take at the rates of the target's sheet."""
    launches: tuple[LaunchFigures, ...] = ()
    """Profiles of the launches of one call, where the compiled code was executed and counted here."""


FAILURE_FIELDS = {"mismatch": {Status.wrong_values, Status.wrong_shape, Status.wrong_dtype}, "build": {Status.build_failed}}
"""Which failed statuses may carry which detail."""


class Verdict(Frozen):
    """The judge's answer about one kernel for one task."""

    status: Status
    reason: str
    task: str = ""
    task_hash: str = ""
    kernel_hash: str = ""
    dsl: str = "python"
    target: str = "cpu"
    execution: Execution = "native"
    sandbox: str = "none"
    track: Track = "pure"
    library_calls: tuple[str, ...] = ()
    trials: Trials = Field(default_factory=Trials)
    sizes: Sizes | None = None
    proof: SizeProof | None = None
    timing: Timing | None = None
    mismatch: Mismatch | None = None
    build: Build | None = None
    compiled_for: dict[str, CompiledFor] | None = None
    task_flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    stderr_tail: str = ""
    seconds: float = 0.0
    phases: dict[str, float] = Field(default_factory=dict)
    """Where these seconds went, in the order of the phases."""

    @model_validator(mode="after")
    def _only_the_fields_of_its_status(self) -> Self:
        if not self.reason:
            raise ValueError("a verdict needs a reason")
        if self.timing and self.status is not Status.correct:
            raise ValueError(f"a verdict with status {self.status} has no timing")
        for name, statuses in FAILURE_FIELDS.items():
            if getattr(self, name) is not None and self.status not in statuses:
                raise ValueError(f"a verdict with status {self.status} has no {name}")
        if self.timing and self.execution not in ("native", "device"):
            raise ValueError("a speed is reported only from real execution, never from an interpreter or emulator")
        return self

    @property
    def ok(self) -> bool:
        return self.status is Status.correct
