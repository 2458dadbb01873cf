"""How the taps of a strided, dilated or transposed convolution along one axis become windows of plain, dense tiles.

A convolution reads input position `o * stride + k * dilation - padding` for output o and tap k. Taps with one remainder
`k % stride` (a *phase*) read one strided tile, at offsets that are multiples of the dilation: inside a phase the convolution is
a plain one. A transposed convolution adds input i into output `i * stride + k * dilation - padding`. Its taps of one phase
reach outputs `stride * q + phase * dilation - padding` with q = i + (k // stride) * dilation: a plain convolution again, taps
backwards, and with stride and dilation coprime every output belongs to exactly one phase.
So both become: for each phase, dense tiles and taps at regular offsets; nothing is scattered.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.design.contraction.blocks import Number, add, ceil_div, mul, op
from kernelwright.sketch.nodes import Index


@dataclass(frozen=True)
class Line:
    """One spatial axis of a convolution. Positions `t` run over the output (or, transposed, over the output of one phase)."""

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    out: int
    transposed: bool = False

    @property
    def phases(self) -> int:
        """How many remainders there are (loop `phase` over this range)."""
        return self.stride if self.transposed else min(self.stride, self.kernel)

    @property
    def taps(self) -> int:
        """The most taps that a phase has."""
        return ceil_div(self.kernel, self.stride)

    @property
    def begin(self) -> int:
        """First position t."""
        if not self.transposed:
            return 0
        return min((self.padding - phase * self.dilation + self.stride - 1) // self.stride for phase in range(self.stride))

    @property
    def end(self) -> int:
        """One past the last position t."""
        return (self.out - 1 + self.padding) // self.stride + 1 if self.transposed else self.out

    @property
    def reach(self) -> int:
        """Elements that a window needs beyond its number of positions."""
        return (self.taps - 1) * self.dilation

    def tap_count(self, phase: Number) -> Index:
        """Taps of a phase: those of `phase, phase + stride, …` below `kernel`."""
        return op("//", op("-", self.kernel + self.stride - 1, phase), self.stride)

    def tap(self, phase: Number, t: Number) -> Index:
        """The kernel position of the t-th tap of a phase."""
        return add(phase, mul(t, self.stride))

    def tile_start(self, position: Number, phase: Number) -> Index:
        """Where the input tile of a window at `position` starts; it has step `tile_step`."""
        if self.transposed:
            return add(position, -self.reach)
        return add(mul(position, self.stride), mul(phase, self.dilation), -self.padding)

    @property
    def tile_step(self) -> int:
        return 1 if self.transposed else self.stride

    def offset(self, t: Number) -> Index:
        """Where in the tile the t-th tap of a phase reads."""
        if self.transposed:
            return add(self.reach, mul(t, -self.dilation))
        return mul(t, self.dilation)

    def out_start(self, position: Number, phase: Number) -> Index:
        """Output position that belongs to `position`; neighbours are `out_step` apart."""
        if self.transposed:
            return add(mul(position, self.stride), mul(phase, self.dilation), -self.padding)
        return add(position, 0)

    @property
    def out_step(self) -> int:
        return self.stride if self.transposed else 1
