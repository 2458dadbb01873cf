"""Builds whole sketches around one contraction, with plain loads and a plain store, so that a schedule can be run by itself."""

from __future__ import annotations

import types
from dataclasses import replace

import torch

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction import (
    AttentionProblem,
    ConvProblem,
    GemmProblem,
    lower_attention,
    lower_conv,
    lower_gemm,
)
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import DType, Int, Sketch, Tensor
from kernelwright.target import Capabilities, Target

DTYPES = {
    torch.float32: DType.f32,
    torch.float64: DType.f64,
    torch.float16: DType.f16,
    torch.bfloat16: DType.bf16,
    torch.int8: DType.i8,
    torch.int32: DType.i32,
    torch.int64: DType.i64,
}
ACCUMULATE = {DType.f16: DType.f32, DType.bf16: DType.f32, DType.i8: DType.i32}


DESKTOP = Capabilities.of(
    Target("desktop", "cpu", "a small desktop", 2, 3e10, {"float32": 2e11}, caches={"L1d": 32 << 10, "L2": 1 << 20})
)


def machine(**figures: object) -> Capabilities:
    """The desktop with other figures."""
    return replace(DESKTOP, **figures)  # type: ignore[arg-type]


def declare(name: str, tensor: torch.Tensor, position: int, constant: bool = False) -> Tensor:
    role, source = ("param", name) if constant else ("input", str(position))
    return Tensor(name, tuple(Int(e) for e in tensor.shape), DTYPES[tensor.dtype], role, source)


def loader(tensor: Tensor, order: tuple[int, ...] | None = None, broadcast: frozenset[int] = frozenset()) -> Prologue:
    """Loads from a declared tensor; logical axis i is axis order[i] of memory. `broadcast` are logical axes the tensor
    lacks."""

    def load(axes: tuple[nodes.Axis, ...], pad: float | int = 0) -> nodes.Tile:
        axes = tuple(a for i, a in enumerate(axes) if i not in broadcast)
        wanted = order or tuple(range(len(axes)))
        region: list[nodes.Axis] = [axes[0]] * len(axes)
        for logical, memory in enumerate(wanted):
            region[memory] = axes[logical]
        tile: nodes.Tile = nodes.Load(tensor.name, tuple(region), pad)
        spans_memory = [m for m in range(len(axes)) if isinstance(region[m], nodes.Span)]
        spans_logical = [m for m in wanted if isinstance(region[m], nodes.Span)]
        turn = tuple(spans_memory.index(m) for m in spans_logical)
        if turn != tuple(range(len(turn))):
            tile = nodes.Permute(tile, turn)
        return nodes.Cast(tile, DType.f32) if tensor.dtype in (DType.f16, DType.bf16) else tile

    return load


def storing(name: str, dtype: DType, computed: DType) -> Epilogue:
    def finish(tile: nodes.Tile, axes: tuple[nodes.Axis, ...]) -> list[nodes.Statement]:
        return [nodes.Store(name, axes, tile if dtype is computed else nodes.Cast(tile, dtype))]

    return finish


def wrap(piece: ScheduleCandidate, tensors: list[Tensor], shape: tuple[int, ...], dtype: DType) -> Sketch:
    out = Tensor("out", tuple(Int(e) for e in shape), dtype, "output")
    return Sketch("contraction", "", (), piece.tunables, (*tensors, out, *piece.tensors), piece.kernels, '"out"')


