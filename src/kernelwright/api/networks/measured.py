"""What is found out about one network at one batch, as data: written by `worker`, read by `bench` and `report`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Contender:
    """One way to run the network. `ratio` is how many times as fast as eager it is, `first` what its first call took, in seconds."""

    name: str
    right: bool = False
    why: str = ""
    first: float = 0.0
    seconds: float = 0.0
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0


@dataclass
class Measured:
    """A network at one batch. `floor` is the least time of its products, each with its own bytes and operations."""

    name: str
    batch: int
    parameters: int = 0
    floor: float = 0.0
    eager: float = 0.0
    noise: float = 0.0
    """What eager seems to gain over itself in the same rounds."""
    quiet: bool = True
    graphs: int = 0
    used: int = 0
    """Graphs of Dynamo, and how many of them run on ours."""
    explained: str = ""
    failed: str = ""
    contenders: list[Contender] = field(default_factory=list)

    def of(self, name: str) -> Contender | None:
        """The contender of that name that ran and was right."""
        return next((c for c in self.contenders if c.name == name and c.right and c.ratio), None)

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def read(cls, found: dict[str, Any]) -> Measured:
        """From JSON."""
        return cls(**{**found, "contenders": [Contender(**c) for c in found["contenders"]]})
