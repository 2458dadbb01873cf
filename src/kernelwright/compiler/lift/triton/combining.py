"""Reductions and scans with a combining function of the kernel's own (Welford's variance, linear recurrences): written out as a tree.

In: a tt.reduce or tt.scan whose region is none of the usual functions. Out: values, one for each result. Triton does not say in which order
it combines; so the function must be associative. That is tried on numbers before any order is chosen, and refused where it is not so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelwright.compiler.lift.triton.elements import dtype_of
from kernelwright.compiler.lift.triton.ttir import Block, Op
from kernelwright.compiler.lift.values import Data, Value
from kernelwright.sketch import nodes
from kernelwright.sketch.interpret.operations import TORCH_DTYPE
from kernelwright.sketch.nodes import DType, Int, Tile

if TYPE_CHECKING:
    from kernelwright.compiler.lift.triton.reader import Reader

TRIED = 64
"""Triples of numbers on which a function is tried."""
TOLERANCE = 1e-3


def reduce(reader: Reader, op: Op, operands: Sequence[Value], label: str) -> list[Value]:
    """Neighbours are combined until one element is left."""
    block = _associative(reader, op)
    number = op.attribute("axis")
    tiles = _whole(reader, op, operands)
    shape = tiles[0].shape
    while shape[number] > 1:
        shape = (*shape[:number], shape[number] // 2, *shape[number + 1 :])
        paired = tuple(map(Int, (*shape[: number + 1], 2, *shape[number + 1 :])))
        sides: list[list[Data]] = [[], []]
        for tile in tiles:
            pairs = reader.program.bind(Data(nodes.Reshape(tile.node, paired), (), (), tile.dtype), label)
            for side, found in enumerate(sides):
                region = tuple(nodes.At(Int(side)) if k == number + 1 else nodes.Span(Int(0), e) for k, e in enumerate(paired))
                found.append(Data(nodes.Part(pairs.node, region), shape, shape, tile.dtype))
        tiles = _combined(reader, block, sides[0], sides[1], label)
    rest = (*shape[:number], *shape[number + 1 :])
    return [Data(nodes.Squeeze(tile.node, number), rest, rest, tile.dtype) for tile in tiles]


def scan(reader: Reader, op: Op, operands: Sequence[Value], label: str) -> list[Value]:
    """Each element takes in what lies 1, 2, 4 … before it (behind it, in a reverse scan)."""
    block = _associative(reader, op)
    number = op.attribute("axis")
    tiles = _whole(reader, op, operands)
    shape = tiles[0].shape
    extent, backwards = shape[number], "reverse = true" in op.text
    for distance in (1 << k for k in range((extent - 1).bit_length())):
        place: Tile = nodes.Reshape(
            nodes.Iota(Int(extent)), tuple(Int(extent if k == number else 1) for k in range(len(shape)))
        )
        if backwards:
            before: Tile = nodes.Binary("minimum", nodes.Binary("add", place, nodes.Number(distance)), nodes.Number(extent - 1))
            there: Tile = nodes.Binary("lt", place, nodes.Number(extent - distance))
        else:
            before = nodes.Binary("maximum", nodes.Binary("sub", place, nodes.Number(distance)), nodes.Number(0))
            there = nodes.Binary("ge", place, nodes.Number(distance))
        indices = nodes.Expand(before, tuple(map(Int, shape)))
        moved = [
            reader.program.bind(Data(nodes.Take(tile.node, indices, number), shape, shape, tile.dtype), label) for tile in tiles
        ]
        combined = _combined(reader, block, moved, tiles, label)
        tiles = [
            reader.program.bind(Data(nodes.Where(there, new.full(), old.node), shape, shape, old.dtype), label)
            for new, old in zip(combined, tiles, strict=True)
        ]
    return list(tiles)


def _whole(reader: Reader, op: Op, operands: Sequence[Value]) -> list[Data]:
    """The operands as tiles by name, of the types that the region works on."""
    program, found = reader.program, []
    for value, (_, kind) in zip(operands, op.regions[0][0].arguments, strict=False):
        data = program.as_data(value, dtype_of(program, kind))
        found.append(program.bind(Data(data.full(), data.shape, data.shape, data.dtype), "of"))
    return found


def _combined(reader: Reader, block: Block, left: Sequence[Data], right: Sequence[Data], label: str) -> list[Data]:
    """The region's function of two tuples of tiles, each result under a name."""
    for (name, _), value in zip(block.arguments, (*left, *right), strict=True):
        reader.env[name] = value
    reader.ops(block.ops[:-1])
    shape = left[0].shape
    found = []
    for name, own in zip(block.ops[-1].operands, left, strict=True):
        data = reader.program.as_data(reader.env[name], own.dtype)
        whole = data.node if data.actual == shape else nodes.Expand(data.node, tuple(map(Int, shape)))
        found.append(reader.program.bind(Data(whole, shape, shape, own.dtype), label))
    return found


def _associative(reader: Reader, op: Op) -> Block:
    """The region, if `f(f(a, b), c)` is `f(a, f(b, c))` on random numbers between 0.5 and 2."""
    import torch

    from kernelwright.sketch.interpret import interpreter

    program = reader.program
    (block,) = op.regions[0]
    kinds = [dtype_of(program, kind) for _, kind in block.arguments[: len(block.arguments) // 2]]
    names = [[f"{letter}{k}" for k in range(len(kinds))] for letter in "abc"]
    tensors = [
        nodes.Tensor(name, (Int(TRIED),), kinds[k], "input", str(number * len(kinds) + k))
        for number, row in enumerate(names)
        for k, name in enumerate(row)
    ]
    whole = (nodes.Span(Int(0), Int(TRIED)),)
    env, line = dict(reader.env), program.line
    with program.block() as body:
        a, b, c = (
            [
                program.bind(Data(nodes.Load(name, whole), (TRIED,), (TRIED,), kind), name)
                for name, kind in zip(row, kinds, strict=True)
            ]
            for row in names
        )
        first = _combined(reader, block, _combined(reader, block, a, b, "t"), c, "t")
        second = _combined(reader, block, a, _combined(reader, block, b, c, "t"), "t")
        for side, results in (("left", first), ("right", second)):
            for k, tile in enumerate(results):
                tensors.append(nodes.Tensor(f"{side}{k}", (Int(TRIED),), kinds[k], "output"))
                body.append(nodes.Store(f"{side}{k}", whole, tile.node))
    reader.env, program.line = env, line
    returns = json.dumps([f"{side}{k}" for side in ("left", "right") for k in range(len(kinds))])
    tried = nodes.Sketch("tried", "", (), (), tuple(tensors), (nodes.Kernel("tried", tuple(body)),), returns)
    drawn = torch.Generator().manual_seed(0)
    inputs = [
        (torch.rand(TRIED, generator=drawn) * 1.5 + 0.5).to(TORCH_DTYPE[kind])
        if kind not in (DType.bool,)
        else torch.rand(TRIED, generator=drawn) > 0.5
        for _ in "abc"
        for kind in kinds
    ]
    gave = list(interpreter.call(tried, inputs, {}))
    for one, two in zip(gave[: len(kinds)], gave[len(kinds) :], strict=True):
        if not torch.allclose(one.double(), two.double(), rtol=TOLERANCE, atol=TOLERANCE):
            raise program.refuse(
                "a combining function of its own that is not associative: what it gives depends on an order nobody fixed"
            )
    return block
