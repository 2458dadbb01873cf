"""From formulas of some elements to one formula of all: the same expression with coordinates in place of numbers.

In: sample points (coordinates of output elements) and the formula of each (terms.py). Out: a `Form`. Where formulas differ only in
which elements they read, addresses are fitted as affine functions of the coordinates. Sums (maxima …) of many terms become folds
over new coordinates; terms that are missing at borders must be exactly those that read outside a tensor, or lie beyond a bound.
Nothing is assumed that the samples do not show, and the caller checks the whole on real numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.affine import Affine, Part, Space
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.terms import NEUTRAL, Term, terms_of
from kernelwright.compiler.lift.launches import Buffer

MOST_WORK = 40_000
MOST_POINTS = 2500
"""Terms of a sum that are looked at in full; the domain of the sum is made from all of them."""


@dataclass(frozen=True)
class Read:
    """An element of a buffer seen under `shape`."""

    buffer: str
    shape: tuple[int, ...]
    at: tuple[Affine, ...]
    type: str


@dataclass(frozen=True)
class Const:
    value: float | int | bool
    type: str


@dataclass(frozen=True)
class Position:
    """An integer that depends on the coordinates."""

    value: Affine
    type: str


@dataclass(frozen=True)
class Apply:
    op: str
    type: str
    args: tuple[Form, ...]


@dataclass(frozen=True)
class Gather:
    buffer: str
    index: Form
    type: str


@dataclass(frozen=True)
class Bound:
    """`low(coordinates) <= coordinate <= high(coordinates)`."""

    coordinate: int
    low: Affine | None
    high: Affine | None


@dataclass(frozen=True)
class Reduction:
    """A sum (max, min, prod) of `body` over new coordinates, numbered from `first`, with these extents. `clipped`: terms that read
    outside a tensor do not count."""

    op: str
    type: str
    first: int
    extents: tuple[int, ...]
    body: Form
    clipped: bool = False
    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Piece:
    """`then` where a sum of coordinates is less than `limit`, else `other`."""

    place: Affine
    limit: int
    then: Form
    other: Form


Form = Read | Const | Position | Apply | Gather | Reduction | Piece


class Generaliser:
    """Works on the samples of one tensor."""

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self.buffers = buffers
        self.cache: dict[Term, list[Term]] = {}

    def form(self, space: Space, terms: Sequence[Term]) -> Form:
        """The formula of all samples."""
        first = terms[0]
        if all(t is first for t in terms) and first.kind == "const":
            return Const(first.at, first.type)
        op = next((t.op for t in terms if t.kind == "many"), None)
        if op is not None and all(t.kind != "many" or t.op == op for t in terms):
            return self._many(*_thinned(space, terms), op)
        kinds = {(t.kind, t.op, t.type, len(t.args)) for t in terms}
        if len(kinds) > 1:
            return self._pieces(space, terms)
        match first.kind:
            case "load":
                return self._read(space, terms)
            case "const":
                return self._constant(space, terms)
            case "gather":
                return Gather(first.op, self.form(space, [t.args[0] for t in terms]), first.type)
        inner = tuple(self.form(space, [t.args[k] for t in terms]) for k in range(len(first.args)))
        return Apply(first.op, first.type, inner)

    # ------------------------------------------------------------ leaves

    def _read(self, space: Space, terms: Sequence[Term]) -> Form:
        buffer = self.buffers[terms[0].op]
        flat = np.array([t.at for t in terms], dtype=np.int64)
        for quotients in (False, True):
            for shape in shapes(buffer, space.extents):
                fits = []
                for column in np.unravel_index(flat, shape) if shape else ():
                    fit = space.fit(column, quotients)
                    if fit is None:
                        break
                    fits.append(fit)
                if len(fits) == len(shape):
                    return Read(buffer.name, shape, tuple(fits), terms[0].type)
        raise Refused(0, f"which element of {buffer.name} is read does not follow from the position in a way that is known")

    def _constant(self, space: Space, terms: Sequence[Term]) -> Form:
        numbers = [t.at for t in terms]
        if len({repr(n) for n in numbers}) == 1:
            return Const(numbers[0], terms[0].type)
        if all(float(n).is_integer() for n in numbers if not isinstance(n, bool)):
            fit = space.fit([int(n) for n in numbers])
            if fit is not None:
                return Position(fit, terms[0].type)
        try:
            return self._pieces(space, terms, by_value=True)
        except Refused:
            raise Refused(0, "a number in the formula differs from element to element in a way that is not known") from None

    # ------------------------------------------------------------ different formulas in different places

    def _pieces(self, space: Space, terms: Sequence[Term], by_value: bool = False) -> Form:
        """One coordinate decides between two formulas."""
        labels = np.array([hash((t.kind, t.op, len(t.args), repr(t.at) if by_value else "")) for t in terms])
        places = [Affine(0, ((Part(k), 1),)) for k in space.varying]
        places += [
            Affine(0, ((Part(k), 1), (Part(j), sign))) for k, j in itertools.combinations(space.varying, 2) for sign in (-1, 1)
        ]  # a triangle, or what lies beside a diagonal
        for place in places:
            column = place.values(space.points)
            for limit in np.unique(column)[1:]:
                below = column < limit
                if len(set(labels[below])) == 1 or len(set(labels[~below])) == 1:
                    if set(labels[below]) & set(labels[~below]):
                        continue
                    if limit - 1 not in column:
                        continue  # where exactly it changes was not seen
                    parts = []
                    for side in (below, ~below):
                        chosen = np.flatnonzero(side)
                        parts.append(self.form(Space(space.points[chosen], space.extents), [terms[int(c)] for c in chosen]))
                    return Piece(place, int(limit), parts[0], parts[1])
        raise Refused(0, f"elements are computed in different ways: {terms[0]!r:.80}, elsewhere {_other(terms)!r:.80}")

    # ------------------------------------------------------------ sums and their kin

    def _many(self, space: Space, terms: Sequence[Term], op: str) -> Form:
        lists = [terms_of(t, op) for t in terms]
        groups: dict[int, list[tuple[int, Term]]] = {}
        for k, inner in enumerate(lists):
            for term in inner:
                groups.setdefault(term.shape, []).append((k, term))
        type = next(t.type for t in terms if t.kind == "many")
        parts: list[Form] = []
        for members in groups.values():
            owners = np.array([k for k, _ in members])
            counts = np.bincount(owners, minlength=len(terms))
            if counts.max() == 1 and counts.min() == 1:
                parts.append(self.form(space, [t for _, t in members]))
            elif counts.max() == 1 and op in NEUTRAL:
                some = dict(members)
                none = Term("const", "", type, NEUTRAL[op], (), -1)
                parts.append(self._pieces(space, [some.get(k, none) for k in range(len(terms))]))
            else:
                parts.append(self._reduction(space, op, type, owners, counts, [t for _, t in members]))
        total = parts[0]
        if len(parts) > 1 and op not in NEUTRAL:
            raise Refused(0, "the position of an extreme among different formulas")
        name = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "mul"}.get(op, "")
        for part in parts[1:]:
            if name == "add" and isinstance(part, Apply) and part.op == "neg":
                total = Apply("sub", type, (total, part.args[0]))
            else:
                total = Apply(name, type, (total, part))
        return total

    def _reduction(self, space: Space, op: str, type: str, owners: Any, counts: Any, terms: list[Term]) -> Form:
        whole = int(np.argmax(counts))
        for flat in (False, True):
            columns = self._columns(terms, flat)
            if columns is None:
                continue
            chosen = _axes(columns, owners, whole, counts)
            if chosen is not None:
                made = self._over(space, op, type, owners, counts, terms, columns, chosen, whole)
                if made is not None:
                    return made
        raise Refused(0, f"the {counts.max()} terms of a {op} such as {terms[0]!r:.80} do not run over a box of elements")

    def _columns(self, terms: list[Term], flat: bool) -> Any:
        """Which elements each term reads: a matrix with one row a term."""
        rows = [_loads(t, self.cache) for t in terms]
        width = {len(r) for r in rows}
        if len(width) != 1 or width == {0}:
            return None
        columns: list[Any] = []
        for k in range(width.pop()):
            at = np.array([r[k].at for r in rows], dtype=np.int64)
            first = rows[0][k]
            if first.kind == "const":
                columns.append(at)
                continue
            shape = (1 << 62,) if flat else self.buffers[first.op].shape
            columns.extend(np.unravel_index(at, shape) if shape and not flat else [at])
        return np.stack(columns, axis=1) if columns else None

    def _over(
        self, space: Space, op: str, type: str, owners: Any, counts: Any, terms: list[Term], columns: Any, chosen: list[int], whole: int
    ) -> Form | None:  # fmt: skip
        """The fold over the chosen columns."""
        mine = columns[owners == whole]
        extents: list[int] = []
        values: list[Any] = []
        full = np.flatnonzero(counts == counts[whole])
        for c in chosen:
            unique = np.unique(mine[:, c])
            step = int(unique[1] - unique[0])
            lows = np.array([columns[owners == k][:, c].min() for k in full])
            low = Space(space.points[full], space.extents).fit(lows)
            if low is None:
                return None
            start = low.values(space.points)[owners]
            offset = columns[:, c] - start
            if (offset % step).any():
                return None
            values.append(offset // step)
            extents.append(len(unique))
        index = np.stack(values, axis=1)
        if (index < 0).any() or (index >= np.array(extents)).any():
            return None
        points = np.concatenate([space.points[owners], index], axis=1)
        first = space.points.shape[1]
        wide = Space(points, [*space.extents, *extents])
        few = wide if len(points) <= MOST_POINTS else None
        at = np.arange(len(points))
        if few is None:
            at = _spread(owners, len(points))
            few = Space(points[at], wide.extents)
        body = self.form(few, [terms[int(k)] for k in at])
        missing = bool((counts != math.prod(extents)).any())
        clipped = False
        bounds: tuple[Bound, ...] = ()
        if missing:
            clipped, bounds = self._explain(space, body, extents, index, owners, counts)
        return Reduction(op, type, first, tuple(extents), body, clipped, bounds)

    def _explain(
        self, space: Space, body: Form, extents: list[int], index: Any, owners: Any, counts: Any
    ) -> tuple[bool, tuple[Bound, ...]]:
        """Why some samples have fewer terms: what they read lies outside, or a bound moves with the position."""
        grid = np.array(list(itertools.product(*map(range, extents))), dtype=np.int64)
        inside = True
        for k in range(len(counts)):
            points = np.concatenate([np.repeat(space.points[k : k + 1], len(grid), axis=0), grid], axis=1)
            legal: Any = np.ones(len(grid), dtype=bool)
            for read in reads(body):
                for a, extent in zip(read.at, read.shape, strict=True):
                    v = (
                        a.values(points)
                        if max(a.coordinates(), default=0) < points.shape[1]
                        else np.zeros(len(grid), dtype=np.int64)
                    )
                    legal &= (v >= 0) & (v < extent)
            if int(legal.sum()) != int(counts[k]):
                inside = False
                break
        if inside:
            return True, ()
        bounds: list[Bound] = []
        some = np.flatnonzero(counts > 0)
        narrow = Space(space.points[some], space.extents)
        size: Any = np.ones(len(some), dtype=np.int64)
        for j, extent in enumerate(extents):
            low = np.array([index[owners == k][:, j].min() for k in some])
            high = np.array([index[owners == k][:, j].max() for k in some])
            size *= high - low + 1
            fits = [None if (low == 0).all() else narrow.fit(low), None if (high == extent - 1).all() else narrow.fit(high)]
            if ((low != 0).any() and fits[0] is None) or ((high != extent - 1).any() and fits[1] is None):
                raise Refused(0, "how far a sum runs does not follow from the position in a way that is known")
            if fits[0] is not None or fits[1] is not None:
                bounds.append(Bound(space.points.shape[1] + j, fits[0], fits[1]))
        if (size != counts[some]).any():
            raise Refused(0, "a sum leaves out terms in a way that is not known")
        if len(some) != len(counts):
            none = np.flatnonzero(counts == 0)
            empty: Any = np.zeros(len(none), dtype=bool)
            for bound in bounds:
                lows = bound.low.values(space.points[none]) if bound.low else 0
                highs = (
                    bound.high.values(space.points[none])
                    if bound.high
                    else extents[bound.coordinate - space.points.shape[1]] - 1
                )
                empty |= lows > highs
            if not empty.all():
                raise Refused(0, "some elements lack a sum that others have")
        return False, tuple(bounds)


def _thinned(space: Space, terms: Sequence[Term]) -> tuple[Space, Sequence[Term]]:
    """Fewer samples where long sums repeat: of each distinct one a few points, which still tell what it depends on."""
    if sum(len(t.args) for t in terms) <= MOST_WORK:
        return space, terms
    draw = np.random.default_rng(0)
    left: dict[Term, int] = {}
    kept = []
    for k in draw.permutation(len(terms)):
        term = terms[int(k)]
        if left.get(term, 0) < 3 or term.kind != "many":
            left[term] = left.get(term, 0) + 1
            kept.append(int(k))
    longest = max(len(t.args) for t in terms)
    kept = sorted(kept[: max(60, MOST_WORK // max(longest, 1))])
    return Space(space.points[kept], space.extents), [terms[k] for k in kept]


def _other(terms: Sequence[Term]) -> Term:
    first = (terms[0].kind, terms[0].op)
    return next((t for t in terms if (t.kind, t.op) != first), terms[-1])


def _spread(owners: Any, total: int) -> Any:
    """Some of the terms: ends and others of every sample."""
    draw = np.random.default_rng(0)
    return np.sort(draw.choice(total, MOST_POINTS, replace=False))


def _loads(term: Term, cache: dict[Term, list[Term]]) -> list[Term]:
    """What a term reads (and the integers in it), in order; of terms of one shape inside a sum only the first."""
    if term.kind == "op" and term.op == "pair":
        return _loads(term.args[0], cache)
    if term.kind == "load" or (term.kind == "const" and isinstance(term.at, int) and not isinstance(term.at, bool)):
        return [term]
    if term in cache:
        return cache[term]
    inner = term.args
    if term.kind == "many":
        groups: dict[int, list[Term]] = {}
        for a in term.args:
            groups.setdefault(a.shape, []).append(a)
        inner = tuple(min(groups[shape], key=lambda t: _first(t, cache)) for shape in sorted(groups))
    found = [load for a in inner for load in _loads(a, cache)]
    cache[term] = found
    return found


def _first(term: Term, cache: dict[Term, list[Term]]) -> int:
    found = _loads(term, cache)
    return found[0].at if found else 0


def _axes(columns: Any, owners: Any, whole: int, counts: Any) -> list[int] | None:
    """Columns that together number the terms of the sample with the most of them: a box with even steps."""
    mine = columns[owners == whole]
    full = np.flatnonzero(counts == counts[whole])
    varying = [c for c in range(columns.shape[1]) if (mine[:, c] != mine[0, c]).any()]

    def still(c: int) -> bool:
        spans = {(int(v.min()), int(v.max())) for v in (columns[owners == k][:, c] for k in full)}
        return len(spans) == 1

    sizes = {c: len(np.unique(mine[:, c])) for c in varying}
    for key in (lambda c: (not still(c), sizes[c], c), lambda c: (sizes[c], not still(c), c)):
        chosen: list[int] = []
        for c in sorted(varying, key=key):
            if math.prod(sizes[k] for k in chosen) == len(mine):
                break
            if not chosen or Space(mine[:, chosen], [1] * len(chosen)).fit(mine[:, c], quotients=False) is None:
                chosen.append(c)
        steps = [np.unique(np.diff(np.unique(mine[:, c]))) for c in chosen]
        even = math.prod(sizes[c] for c in chosen) == len(mine) and all(len(s) == 1 for s in steps)
        if even and len(np.unique(mine[:, chosen], axis=0)) == len(mine):
            return sorted(chosen)
    return None


def shapes(buffer: Buffer, extents: Sequence[int]) -> list[tuple[int, ...]]:
    """Shapes under which a buffer may be seen: its own, with neighbours merged, with an axis split."""
    own = buffer.shape
    if not own:
        return [()] if buffer.elements == 1 else []
    found = [own]
    rank = len(own)
    for cuts in itertools.product((False, True), repeat=min(rank, 6) - 1):
        shape: list[int] = [own[0]]
        for extent, cut in zip(own[1:], (*cuts, *([True] * rank)), strict=False):
            if cut:
                shape.append(extent)
            else:
                shape[-1] *= extent
        found.append(tuple(shape))
    for k, extent in enumerate(own):
        for by in sorted({e for e in extents if 1 < e < extent and extent % e == 0}):
            found.append((*own[:k], extent // by, by, *own[k + 1 :]))
    return list(dict.fromkeys(found))


def reads(form: Form) -> list[Read]:
    """All reads of a form that stand outside its inner folds."""
    match form:
        case Read():
            return [form]
        case Apply():
            return [r for a in form.args for r in reads(a)]
    return []


__all__ = [
    "NEUTRAL",
    "Apply",
    "Bound",
    "Const",
    "Form",
    "Gather",
    "Generaliser",
    "Piece",
    "Position",
    "Read",
    "Reduction",
    "reads",
    "shapes",
]
