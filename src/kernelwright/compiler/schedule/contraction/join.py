"""Joins the graph to the contraction families: operands become loaders, what follows becomes the epilogue.

An operand that is memory seen from another side, or cheap to compute, is loaded lazily; a costly one is materialized first
(`MustMaterialize`), because a product reads its operands many times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule.candidate import CandidateCost
from kernelwright.compiler.schedule.contraction import (
    AttentionProblem,
    ConvProblem,
    GemmProblem,
    lower_attention,
    lower_conv,
    lower_gemm,
)
from kernelwright.compiler.schedule.fusion import EpilogueWriter, NotFusible, Operand

if TYPE_CHECKING:
    from kernelwright.compiler.schedule.candidate import ScheduleCandidate
    from kernelwright.compiler.schedule.sketch_builder import SketchBuilder


def lower_contraction(builder: SketchBuilder, contraction: v.Contraction, end: v.Value) -> None:
    """Adds the kernels that compute `end`, the last value of the contraction's epilogue."""
    operands = [_operand(builder, x, contraction) for x in contraction.operands]
    tracer = builder.tracer(pinned=(end,), slots=(contraction,))
    problem = contraction.problem
    following = EpilogueWriter(tracer, contraction, end, builder.placed[id(end)], problem.dtype, builder.view)
    finish = following.epilogue(builder.names)
    loaders = [x.loader(builder.names) for x in operands]
    machine = builder.capabilities
    pieces: list[ScheduleCandidate]
    if isinstance(problem, GemmProblem):
        a, b = operands
        rank = len(problem.batch)
        problem = replace(
            problem,
            operand=max((x.dtype for x in contraction.operands), key=lambda dtype: dtype.size),
            a_inner="m" if a.inner_axis() == rank else "k",
            b_inner="k" if b.inner_axis() == rank else "n",
            a_constant=a.constant(builder.fixed),
            b_constant=b.constant(builder.fixed),
            keeps_b=builder.copies_fit,
        )
        pieces = lower_gemm(problem, loaders[0], loaders[1], finish, builder.names, machine)
    elif isinstance(problem, ConvProblem):
        problem = replace(problem, weight_constant=operands[1].constant(builder.fixed))
        pieces = lower_conv(problem, loaders[0], loaders[1], finish, builder.names, machine, whole=following.folds)
    else:
        assert isinstance(problem, AttentionProblem)
        mask = loaders[3] if len(loaders) > 3 else None
        problem = replace(problem, operand=max((x.dtype for x in contraction.operands[:3]), key=lambda dtype: dtype.size))
        pieces = lower_attention(problem, loaders[0], loaders[1], loaders[2], mask, finish, builder.names, machine)
    key = repr(problem)
    piece = pieces[min(builder.choices.get(key, 0), len(pieces) - 1)]
    before = builder.candidate_costs.get(key, [CandidateCost(0.0, other.spends) for other in pieces])
    builder.candidate_costs[key] = [candidate.joined(other.cost) for candidate, other in zip(before, pieces, strict=False)]
    builder.tensors += piece.tensors
    builder.tunables += piece.tunables
    builder.steps += piece.kernels
    builder.notes += piece.notes
    builder.notes += [f"{kernel.name}: arranges parameters, made once" for kernel in piece.kernels if kernel.once]
    builder.cost += piece.cost


def _operand(builder: SketchBuilder, value: v.Value, contraction: v.Contraction) -> Operand:
    try:
        operand = Operand(builder.tracer(), value, builder.view)
    except NotFusible as e:
        raise MustMaterialize(value) from e
    if operand.costly() and id(value) not in builder.placed:
        raise MustMaterialize(value)
    return operand
