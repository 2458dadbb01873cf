"""The iteration space of one kernel: which axes it has, what it reads and stores over them.

In come root values of one shape; out goes a `Nest`: the domain's axes, and for each root a target and an expression. On the way
1. each root is traced over one axis per axis (compiler/schedule/scalar.py);
2. axes are split where a reshape, repeat or upsampling needs it, so that coordinates become linear;
3. the axes of reductions are identified with axes that already walk over the same data, so that softmax reads its row once;
4. neighbouring axes that are never told apart are merged, so that a pointwise kernel over [N, C, H, W] becomes one flat axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import (
    Datum,
    IndexExpr,
    LoopAxis,
    axes_in,
    axis_index,
    certainly_inside,
    constant_index,
    data_of,
    divides,
    flatten,
    linear,
    linear_index,
    offset,
    only_axis,
    substituted,
    wanted_splits,
)
from kernelwright.compiler.graph.symbolic import Extent, Size, likely, size_poly
from kernelwright.compiler.schedule.scalar import Arena, Expr, Tracer, indices_of, walk_all
from kernelwright.sketch.index import OWN, Opaque, poly, rejoined, split

Access = tuple[str, tuple[Extent, ...], v.MultiIndex]
"""A tensor, the shape that it is seen under, and a coordinate for each of its axes."""


@dataclass
class Nest:
    """`stores[i]` = (target access, expression); all over `domain` axes and those bound by reductions inside."""

    arena: Arena
    domain: list[LoopAxis]
    stores: list[tuple[Expr, Expr]]

    def roots(self) -> list[Expr]:
        return [e for pair in self.stores for e in pair]

    def replace(self, roots: list[Expr]) -> None:
        """Takes the rewritten roots() back."""
        self.stores = list(zip(roots[::2], roots[1::2], strict=True))

    def substitute(self, mapping: dict[LoopAxis, IndexExpr]) -> None:
        """Axes replaced everywhere, also in the domain (an axis may be split in several)."""
        self.replace(self.arena.substitute(self.roots(), mapping))
        domain: list[LoopAxis] = []
        for loop_axis in self.domain:
            parts = (
                [t for t, _ in sorted(linear(mapping[loop_axis]), key=lambda p: -likely(p[1])) if isinstance(t, LoopAxis)]
                if loop_axis in mapping
                else [loop_axis]
            )
            domain += [a for a in parts if a not in domain]
        self.domain = domain


def build(tracer: Tracer, roots: list[tuple[v.Value, str]], section: tuple[int, Extent, Extent] | None = None) -> Nest:
    """The nest of roots of one shape, each with the tensor that receives it. `section` (axis, start, stop) restricts an axis."""
    shape = roots[0][0].shape
    coords: list[IndexExpr] = []
    domain: list[LoopAxis] = []
    for axis, extent in enumerate(shape):
        start: Extent = 0
        if section and section[0] == axis:
            start, extent = section[1], section[2] - section[1]
        if extent == 1:
            coords.append(constant_index(start))
            continue
        domain.append(LoopAxis(extent))
        coords.append(axis_index(domain[-1]) + size_poly(start))
    stores = []
    for value, tensor in roots:
        target = tracer.arena.access(tensor, shape, tuple(coords), value.dtype)
        stores.append((target, tracer.at(value, tuple(coords))))
    nest = Nest(tracer.arena, domain, stores)
    simplify(nest)
    return nest


def simplify(nest: Nest) -> None:
    """Splits, identifies and merges axes until the nest has its simplest form."""
    split_axes(nest)
    identify(nest)
    split_axes(nest)
    to_runs(nest)
    merge_axes(nest)
    refine(nest)


# ---------------------------------------------------------------- splitting


def split_axes(nest: Nest) -> None:
    """Splits axes until no division is left that a split could remove."""
    for _ in range(32):
        pinned = {e.data[1] for e in walk_all(nest.roots()) if e.kind in ("arg", "scan")}
        wanted = [w for e in walk_all(nest.roots()) for c in indices_of(e) for w in wanted_splits(c) if w[0] not in pinned]
        if not wanted:
            return
        loop_axis, inner = wanted[0]
        nest.substitute({loop_axis: parts_of(loop_axis, inner)})


def parts_of(loop_axis: LoopAxis, inner: Extent) -> IndexExpr:
    """The axis as `outer * inner + inner part`, with two new axes."""
    return axis_index(LoopAxis(loop_axis.extent // inner)) * size_poly(inner) + axis_index(LoopAxis(inner))


# ---------------------------------------------------------------- identifying reduced axes


def identify(nest: Nest) -> None:
    """Renames bound axes to axes that walk over the same data, wherever the renaming cannot capture a free axis."""
    for _ in range(64):
        found = _identification(nest)
        if found is None:
            return
        nest.substitute(found)


def _identification(nest: Nest) -> dict[LoopAxis, IndexExpr] | None:
    everything = walk_all(nest.roots())
    targets = {target for target, _ in nest.stores}
    accesses = [e for e in everything if e.kind in ("access", "slot") and e not in targets]
    for e in everything:
        if e.kind not in ("reduce", "arg"):
            continue
        bound = e.data[1] if e.kind == "reduce" else (e.data[1],)
        below = [a for a in walk_all([e.args[0]]) if a.kind in ("access", "slot") and a.free & set(bound)]
        for mine in below:
            for other in accesses:
                if other is mine or other.data[0] != mine.data[0] or other.data[1:-1] != mine.data[1:-1]:
                    continue
                match = _match(mine, other, bound, e)
                if match and not any(_captured(each, match) for each in everything):
                    return match
    return None


def _captured(e: Expr, mapping: dict[LoopAxis, IndexExpr]) -> bool:
    """Whether a reduction that binds a renamed axis, too, would capture an image: one reduction may be read at two places of an axis."""
    if e.kind not in ("reduce", "arg") or not _bound(e) & mapping.keys():
        return False
    return any(axes_in(image) & e.free for image in mapping.values()) or _captures(e, mapping)


def _bound(e: Expr) -> set[LoopAxis]:
    return set(e.data[1]) if e.kind == "reduce" else {e.data[1]}


def _match(mine: Expr, other: Expr, bound: tuple[LoopAxis, ...], e: Expr) -> dict[LoopAxis, IndexExpr] | None:
    """A renaming of bound axes (or a split of an axis) that makes `mine` read what `other` reads."""
    mapping: dict[LoopAxis, IndexExpr] = {}
    used: set[LoopAxis] = set()
    for c, d in zip(mine.data[-1], other.data[-1], strict=True):
        a, b = dict(linear(c)), dict(linear(d))
        if offset(c) != offset(d):
            return None
        for term in list(a):
            if b.get(term) == a[term]:
                del a[term], b[term]
        left = sorted(((t, k) for t, k in a.items()), key=lambda p: -likely(p[1]))
        right = sorted(((t, k) for t, k in b.items()), key=lambda p: -likely(p[1]))
        if not left and not right:
            continue
        if any(t not in bound for t, _ in left) or not all(isinstance(t, LoopAxis) for t, _ in right) or not left or not right:
            return None
        step = _pair(left, right, e)
        if step is None:
            return None
        for loop_axis, image in step.items():
            if mapping.get(loop_axis, image) != image:
                return None
            if loop_axis not in mapping and axes_in(image) & used:
                return None
            mapping[loop_axis] = image
            used |= axes_in(image)
    if not mapping or _captured(e, mapping):
        return None
    if any(loop_axis not in bound for loop_axis in mapping):  # a split of the other's axis comes first, alone
        return {a: c for a, c in mapping.items() if a not in bound}
    if e.kind == "arg" and any(only_axis(image) is None for image in mapping.values()):
        return None
    return mapping


def _captures(e: Expr, mapping: dict[LoopAxis, IndexExpr]) -> bool:
    """Whether something inside binds an image over an expression that still tells it from its axis: |x[i] - x[j]| is not |x[j] - x[j]|."""
    images = {a for image in mapping.values() for a in axes_in(image)}
    inside = (each for each in walk_all([e.args[0]]) if each.kind in ("reduce", "arg", "scan"))
    return any(_bound(each) & images and each.free & mapping.keys() for each in inside)


def _pair(
    left: list[tuple[LoopAxis, Extent]], right: list[tuple[LoopAxis, Extent]], e: Expr
) -> dict[LoopAxis, IndexExpr] | None:
    if len(left) == len(right):
        if all(k == m and a.extent == b.extent for (a, k), (b, m) in zip(left, right, strict=True)):
            return {a: axis_index(b) for (a, _), (b, _) in zip(left, right, strict=True)}
        return None
    if len(left) == 1 and not left[0][0].whole:
        nested = _nested(right)
        if nested and nested == (left[0][1], left[0][1] * left[0][0].extent):
            return {left[0][0]: linear_index(0, {b: m // left[0][1] for b, m in right})}
    if len(right) == 1 and not right[0][0].whole and _nested(left) == (right[0][1], right[0][1] * right[0][0].extent):
        return {right[0][0]: parts_of(right[0][0], left[-2][1] // right[0][1])} if divides(right[0][1], left[-2][1]) else None
    return None


def _nested(terms: list[tuple[LoopAxis, Extent]]) -> tuple[Extent, Extent] | None:
    """(smallest coefficient, full range) if the axes nest without gaps, largest coefficient first."""
    for (_, k), (b, m) in itertools.pairwise(terms):
        if k != m * b.extent:
            return None
    return terms[-1][1], terms[0][1] * terms[0][0].extent


# ---------------------------------------------------------------- merging


def _unbounded(c: IndexExpr) -> bool:
    return bool(data_of(c))


def to_runs(nest: Nest) -> None:
    """Flattens neighbouring axes of every access whose coordinates are provably inside, into one axis each."""
    nest.replace(nest.arena.rewrite(nest.roots(), lambda c, walk: substituted(c, {}, walk), lambda a: (a,), flat_runs))


def flat_runs(data: Access) -> Access:
    """An access whose neighbouring axes are flattened where the coordinates are provably inside."""
    tensor, shape, coords = data
    sizes: list[Extent] = []
    flat: list[IndexExpr] = []
    last_inside = False
    for extent, c in zip(shape, coords, strict=True):
        inside = certainly_inside(c, extent) and not _unbounded(c)
        if inside and last_inside:
            flat[-1] = flatten((flat[-1], c), (sizes[-1], extent))
            sizes[-1] *= extent
        else:
            sizes.append(extent)
            flat.append(c)
        last_inside = inside
    return tensor, tuple(sizes), tuple(flat)


def merge_axes(nest: Nest) -> None:
    """Merges pairs of axes that stand in the ratio of a flat axis in every coordinate."""
    while True:
        everything = walk_all(nest.roots())
        loop_axes = sorted({a for e in everything for a in e.free} | set(nest.domain), key=lambda a: a.serial)
        folded = {frozenset(e.data[1]) for e in everything if e.kind == "reduce"}
        ordered = {e.data[1] for e in everything if e.kind in ("arg", "scan")}
        weights = _weights(everything)
        free = [a for a in loop_axes if not a.whole and a not in ordered]
        pairs = ((p, q) for p in free for q in free if (p in nest.domain) == (q in nest.domain))
        pair = next(((p, q) for p, q in pairs if _mergeable(p, q, folded, weights)), None)
        if pair is None:
            return
        _merge(nest, *pair)


def _mergeable(p: LoopAxis, q: LoopAxis, folded: set[frozenset[LoopAxis]], weights: dict[LoopAxis, dict[int, Extent]]) -> bool:
    if p == q or any((p in f) != (q in f) for f in folded):
        return False
    mine, its = weights.get(p, {}), weights.get(q, {})
    return mine.keys() == its.keys() and all(mine[k] == its[k] * q.extent for k in mine)


def _weights(everything: list[Expr]) -> dict[LoopAxis, dict[int, Extent]]:
    """For each axis its factor in every coordinate that contains it, those under // and % included, by number."""
    weights: dict[LoopAxis, dict[int, Extent]] = {}
    numbers: dict[IndexExpr, int] = {}
    waiting = [c for e in everything for c in indices_of(e)]
    while waiting:
        c = waiting.pop()
        if c in numbers:
            continue
        number = numbers[c] = len(numbers)
        for term, factor in linear(c):
            if isinstance(term, Opaque):
                waiting.append(term.left)
            elif isinstance(term, LoopAxis):
                weights.setdefault(term, {})[number] = factor
    return weights


