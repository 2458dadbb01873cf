"""What passes between the graph's lowering and the schedule families: lazily fused operands come in, finished statements go out.

A contraction family (schedule/contraction) knows tiles and loops but not what feeds or follows it. It asks a `Prologue` for the tile
of an operand at given spans, and hands its accumulator to an `Epilogue`, which returns the statements that finish and store it.
Both are made by compiler/schedule/fusion.py from the expression graph, so prologues and epilogues of any pointwise shape fuse for free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kernelwright.sketch import nodes


class Prologue(Protocol):
    """Makes the tile of an operand: one `Axis` (Span or At) per logical axis of the operand; the tile has one axis per Span, in
    order, and the operand's own dtype (f16/bf16 arrive cast to f32). Elements outside the operand read as `pad`."""

    def __call__(self, axes: tuple[nodes.Axis, ...], pad: float | int = 0) -> nodes.Tile: ...


Epilogue = Callable[[nodes.Tile, tuple[nodes.Axis, ...]], list[nodes.Statement]]
"""Receives the accumulator (bind it to a name first: a `Var`) and the spans of the output's logical axes that it covers (At for an
axis that the tile does not have), and returns the statements that finish and store it. Parts outside the output are dropped. An
epilogue that reduces the channels of a convolution must get all of them, and nothing else, in one tile."""


@dataclass(frozen=True)
class ScheduleCandidate:
    """A part of a sketch made by a family: declarations it needs, its kernels in order, and the seconds it should take. Some
    spend memory or rounding to save time (`spends`): these are never the first choice, but a search may take them."""

    kernels: tuple[nodes.Kernel, ...]
    tensors: tuple[nodes.Tensor, ...] = ()
    tunables: tuple[nodes.Tunable, ...] = ()
    cost: float = 0.0
    notes: tuple[str, ...] = ()
    spends: str = ""


@dataclass(frozen=True)
class CandidateCost:
    """A piece as whoever chooses sees it; of a problem that comes up several times, all of them together."""

    cost: float = 0.0
    spends: str = ""

    def joined(self, cost: float) -> CandidateCost:
        return CandidateCost(self.cost + cost, self.spends)
