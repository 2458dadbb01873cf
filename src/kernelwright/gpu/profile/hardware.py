"""The figures of a device that a prediction needs. Rates are per multiprocessor and cycle, in lanes unless said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Latencies:
    """Cycles from an instruction to the first that may use its result."""

    arithmetic: float = 4.0
    special: float = 18.0
    double: float = 8.0
    matrix: float = 33.0
    exchange: float = 24.0
    shared: float = 26.0
    first_level: float = 34.0
    second_level: float = 260.0
    memory: float = 520.0
    barrier: float = 24.0


@dataclass(frozen=True)
class Hardware:
    """A GPU as the interval model sees it."""

    multiprocessors: int
    clock: float
    """Hz, sustained under load."""
    bandwidth: float
    """Bytes a second of the device's memory, attainable by a copy."""
    second_level_bandwidth: float
    """Bytes a second from the second level of caches to all multiprocessors."""
    second_level_bytes: int
    first_level_bytes: int
    """Of the first level and shared memory together, for a multiprocessor."""
    matrix_flops: Mapping[str, float] = field(default_factory=dict)
    """Per multiprocessor and cycle, by the type of the factors."""
    schedulers: int = 4
    float_lanes: int = 128
    integer_lanes: int = 64
    double_lanes: int = 2
    special_lanes: int = 16
    convert_lanes: int = 16
    memory_lanes: int = 32
    """Lanes whose addresses are taken in a cycle."""
    memory_bytes: int = 128
    """Of shared memory or the first level in a cycle."""
    launch_seconds: float = 2.5e-6
    latencies: Latencies = Latencies()


@dataclass(frozen=True)
class Resources:
    """Read off the compiled code: what decides how many blocks are resident."""

    blocks: int
    """Of a multiprocessor at most."""
    registers: int = 0
    spilled_bytes: int = 0
    shared_bytes: int = 0
    limiter: str = ""