def _merge(nest: Nest, p: LoopAxis, q: LoopAxis) -> None:
    merged = LoopAxis(p.extent * q.extent)

    def index_expr(c: IndexExpr, walk: Callable[[Expr], Expr]) -> IndexExpr:
        total = constant_index(offset(c))
        for term, k in linear(c):
            if isinstance(term, Opaque):
                part = OWN.combine(term.op, index_expr(term.left, walk), term.right)
            elif isinstance(term, Datum):
                part = axis_index(Datum(walk(term.expression), term.extent))
            elif term == p:
                continue
            else:
                part = axis_index(merged) if term == q else poly(term)
            total = total + part * size_poly(k)
        return rejoined(total)

    nest.replace(nest.arena.rewrite(nest.roots(), index_expr, lambda a: (merged,) if a in (p, q) else (a,)))
    nest.domain = [merged if a == q else a for a in nest.domain if a != p]


def refine(nest: Nest) -> None:
    """Cuts flat axes into one view axis per axis, as far as the coefficients allow."""
    nest.replace(nest.arena.rewrite(nest.roots(), lambda c, walk: substituted(c, {}, walk), lambda a: (a,), cut_axes))


def cut_axes(data: Access) -> Access:
    """An access with flat axes cut into one view axis per axis."""
    tensor, shape, coords = data
    pieces = [piece for extent, c in zip(shape, coords, strict=True) for piece in _cut_axis(extent, c)]
    return tensor, tuple(size for size, _ in pieces), tuple(piece for _, piece in pieces)


def _cut_axis(extent: Extent, c: IndexExpr) -> list[tuple[Extent, IndexExpr]]:
    if not certainly_inside(c, extent) or _unbounded(c):
        return [(extent, c)]
    steps = {k for _, k in linear(c) if isinstance(k, Size) or k > 1}
    for by in sorted(steps, key=likely, reverse=True):
        if not divides(by, extent):
            continue
        high, rest = split(c, size_poly(by))
        if rest.constant is None and high.constant is None and certainly_inside(rest, by):
            return [*_cut_axis(extent // by, high), *_cut_axis(by, rest)]
    return [(extent, c)]