def gemm_sketches(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    turn_a: bool = False,
    turn_b: bool = False,
    constant: bool = False,
    machine: Capabilities = DESKTOP,
    relu: bool = False,
    **facts: object,
) -> list[Sketch]:
    """Sketches for a @ b; with `turn_*` the tensors given lie as [..., k, m] and [..., n, k]."""
    at, bt = declare("a", a, 0), declare("b", b, 1, constant)
    *batch_a, m, k = a.mT.shape if turn_a else a.shape
    *batch_b, _, n = b.mT.shape if turn_b else b.shape
    batch = tuple(torch.broadcast_shapes(tuple(batch_a), tuple(batch_b)))
    dtype = ACCUMULATE.get(at.dtype, at.dtype)
    problem = GemmProblem(
        m,
        n,
        k,
        batch,
        dtype,
        "m" if turn_a else "k",
        "k" if turn_b else "n",
        b_constant=constant,
        **facts,  # type: ignore[arg-type]
    )

    def order(rank: int, turn: bool) -> tuple[int, ...]:
        return (*range(rank - 2), rank - 1, rank - 2) if turn else tuple(range(rank))

    lacking_a = frozenset(range(len(batch) - len(batch_a)))
    lacking_b = frozenset(range(len(batch) - len(batch_b)))
    load_a = loader(at, order(a.dim(), turn_a), lacking_a)
    load_b = loader(bt, order(b.dim(), turn_b), lacking_b)
    out_dtype = DType.i32 if at.dtype is DType.i8 else at.dtype
    store = storing("out", out_dtype, dtype)

    def finish(tile: nodes.Tile, axes: tuple[nodes.Axis, ...]) -> list[nodes.Statement]:
        return store(nodes.Binary("maximum", tile, nodes.Number(0.0)) if relu else tile, axes)

    pieces = lower_gemm(problem, load_a, load_b, finish, Names({"a", "b", "out"}), machine)
    return [wrap(piece, [at, bt], problem.shape, out_dtype) for piece in pieces]


def conv_problem(x: torch.Tensor, w: torch.Tensor, **numbers: object) -> ConvProblem:
    rank = x.dim() - 2

    def each(name: str, default: int) -> tuple[int, ...]:
        value = numbers.get(name, default)
        return (value,) * rank if isinstance(value, int) else tuple(value)  # type: ignore[arg-type]

    groups = int(numbers.get("groups", 1))  # type: ignore[call-overload]
    transposed = bool(numbers.get("transposed", False))
    out_channels = w.shape[1] * groups if transposed else w.shape[0]
    dtype = ACCUMULATE.get(DTYPES[x.dtype], DTYPES[x.dtype])
    return ConvProblem(
        x.shape[0], x.shape[1], out_channels, tuple(x.shape[2:]), tuple(w.shape[2:]), each("stride", 1), each("padding", 0),
        each("dilation", 1), groups, transposed, each("output_padding", 0), dtype,
    )  # fmt: skip


def conv_sketches(x: torch.Tensor, w: torch.Tensor, machine: Capabilities = DESKTOP, **numbers: object) -> list[Sketch]:
    problem = conv_problem(x, w, **numbers)
    xt, wt = declare("x", x, 0), declare("w", w, 1, constant=True)
    finish = storing("out", xt.dtype, problem.dtype)
    pieces = lower_conv(problem, loader(xt), loader(wt), finish, Names({"x", "w", "out"}), machine)
    return [wrap(piece, [xt, wt], problem.shape, xt.dtype) for piece in pieces]


def attention_sketches(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, **facts: object
) -> list[Sketch]:
    tensors = [declare("q", q, 0), declare("k", k, 1), declare("v", v, 2)]
    dtype = ACCUMULATE.get(tensors[0].dtype, tensors[0].dtype)
    load_mask = None
    if mask is not None:
        tensors.append(declare("mask", mask, 3))
        load_mask = loader(tensors[3], broadcast=frozenset(range(q.dim() - mask.dim())))
    problem = AttentionProblem(
        tuple(q.shape[:-3]), q.shape[-3], k.shape[-3], q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1],
        masked=mask is not None, dtype=dtype, **facts,  # type: ignore[arg-type]
    )  # fmt: skip
    loaders = [loader(t) for t in tensors[:3]]
    finish = storing("out", tensors[0].dtype, dtype)
    names = Names({"q", "k", "v", "mask", "out"})
    pieces = lower_attention(problem, loaders[0], loaders[1], loaders[2], load_mask, finish, names, DESKTOP)
    return [wrap(piece, tensors, problem.shape, tensors[0].dtype) for piece in pieces]


def compiled(sketch: Sketch, x: torch.Tensor, **parameters: torch.Tensor) -> torch.Tensor:
    """What the C++ kernel of a sketch makes of an input."""
    space = types.ModuleType("kernel")
    exec(compile(lower(sketch), "kernel.py", "exec"), space.__dict__)
    model = space.ModelNew()
    model.load_state_dict(parameters)
    result: torch.Tensor = model(x)
    return result
