"""The Target noun and where its figures come from: a name (or "cpu") in, one frozen sheet out.

Figures are in base units: bytes, bytes/s, FLOP/s. Sheets are data: an unknown GPU is added as one TOML file in any folder that
`KERNELWRIGHT_TARGETS` names, and no code asks which names exist.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from kernelwright.core.errors import ConfigError

SHEETS = Path(__file__).parent / "sheets"
KINDS = ("cpu", "cuda", "rocm", "ascend")


@dataclass(frozen=True)
class Target:
    """What the hardware can do at most. `origin` says how the figures were had: measured, estimated, or the vendor's."""

    name: str
    kind: str
    title: str
    cores: int
    bandwidth: float
    peak_flops: dict[str, float] = field(default_factory=dict)
    read_bandwidth: float = 0.0
    write_bandwidth: float = 0.0
    """Of memory that is only read, or only written, where that is less than the two together; 0: as much."""
    level_bandwidth: dict[str, float] = field(default_factory=dict)
    """Of reading from each level of caches, by the names of `caches`."""
    call_seconds: float = 0.0
    wake_seconds: float = 0.0
    """Of a call from Python into C that does nothing, and of waking all threads of a CPU for a loop; 0: not measured."""
    last_level_cache: int = 0
    caches: dict[str, int] = field(default_factory=dict)
    shared_memory: int = 0
    """Per core (multiprocessor, compute unit); on an NPU the unified buffer of a vector core."""
    shared_memory_per_block: int = 0
    """What one block may have at most; 0 means as much as the core has."""
    registers: int = 0
    """32-bit registers per core."""
    registers_per_thread: int = 255
    memory: int = 0
    arch: str = ""
    features: tuple[str, ...] = ()
    threads_per_core: int = 1
    blocks_per_core: int = 32
    warp: int = 32
    origin: str = "vendor"
    source: str = ""

    @property
    def threaded(self) -> bool:
        """Whether its cores run warps of threads that share registers: an NPU's do not, so occupancy means nothing there."""
        return self.kind != "ascend"

    def peak(self, dtype: str = "float32") -> float:
        """FLOP/s for a dtype; one that the sheet does not name runs at the rate of float32."""
        return self.peak_flops.get(dtype) or self.peak_flops.get("float32") or 0.0

    @property
    def cache_bandwidth(self) -> float:
        """Of the fastest cache; 0 where the sheet does not say."""
        return max(self.level_bandwidth.values(), default=0.0)

    def memory_seconds(self, read: float, written: float) -> float:
        """What so many bytes take at least: together, and each way by itself (a sum cannot use the way back to memory)."""
        ways = (read + written, self.bandwidth), (read, self.read_bandwidth), (written, self.write_bandwidth)
        return max((moved / rate for moved, rate in ways if rate), default=0.0)

    @classmethod
    def remembered(cls, sheet: dict[str, Any]) -> Target:
        """A sheet as a run wrote it down; what this version does not know any more is left out."""
        known = {item.name for item in fields(cls)}
        kept: dict[str, Any] = {key: value for key, value in sheet.items() if key in known}
        return cls(**{**kept, "features": tuple(kept.get("features", ()))})

    @classmethod
    def host(cls, *, measure: bool = False) -> Target:
        """The CPU of this machine: measured figures when they are cached (or `measure` asks for them), a careful estimate
        otherwise."""
        from kernelwright.target.cpu import describe_host

        return describe_host(measure=measure)

    @classmethod
    def load(cls, name: str) -> Target:
        """A target by name; "cpu" is this machine's processor, "auto" its GPU where it has one."""
        if name == "cpu":
            return cls.host()
        if name == "auto":
            from kernelwright.target.attached import attached

            return attached() or cls.host()
        files = _sheet_files()
        if name not in files:
            close = difflib.get_close_matches(name, ["cpu", *files], n=1)
            hint = f"; did you mean {close[0]}?" if close else "."
            raise ConfigError(f"there is no target {name!r}{hint} Known are: {', '.join(['cpu', *sorted(files)])}.")
        return read_sheet(files[name])


def known_targets() -> tuple[str, ...]:
    """All names that `Target.load` understands."""
    return ("cpu", *sorted(_sheet_files()))


def load_sheets() -> dict[str, Target]:
    """All sheets by name, the user's included."""
    return {name: read_sheet(path) for name, path in _sheet_files().items()}


def read_sheet(path: Path) -> Target:
    """One TOML sheet. A wrong key is an error with the file's name: a silently ignored figure would be a wrong roofline."""
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text())
        data.setdefault("name", path.stem)
        data["features"] = tuple(data.get("features", ()))
        if not data.get("source"):
            raise ValueError("a sheet must say where its figures come from (source)")
        if data.get("kind") not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}")
        return Target(**data)
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(f"{path}: not a target sheet: {error}") from error


def _sheet_files() -> dict[str, Path]:
    """Sheets by name; a folder of the user comes last and so overrides ours."""
    folders = [SHEETS, *(Path(part) for part in os.environ.get("KERNELWRIGHT_TARGETS", "").split(os.pathsep) if part)]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}
