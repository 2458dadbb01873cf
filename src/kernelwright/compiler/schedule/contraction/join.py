"""Joins the graph to the contraction families: operands become loaders, what follows becomes the epilogue.

An operand that is memory seen from another side, or cheap to compute, is loaded lazily; a costly one is realised first
(`MustRealise`), because a product reads its operands many times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.schedule.candidate import Offer
from kernelwright.compiler.schedule.contraction import (
    AttentionProblem,
    ConvProblem,
    GemmProblem,
    Machine,
    lower_attention,
    lower_conv,
    lower_gemm,
)
from kernelwright.compiler.schedule.fusion import Finish, NotFusible, Operand
from kernelwright.compiler.schedule.scalar import MustRealise

if TYPE_CHECKING:
    from kernelwright.compiler.schedule.candidate import Piece
    from kernelwright.compiler.schedule.sketch_builder import Workshop


def lower_contraction(workshop: Workshop, contraction: v.Contraction, end: v.Value) -> None:
    """Adds the kernels that compute `end`, the last value of the contraction's epilogue."""
    operands = [_operand(workshop, x, contraction) for x in contraction.operands]
    tracer = workshop.tracer(pinned=(end,), slots=(contraction,))
    problem = contraction.problem
    following = Finish(tracer, contraction, end, workshop.placed[id(end)], problem.dtype, workshop.view)
    finish = following.epilogue(workshop.names)
    loaders = [x.loader(workshop.names) for x in operands]
    machine = Machine(threads=workshop.cores, vectors=workshop.captured.dsl == "cpp")
    pieces: list[Piece]
    if isinstance(problem, GemmProblem):
        a, b = operands
        rank = len(problem.batch)
        problem = replace(
            problem,
            a_inner="m" if a.inner_axis() == rank else "k",
            b_inner="k" if b.inner_axis() == rank else "n",
            a_constant=a.constant(workshop.fixed),
            b_constant=b.constant(workshop.fixed),
            keeps_b=workshop.copies_fit,
        )
        pieces = lower_gemm(problem, loaders[0], loaders[1], finish, workshop.names, machine)
    elif isinstance(problem, ConvProblem):
        problem = replace(problem, weight_constant=operands[1].constant(workshop.fixed))
        pieces = lower_conv(problem, loaders[0], loaders[1], finish, workshop.names, machine, whole=following.folds)
    else:
        assert isinstance(problem, AttentionProblem)
        mask = loaders[3] if len(loaders) > 3 else None
        pieces = lower_attention(problem, loaders[0], loaders[1], loaders[2], mask, finish, workshop.names, machine)
    key = repr(problem)
    piece = pieces[min(workshop.choices.get(key, 0), len(pieces) - 1)]
    before = workshop.offered.get(key, [Offer(0.0, other.price) for other in pieces])
    workshop.offered[key] = [offer.joined(other.cost) for offer, other in zip(before, pieces, strict=False)]
    workshop.tensors += piece.tensors
    workshop.tunables += piece.tunables
    workshop.steps += piece.kernels
    workshop.notes += piece.notes
    workshop.notes += [f"{kernel.name}: arranges parameters, made once" for kernel in piece.kernels if kernel.once]
    workshop.cost += piece.cost


def _operand(workshop: Workshop, value: v.Value, contraction: v.Contraction) -> Operand:
    try:
        operand = Operand(workshop.tracer(), value, workshop.view)
    except NotFusible as e:
        raise MustRealise(value) from e
    if operand.costly() and id(value) not in workshop.placed:
        raise MustRealise(value)
    return operand
