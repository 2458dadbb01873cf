"""How the taps of a strided, dilated or transposed convolution along one axis become windows of plain, dense tiles.

A convolution reads input position `o * stride + k * dilation - padding` for output o and tap k. Taps with one remainder
`k % stride` (a *phase*) read one strided tile, at offsets that are multiples of the dilation: inside a phase the convolution is
a plain one. A transposed convolution adds input i into output `i * stride + k * dilation - padding`. Seen from the output,
positions with one remainder of `o + padding` (again a phase) receive exactly those taps k with `k * dilation % stride` equal to
it: none, or those of one remainder modulo `stride / common factor`. So an output phase is a plain convolution of the input,
taps backwards. Both become: for each phase, dense tiles and taps at regular offsets; nothing is scattered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.compiler.graph.symbolic import Extent
from kernelwright.compiler.schedule.contraction.blocks import Number, add, ceil_div, mul, op
from kernelwright.sketch.nodes import Index


@dataclass(frozen=True)
class Line:
    """One spatial axis of a convolution. Positions `t` run over the output (or, transposed, over the output of one phase)."""

    size: Extent
    kernel: int
    stride: int
    padding: int
    dilation: int
    out: Extent
    transposed: bool = False

    @property
    def phases(self) -> int:
        """How many remainders there are (loop `phase` over this range)."""
        return self.stride if self.transposed else min(self.stride, self.kernel)

    @property
    def common(self) -> int:
        """What stride and dilation of a transposed convolution have in common; outputs in between receive nothing."""
        return math.gcd(self.stride, self.dilation) if self.transposed else 1

    @property
    def tap_step(self) -> int:
        """From one tap of a phase to the next, in the kernel."""
        return self.stride // self.common

    @property
    def window_step(self) -> int:
        """The same, in the input tile."""
        return self.dilation // self.common

    @property
    def taps(self) -> int:
        """The most taps that a phase has."""
        return ceil_div(self.kernel, self.tap_step)

    @property
    def begin(self) -> int:
        """First position t."""
        return self.padding // self.stride if self.transposed else 0

    @property
    def end(self) -> Extent:
        """One past the last position t."""
        return (self.out - 1 + self.padding) // self.stride + 1 if self.transposed else self.out

    @property
    def reach(self) -> int:
        """Elements that a window needs beyond its number of positions."""
        return (self.taps - 1) * self.window_step

    def first_tap(self, phase: Number) -> Index:
        """The first tap of a phase: its own number, unless a transposed convolution is also dilated."""
        if self.transposed and self.stride > 1 and self.dilation > 1:
            inverse = pow(self.window_step, -1, self.tap_step)
            return op("%", mul(op("//", phase, self.common), inverse), self.tap_step)
        return add(phase, 0)

    def tap_count(self, phase: Number) -> Index:
        """Taps of a phase: the first, the first + tap_step, … below `kernel`."""
        count = op("//", op("-", self.kernel + self.tap_step - 1, self.first_tap(phase)), self.tap_step)
        if self.common == 1:
            return count
        return mul(count, op("-", 1, op("min", 1, op("%", phase, self.common))))

    def tap(self, phase: Number, t: Number) -> Index:
        """The kernel position of the t-th tap of a phase."""
        return add(self.first_tap(phase), mul(t, self.tap_step))

    def tile_start(self, position: Number, phase: Number) -> Index:
        """Where the input tile of a window at `position` starts; it has step `tile_step`."""
        if self.transposed:
            behind = op("//", mul(self.first_tap(phase), self.dilation), self.stride)
            return op("-", add(position, -self.reach), behind)
        return add(mul(position, self.stride), mul(phase, self.dilation), -self.padding)

    @property
    def tile_step(self) -> int:
        return 1 if self.transposed else self.stride

    def offset(self, t: Number) -> Index:
        """Where in the tile the t-th tap of a phase reads."""
        if self.transposed:
            return add(self.reach, mul(t, -self.window_step))
        return mul(t, self.window_step)

    def out_start(self, position: Number, phase: Number) -> Index:
        """Output position that belongs to `position`; neighbours are `out_step` apart."""
        if self.transposed:
            return add(mul(position, self.stride), phase, -self.padding)
        return add(position, 0)

    @property
    def out_step(self) -> int:
        return self.stride if self.transposed else 1
