"""Which tiles are kept and which are computed again where they are needed.

In: the blocks of a kernel. Out: `Value.kept` set, and how often each value is consumed. A value that several loop nests need, or
an inner loop needs again and again, is kept if computing it again costs more than reading it back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.lower.c_family.transpositions import transposes_sums, transposition_of
from kernelwright.compiler.lower.stacks import members, short_axes
from kernelwright.compiler.lower.tile_values import (
    MATERIALIZED,
    VIEWS,
    AtAccess,
    Block,
    LoopEffect,
    MaterializeEffect,
    PickAccess,
    SpanAccess,
    StoreEffect,
    Value,
)
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.operations import cost
from kernelwright.sketch.nodes import DType

SHORT_ROW = 8
KEEP_COST = 4
"""Two nests need it: keep what costs more than this many cycles a vector; a store and a load cost about two."""
KEEP_COST_IN_LOOP = 1.5
"""An inner loop needs it: keep all but plain loads and a cheap operation on them."""


@dataclass
class Usage:
    """Who needs each value, and all values of each block in program order."""

    consumers: dict[Value, int] = field(default_factory=dict)
    anchors: dict[Value, set[tuple[object, Block]]] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    seen: set[Value] = field(default_factory=set)


def decide(root: Block, keep_cost: float = KEEP_COST) -> Usage:
    """Walks all values from the last to the first, so that each knows its consumers before it is judged."""
    usage = Usage()
    _visit_block(root, usage)
    usage.values.sort(key=lambda v: -v.id)
    stacked: set[Value] = set()  # parts of a stack, which is kept as a whole
    cut: set[Value] = set()  # what is copied by those who read it
    moves_only = not any(
        value.op in MATERIALIZED for value in usage.values
    )  # else its nests choose an axis that suits their loads
    for value in usage.values:
        anchors = usage.anchors.get(value, set())
        if value.op == "reshape" and usage.consumers.get(value) == 1:
            cut |= {part for part in _cut(value) if usage.consumers.get(part) == 1}
        if (
            value not in cut
            and not value.kept
            and value.op not in MATERIALIZED
            and value.op not in ("const", "stored", "index", "iota")
        ):
            value.kept = value not in stacked and (_worth_keeping(value, anchors, keep_cost) or bool(short_axes(value)))
            stacked.update(members(value) if value.kept else ())
            value.kept = value.kept or (moves_only and transposition_of(value) is not None)
            value.kept = value.kept or (transposes_sums(value) and not any(_is_product(who) for who, _ in anchors))
        through = {(value, value.home)} if value.kept or value.op in MATERIALIZED else anchors
        for operand in value.operands:
            usage.anchors.setdefault(operand, set()).update(through)
            if value.op in ("binary", "where") and value not in stacked and _repeated(operand, value):
                usage.anchors[operand].add((value, value.home))
            if value.op == "part" and usage.consumers.get(operand, 0) > 1:  # windows of one tile: each would compute it anew
                usage.anchors[operand].add((value, value.home))
            if value.op == "argsort":
                operand.kept = operand.kept or operand.op not in ("stored", *MATERIALIZED)
    usage.values.reverse()
    return usage


def _visit_block(block: Block, usage: Usage) -> None:
    for effect in block.effects:
        match effect:
            case StoreEffect():
                for value in effect.operands:
                    _anchor(value, effect, block, usage)
            case MaterializeEffect():
                _anchor(effect.value, effect, block, usage)
            case LoopEffect():
                for item in effect.carried:
                    if item.initial is not None:
                        _anchor(item.initial, (effect, item.name), block, usage)
                    if item.final is not None:
                        _anchor(item.final, (effect, tuple(item.storage.shape)), effect.body, usage)
                _visit_block(effect.body, usage)


def _anchor(value: Value, key: object, block: Block, usage: Usage) -> None:
    usage.anchors.setdefault(value, set()).add((key, block))
    usage.consumers[value] = usage.consumers.get(value, 0) + 1
    stack = [value]
    while stack:
        at = stack.pop()
        if at in usage.seen:
            continue
        usage.seen.add(at)
        usage.values.append(at)
        for operand in at.operands:
            usage.consumers[operand] = usage.consumers.get(operand, 0) + 1
            stack.append(operand)


def _worth_keeping(value: Value, anchors: set[tuple[object, Block]], keep_cost: float) -> bool:
    if value.op in VIEWS and value.op != "reshape":
        return False
    if value.op == "load" and value.data.level == "fast":
        return True
    cost = cost_of(value)
    if len(anchors) >= 2 and cost >= keep_cost:
        return True
    deeper = any(block is not value.home and value.home.encloses(block) for _, block in anchors)
    return deeper and cost > KEEP_COST_IN_LOOP


def _is_product(consumer: object) -> bool:
    """Whether this is a product, which reads its operands along any axis."""
    return isinstance(consumer, Value) and consumer.op == "gemm"


def _cut(value: Value) -> set[Value]:
    """The views and the load under a reshape that cuts rows in pieces of few elements (phases of a stride). Copied as they stand, that
    is loops of few elements, or one copy too many: who turns them copies them."""
    width = value.shape[-1].constant
    chain = [value]
    while chain[-1].op in VIEWS:
        chain.append(chain[-1].args[0])
    return set(chain) if width is not None and 1 < width <= SHORT_ROW and chain[-1].op == "load" else set()


def _repeated(operand: Value, value: Value) -> bool:
    """True if an outer axis of `value` asks for the same dear elements of `operand` again and again."""
    missing = len(value.shape) - len(operand.shape)
    if not operand.shape or all(e.constant == 1 for e in operand.shape) or cost_of(operand) < 8:
        return False
    wide = [e.constant == 1 for e in operand.shape]
    if wide[-1]:
        return False
    return any(value.shape[d].constant != 1 for d in range(missing)) or any(
        narrow and value.shape[missing + d].constant != 1 for d, narrow in enumerate(wide)
    )


def cost_of(value: Value) -> float:
    """Cycles for a vector of elements when computed on the spot."""
    if value.cost is None:
        value.cost = min(_cost(value), 1e6)
    return value.cost


def _cost(value: Value) -> float:
    if value.kept or value.op in MATERIALIZED or value.op in ("stored", "iota", "index"):
        return 1.0
    if value.op == "const":
        return 0.0
    if value.op == "load":
        return _load_cost(value)
    # what is one number for the whole tile is computed once, before the loop
    inner = sum(cost_of(operand) for operand in value.operands if not _is_single(operand) or _is_single(value))
    if value.op in ("unary", "binary"):
        halves = 4.0 if value.dtype in (DType.f16, DType.bf16) else 0.0
        return inner + cost(value.data) + halves
    if value.op == "cast":
        same = value.dtype in FLOATS and value.args[0].dtype in (DType.f32, DType.bf16)
        return inner + (0.5 if same else 2.0)
    if value.op in ("where", "take", "bitcast"):
        return inner + (3.0 if value.op == "take" else 1.0)
    return inner + (2.0 if value.op == "reshape" else 0.0)


def _is_single(value: Value) -> bool:
    return all(extent.constant == 1 for extent in value.shape)


def _load_cost(value: Value) -> float:
    axes = value.data.axes
    cost = 1.0
    if any(isinstance(a, PickAccess) for a in axes):
        cost += 3.0
    last = axes[-1] if axes else None
    if isinstance(last, SpanAccess) and last.step.constant != 1:
        cost += 2.0
    if isinstance(last, AtAccess) and any(isinstance(a, SpanAccess) for a in axes):
        cost += 2.0
    return cost + (1.0 if value.data.pad is not None else 0.0)
