"""Convolutions of 1, 2 and 3 spatial axes, plain and transposed: all schedules that suit one, best first.

  plain.py       products of weights with windows of a padded tile: any kernel, stride, dilation
  transposed.py  strided transposed ones: all output phases from one input tile
  winograd.py    3 x 3 with a third of the multiplications; winograd_line.py: the same along one axis (points.py: transforms)
  depthwise.py   one channel in a group: nothing to multiply as matrices

In: a ConvProblem, loaders, the epilogue. Out: Pieces.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.design.contraction.depthwise import lower_depthwise
from kernelwright.design.contraction.plain import PlainConv
from kernelwright.design.contraction.problem import ConvProblem, Machine
from kernelwright.design.contraction.taps import Line
from kernelwright.design.contraction.transposed import TransposedConv
from kernelwright.design.contraction.winograd import lower_winograd
from kernelwright.design.contraction.winograd_line import lower_line
from kernelwright.design.hooks import Epilogue, Loader, Names, Piece
from kernelwright.sketch.nodes import Kernel


def lower_conv(
    problem: ConvProblem, load_x: Loader, load_w: Loader, finish: Epilogue, names: Names, machine: Machine | None = None,
    whole: bool = False,
) -> list[Piece]:  # fmt: skip
    """All schedules that suit the problem, the one that should be fastest first. `whole`: what follows reduces the channels (of a single
    group), so every tile holds exactly all of them."""
    machine = machine or Machine()
    if 0 in problem.shape:
        return [Piece((Kernel(names.fresh("conv"), ()),))]
    lines = lines_of(problem)
    pieces = []
    if not whole and problem.channels == problem.groups and problem.out_channels // problem.groups <= 4:
        pieces.append(lower_depthwise(problem, lines, load_x, load_w, finish, names, machine))
    pieces.append(PlainConv(problem, lines, load_x, load_w, finish, names, machine, whole).piece())
    phased = TransposedConv(problem, lines, load_x, load_w, finish, names, machine, whole)
    if phased.applies():
        pieces.append(phased.piece())
    for lower in (lower_winograd, lower_line):
        winograd = lower(problem, lines, load_x, load_w, finish, names, machine, whole)
        if winograd is not None:
            pieces.append(winograd)
    pieces.sort(key=lambda piece: piece.cost)
    rough = lower_winograd(problem, lines, load_x, load_w, finish, names, machine, whole, columns=4)
    return (
        pieces
        if rough is None
        else [pieces[0], replace(rough, cost=max(rough.cost, pieces[0].cost), price="rounding"), *pieces[1:]]
    )


def lines_of(problem: ConvProblem) -> tuple[Line, ...]:
    """Each spatial axis with its numbers together."""
    numbers = zip(
        problem.spatial, problem.kernel, problem.stride, problem.padding, problem.dilation, problem.out_spatial, strict=True
    )
    return tuple(Line(size, k, s, p, d, out, problem.transposed) for size, k, s, p, d, out in numbers)
