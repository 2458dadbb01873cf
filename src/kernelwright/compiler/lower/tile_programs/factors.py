"""What a product is made of and where its sums go, looked at before it is written.

Factors as they lie in memory: half floats that were widened before a product are multiplied as they are.

In: a block whose products take casts of fp16 or bf16 tiles to fp32. Out: the same block, its products on the tiles before their casts.
Matrix units multiply half floats exactly and add in fp32, so the result is the same; widened, they would be multiplied without them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from kernelwright.compiler.lower.tile_values import VIEWS, Block, Carried, LoopEffect, Value, made_of
from kernelwright.core.dtypes import HALVES
from kernelwright.sketch.nodes import DType


def multiplied_as_stored(block: Block) -> Block:
    """Changes the products of a block in place."""
    values = made_of(block.used())
    numbers = itertools.count(max((value.id for value in values), default=0) + 1)
    for value in values:
        if value.op != "gemm" or value.dtype is not DType.f32:
            continue
        a, b = (_stored(factor, numbers) for factor in value.args[:2])
        if a is not None and b is not None and a.dtype is b.dtype:
            value.args = (a, b, *value.args[2:])
    return block


def _stored(value: Value, numbers: Iterator[int]) -> Value | None:
    """The half tile of which a tile in fp32 is a cast, in the same view."""
    if value.dtype in HALVES:
        return value
    if value.kept:
        return None
    if value.op == "cast" and value.args[0].dtype in HALVES:
        return value.args[0]
    inner = _stored(value.args[0], numbers) if value.op in VIEWS else None
    return None if inner is None else replace(value, id=next(numbers), args=(inner,), dtype=inner.dtype)


def added_in_place(block: Block) -> dict[int, tuple[int, ...]]:
    """Products whose start is a carried tile that nothing else reads and that they become."""
    readers: dict[int, int] = {}
    seen: set[int] = set()

    def look(value: Value) -> None:
        readers[value.id] = readers.get(value.id, 0) + 1
        if value.id not in seen:
            seen.add(value.id)
            for operand in value.operands:
                look(operand)

    for value in block.used():
        look(value)
    found = [(item.final.id, item.inside.id) for item in _carried(block) if item.final is not None and _adds_to(item)]
    return {product: (start,) for product, start in found if readers.get(start) == 1 and readers.get(product) == 1}


def _carried(block: Block) -> Iterator[Carried]:
    for effect in block.effects:
        if isinstance(effect, LoopEffect):
            yield from effect.carried
            yield from _carried(effect.body)


def _adds_to(item: Carried) -> bool:
    """Whether a carried tile becomes a product that starts from it."""
    return item.final is not None and item.final.op == "gemm" and item.inside in item.final.args[2:]
