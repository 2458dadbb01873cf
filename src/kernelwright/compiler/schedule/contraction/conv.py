"""Convolutions of 1, 2 and 3 spatial axes, plain and transposed: all schedules that suit one, best first.

  plain.py       products of weights with windows of a padded tile: any kernel, stride, dilation
  transposed.py  strided transposed ones: all output phases from one input tile
  winograd.py    3 x 3 with a third of the multiplications; winograd_line.py: the same along one axis (points.py: transforms)
  depthwise.py   one channel in a group: nothing to multiply as matrices

In: a ConvProblem, loaders, the epilogue. Out: ScheduleCandidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernelwright.compiler.graph.problems import ConvProblem
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction.depthwise import lower_depthwise
from kernelwright.compiler.schedule.contraction.direct_conv import PlainConv
from kernelwright.compiler.schedule.contraction.taps import Line
from kernelwright.compiler.schedule.contraction.transposed import TransposedConv
from kernelwright.compiler.schedule.contraction.winograd import lower_winograd
from kernelwright.compiler.schedule.contraction.winograd_line import lower_line
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Kernel
from kernelwright.target import Capabilities

GRAINS = {0.5: "finer", 2.0: "coarser"}
"""Sizes of tiles, beside the one that should be best, that a search may measure."""


def lower_conv(
    problem: ConvProblem, load_x: Prologue, load_w: Prologue, finish: Epilogue, names: Names, machine: Capabilities,
    whole: bool = False,
) -> list[ScheduleCandidate]:  # fmt: skip
    """All schedules that suit the problem, the one that should be fastest first. `whole`: what follows reduces the channels (of a single
    group), so every tile holds exactly all of them."""

    if 0 in problem.shape:
        return [ScheduleCandidate((Kernel(names.fresh("conv"), ()),))]
    lines = lines_of(problem)

    def depthwise(machine: Capabilities) -> ScheduleCandidate:
        return lower_depthwise(problem, lines, load_x, load_w, finish, names, machine)

    def plain(machine: Capabilities) -> ScheduleCandidate:
        return PlainConv(problem, lines, load_x, load_w, finish, names, machine, whole).piece()

    def phased(machine: Capabilities) -> ScheduleCandidate | None:
        family = TransposedConv(problem, lines, load_x, load_w, finish, names, machine, whole)
        return family.piece() if family.applies() else None

    fixed = all(isinstance(extent, int) for extent in problem.spatial)

    def winograd(machine: Capabilities) -> ScheduleCandidate | None:
        return None if not fixed else lower_winograd(problem, lines, load_x, load_w, finish, names, machine, whole)

    def line(machine: Capabilities) -> ScheduleCandidate | None:
        return None if not fixed else lower_line(problem, lines, load_x, load_w, finish, names, machine, whole)

    families: list[Callable[[Capabilities], ScheduleCandidate | None]] = [plain, phased, winograd, line]
    if not whole and problem.channels == problem.groups and problem.out_channels // problem.groups <= 4:
        families.insert(0, depthwise)
    made = [(piece, family) for family in families if (piece := family(machine)) is not None]
    made.sort(key=lambda item: item[0].cost)
    family = made[0][1]
    rough = None if not fixed else lower_winograd(problem, lines, load_x, load_w, finish, names, machine, whole, columns=4)
    others = [replace(rough, spends="rounding")] if rough is not None else []
    for grain, what in GRAINS.items() if machine.vectors else ():
        piece = family(replace(machine, grain=grain))
        note = f"convolution {problem.channels} -> {problem.out_channels}: {what} tiles"
        others += [replace(piece, notes=(note,))] if piece is not None else []
    families_first = max(piece.cost for piece, _ in made)  # whoever needs another because the best is wrong needs another kind
    return [*(piece for piece, _ in made), *(replace(piece, cost=max(piece.cost, families_first)) for piece in others)]


def lines_of(problem: ConvProblem) -> tuple[Line, ...]:
    """Each spatial axis with its numbers together."""
    numbers = zip(
        problem.spatial, problem.kernel, problem.stride, problem.padding, problem.dilation, problem.out_spatial, strict=True
    )
    return tuple(Line(size, k, s, p, d, out, problem.transposed) for size, k, s, p, d, out in numbers)
