"""Formulas of elements (general.py) → the designer's lazy values (compiler/graph/values.py).

The coordinates of a formula are axes: a value has one for each coordinate of the output and of the folds around it, with extent 1
where it does not depend on it. Sums of products are handed over as matrix products and convolutions, because the designer has
schedules for them; everything else is written as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.compiler.frontend.operators import Result
from kernelwright.compiler.frontend.operators.product import convolution, matmul
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import IndexExpr, constant_index
from kernelwright.compiler.graph.values import Value
from kernelwright.compiler.lift.formulas.affine import Affine
from kernelwright.compiler.lift.formulas.general import (
    NEUTRAL,
    Apply,
    Const,
    Form,
    Gather,
    Piece,
    Position,
    Read,
    Reduction,
    reads,
)
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.core.dtypes import FLOATS, promoted
from kernelwright.sketch.index import rejoined
from kernelwright.sketch.nodes import DType

_UNSIGNED = {"u16": "i32", "u32": "i64", "u64": "i64"}
SMALL_PRODUCT = 4
"""A sum of fewer products than this is no matrix product."""


def dtype(name: str) -> DType:
    """The sketch's type of a C type; a wider one where a sketch has no unsigned."""
    return DType(_UNSIGNED.get(name, name))


def depends(form: Form) -> frozenset[int]:
    """The coordinates that a formula depends on."""
    match form:
        case Read():
            return frozenset().union(*(a.coordinates() for a in form.at)) if form.at else frozenset()
        case Position():
            return form.value.coordinates()
        case Apply():
            return frozenset().union(*(depends(a) for a in form.args))
        case Gather():
            return depends(form.index)
        case Reduction():
            inner = depends(form.body)
            for bound in form.bounds:
                for a in (bound.low, bound.high):
                    inner |= a.coordinates() if a is not None else frozenset()
            return frozenset(k for k in inner if k < form.first)
        case Piece():
            return depends(form.then) | depends(form.other) | form.place.coordinates()
    return frozenset()


class Builder:
    """`buffers` gives the value that is in a buffer now. With `products` sums of products become matrix products and convolutions."""

    def __init__(self, buffers: Callable[[str], Value], *, products: bool = True) -> None:
        self.buffers, self.products = buffers, products
        self._made: dict[tuple[Form, tuple[int, ...]], Value] = {}

    def value(self, form: Form, extents: tuple[int, ...]) -> Value:
        """The formula over coordinates of these extents."""
        key = (form, extents)
        if key not in self._made:
            self._made[key] = self._value(form, extents)
        return self._made[key]

    def _value(self, form: Form, extents: tuple[int, ...]) -> Value:
        match form:
            case Const():
                return b.const(form.value, dtype(form.type), (1,) * len(extents))
            case Read():
                return self._read(form, extents, 0)
            case Position():
                return b.cast(self._integer(form.value, extents), dtype(form.type))
            case Apply():
                return self._apply(form, extents)
            case Gather():
                return self._gather(form, extents)
            case Reduction():
                return self._reduction(form, extents)
            case Piece():
                return self._piece(form, extents)

    # ------------------------------------------------------------ elements

    def _read(self, form: Read, extents: tuple[int, ...], fill: float | int) -> Value:
        source = b.reshape(self.buffers(form.buffer), form.shape)
        used = depends(form)
        shape = tuple(e if k in used else 1 for k, e in enumerate(extents))
        outside = False
        for a, extent in zip(form.at, form.shape, strict=True):
            low, high = _range(a, extents)
            outside = outside or low < 0 or high >= extent

        def move(coords: v.MultiIndex) -> v.MultiIndex:
            return tuple(_index_expr(a, coords) for a in form.at)

        plain = [a.plain() for a in form.at]
        simple = all(
            p is not None and a.offset == 0 and (p == {} or list(p.values()) == [1])
            for a, p in zip(form.at, plain, strict=True)
        )
        order = [next(iter(p)) for p in plain if p]
        whole = all(p or e == 1 for p, e in zip(plain, form.shape, strict=True)) and all(
            extents[k] == e for (k, e) in ((next(iter(p)), e) for p, e in zip(plain, form.shape, strict=True) if p)
        )
        if simple and whole and len(set(order)) == len(order) and not outside:
            # only axes in another order, and axes of extent 1: the designer sees through these
            kept = b.reshape(source, tuple(e for p, e in zip(plain, form.shape, strict=True) if p))
            ranked = b.permute(kept, [order.index(k) for k in sorted(order)])
            return b.reshape(ranked, shape)
        return v.View(
            shape,
            source.dtype,
            source,
            move,
            fill=(fill if source.dtype != DType.bool else bool(fill)) if outside else None,
            kind="lifted",
        )

    def _integer(self, a: Affine, extents: tuple[int, ...]) -> Value:
        rank = len(extents)
        total: Value = b.const(a.offset, DType.i64, (1,) * rank)
        for part, factor in a.terms:
            shape = tuple(e if k == part.coordinate else 1 for k, e in enumerate(extents))
            term: Value = b.position(shape, part.coordinate)
            if part.by != 1:
                term = b.apply("floordiv", term, part.by)
            if part.modulo:
                term = b.apply("mod", term, part.modulo)
            total = b.add(total, b.mul(term, factor) if factor != 1 else term)
        return total

    def _apply(self, form: Apply, extents: tuple[int, ...]) -> Value:
        args = [self.value(a, extents) for a in form.args]
        made = dtype(form.type)
        if form.op == "cast":
            return b.cast(args[0], made)
        if form.op == "where":
            return b.where(args[0], b.cast(args[1], made), b.cast(args[2], made), made)
        if made == DType.bool and form.op not in ("logical_and", "logical_or", "logical_not"):
            common = (
                args[0].dtype if len(args) < 2 or args[0].dtype == args[1].dtype else promoted(args[0].dtype, args[1].dtype)
            )
            return b.apply(form.op, *(b.cast(a, common) for a in args), compute=common)
        kept = made.computed
        return b.cast(b.apply(form.op, *(b.cast(a, kept) for a in args), dtype=kept), made)

    def _gather(self, form: Gather, extents: tuple[int, ...]) -> Value:
        """A position that is read at run time. Where it is a row's number times the row's length, it picks rows."""
        source = self.buffers(form.buffer)
        data, scale, rest = _split(form.index)
        if data is None:
            raise Refused(0, f"the position in {form.buffer} does not follow from one index in a way that is known")
        extent = next((e for k, e in enumerate(source.shape) if math.prod(source.shape[k + 1 :]) == scale and e > 1), 0)
        extent = extent or (source.size // scale if scale > 0 else 0)
        if extent < 1 or source.size % (extent * scale):
            raise Refused(0, f"the position in {form.buffer} is not a row's number and a place in the row")
        step = extent * scale
        outer = Affine(rest.offset // step, tuple((p, f // step) for p, f in rest.terms if f % step == 0))
        inner_place = Affine(rest.offset % step, tuple((p, f) for p, f in rest.terms if f % step))
        low, high = _range(inner_place, extents)
        if low < 0 or high >= scale:
            raise Refused(0, f"the position in {form.buffer} is not a row's number and a place in the row")
        index = b.cast(self.value(data, extents), DType.i64)
        used = depends(data) | rest.coordinates()
        shape = tuple(e if k in used else 1 for k, e in enumerate(extents))
        table = b.reshape(source, (source.size // step, extent, scale))

        def build(coords: v.MultiIndex, read: Callable[[int, v.MultiIndex, int], IndexExpr]) -> v.MultiIndex:
            inner = tuple(c if s != 1 else constant_index(0) for c, s in zip(coords, index.shape, strict=True))
            return (_index_expr(outer, coords), read(0, inner, extent), _index_expr(inner_place, coords))

        return v.Gather(shape, source.dtype, table, (index,), build)

    def _piece(self, form: Piece, extents: tuple[int, ...]) -> Value:
        then, other = self.value(form.then, extents), self.value(form.other, extents)
        below = b.apply("lt", self._integer(form.place, extents), form.limit)
        return b.where(below, then, b.cast(other, then.dtype), then.dtype)

    # ------------------------------------------------------------ folds

    def _reduction(self, form: Reduction, extents: tuple[int, ...]) -> Value:
        inner = (*extents, *form.extents)
        if form.op == "sum" and not form.bounds and self.products:
            product = self._product(form, extents)
            if product is not None:
                return product
        if form.op in ("argmax", "argmin"):
            return self._argument(form, extents)
        made = dtype(form.type).computed
        neutral = NEUTRAL[form.op]
        if made not in FLOATS:
            info = {DType.i32: 31, DType.i64: 63}.get(made, 31)
            neutral = {"sum": 0, "prod": 1, "max": -(2**info), "min": 2**info - 1}[form.op]
        body = form.body
        if form.clipped and isinstance(body, Read):
            value = b.cast(self._read(body, inner, neutral), made)
        elif form.clipped and form.op == "sum" and _vanishes(body):
            value = b.cast(self.value(body, inner), made)
        else:
            value = b.cast(self.value(body, inner), made)
            if form.clipped:
                for read in reads(body):
                    for a, extent in zip(read.at, read.shape, strict=True):
                        low, high = _range(a, inner)
                        if low < 0:
                            value = b.where(b.apply("ge", self._integer(a, inner), 0), value, neutral, made)
                        if high >= extent:
                            value = b.where(b.apply("lt", self._integer(a, inner), extent), value, neutral, made)
        for bound in form.bounds:
            shape = tuple(e if k == bound.coordinate else 1 for k, e in enumerate(inner))
            position = b.position(shape, bound.coordinate)
            if bound.low is not None:
                value = b.where(b.apply("ge", position, self._integer(bound.low, inner)), value, neutral, made)
            if bound.high is not None:
                value = b.where(b.apply("le", position, self._integer(bound.high, inner)), value, neutral, made)
        axes = tuple(range(form.first, form.first + len(form.extents)))
        value = b.expand(value, (*value.shape[: form.first], *form.extents))
        return b.reduce(form.op, value, axes)

    def _argument(self, form: Reduction, extents: tuple[int, ...]) -> Value:
        """Where the largest stands: its coordinate has to be the number that the kernel keeps."""
        body = form.body
        if len(form.extents) != 1 or form.clipped or form.bounds or not isinstance(body, Apply) or body.op != "pair":
            raise Refused(0, "the position of an extreme over several axes")
        kept = body.args[1]
        plain = kept.value.plain() if isinstance(kept, Position) else None
        if not isinstance(kept, Position) or plain is None or plain.get(form.first) != 1 or len(plain) != 1:
            raise Refused(0, "the position of an extreme is kept in a way that is not known")
        inner = (*extents, *form.extents)
        value = self.value(body.args[0], inner)
        value = b.expand(value, (*value.shape[:-1], form.extents[0]))
        made: Value = v.ArgReduce(value.shape[:-1], DType.i64, form.op[3:], value, len(extents))
        made = b.add(made, kept.value.offset) if kept.value.offset else made
        return b.cast(made, dtype(form.type))

    def _product(self, form: Reduction, extents: tuple[int, ...]) -> Value | None:
        """A sum of products as a matrix product or a convolution."""
        body = form.body
        if not isinstance(body, Apply) or body.op != "mul" or math.prod(form.extents) < SMALL_PRODUCT:
            return None
        left, right = (_uncast(a) for a in body.args)
        folds = frozenset(range(form.first, form.first + len(form.extents)))
        convolved = self._convolution(form, left, right, extents, folds) or self._convolution(form, right, left, extents, folds)
        if convolved is not None:
            return convolved
        one, two = depends(left), depends(right)
        if form.clipped or not folds <= one or not folds <= two:
            return None
        both = sorted(k for k in (one & two) - folds)
        m, n = sorted(one - two), sorted(two - one)
        if math.prod(extents[k] for k in m) < 2 or math.prod(extents[k] for k in n) < 2:
            return None
        inner = (*extents, *form.extents)
        k = sorted(folds)
        made = dtype(form.type)
        x, y = self.value(left, inner), self.value(right, inner)
        count = [math.prod(inner[i] for i in axes) for axes in (both, m, n, k)]
        a = b.reshape(b.permute(_kept(x, one), _places(sorted(one), [*both, *m, *k])), (count[0], count[1], count[3]))
        c = b.reshape(b.permute(_kept(y, two), _places(sorted(two), [*both, *k, *n])), (count[0], count[3], count[2]))
        common = x.dtype if x.dtype == y.dtype else made
        if not both:
            a, c = b.reshape(a, a.shape[1:]), b.reshape(c, c.shape[1:])
        product = b.cast(matmul(b.cast(a, common), b.cast(c, common), common), made) if common == made else None
        if product is None:
            product = matmul(b.cast(a, made), b.cast(c, made), made)
        order = [*both, *m, *n]
        whole = b.permute(b.reshape(product, tuple(extents[i] for i in order)), _places(order, sorted(order)))
        return b.reshape(whole, tuple(e if i in order else 1 for i, e in enumerate(extents)))

    def _convolution(self, form: Reduction, x: Form, w: Form, extents: tuple[int, ...], folds: frozenset[int]) -> Value | None:
        """x[n, c, h·s + r·d - p, …] · w[o, c, r, …] over c, r …; groups by o // (outputs of a group)."""
        if not isinstance(x, Read) or not isinstance(w, Read) or len(x.shape) != len(w.shape) or len(x.shape) < 3:
            return None
        rank = len(x.shape) - 2
        inner = (*extents, *form.extents)
        axes = [a.plain() for a in (*w.at, x.at[0])]
        if any(a is None or list(a.values()) != [1] for a, e in zip(axes, (*w.shape, x.shape[0]), strict=True) if e > 1):
            return None
        if any(a.offset for a in (*w.at, x.at[0])):
            return None
        keys = [next(iter(a), None) if a else None for a in axes]
        out, channel, taps, batch = keys[0], keys[1], keys[2:-1], keys[-1]
        if out is None or out in folds or any(t is not None and t not in folds for t in [channel, *taps]) or batch in folds:
            return None
        if extents[out] != w.shape[0] or any(
            t is not None and inner[t] != e for t, e in zip([channel, *taps], w.shape[1:], strict=True)
        ):
            return None
        groups = x.shape[1] // w.shape[1] if w.shape[1] and x.shape[1] % w.shape[1] == 0 else 0
        if groups < 1 or w.shape[0] % groups or not self._channels(x.at[1], channel, out, groups, w.shape, x.shape):
            return None
        stride, padding, dilation, places = [], [], [], []
        for a, tap in zip(x.at[2:], taps, strict=True):
            plain = a.plain()
            if plain is None:
                return None
            moving = [k for k in plain if k not in folds]
            if (
                len(moving) != 1
                or set(plain) - {moving[0], tap}
                or plain[moving[0]] < 1
                or plain.get(tap if tap is not None else -1, 1) < 1
            ):
                return None
            places.append(moving[0])
            stride.append(plain[moving[0]])
            dilation.append(plain.get(tap, 1) if tap is not None else 1)
            padding.append(-a.offset)
        order = [batch, out, *places]
        numbers = [k for k in order if k is not None]
        if len(set(numbers)) != len(numbers) or (batch is None and x.shape[0] != 1) or any(p < 0 for p in padding):
            return None
        shape = tuple(1 if k is None else extents[k] for k in order)
        for e, k, s, p, d, o in zip(x.shape[2:], w.shape[2:], stride, padding, dilation, shape[2:], strict=True):
            if (e + 2 * p - d * (k - 1) - 1) // s + 1 != o:
                return None  # not padded alike on both sides
        if set(numbers) != {k for k, e in enumerate(extents) if e > 1} | set(numbers):
            return None
        made = dtype(form.type)
        image, weight = (b.cast(b.reshape(self.buffers(r.buffer), r.shape), made) for r in (x, w))
        y = convolution(Result(shape, made), image, weight, None, stride, padding, dilation, False, [0] * rank, groups)
        ranked = b.permute(b.reshape(y, tuple(extents[k] for k in numbers)), _places(numbers, sorted(numbers)))
        return b.reshape(ranked, tuple(e if k in numbers else 1 for k, e in enumerate(extents)))

    @staticmethod
    def _channels(a: Affine, channel: int | None, out: int, groups: int, w: Sequence[int], x: Sequence[int]) -> bool:
        """Whether x's channel is `c + (o // outputs of a group) * channels of a group`."""
        if a.offset:
            return False
        wanted = {(channel, 1, 0): 1} if w[1] > 1 else {}
        if groups > 1:
            wanted[(out, w[0] // groups, 0)] = w[1]
        found = {(p.coordinate, p.by, p.modulo): f for p, f in a.terms}
        return found == wanted


def _places(have: list[int], want: list[int]) -> list[int]:
    return [have.index(k) for k in want]


def _kept(x: Value, axes: frozenset[int]) -> Value:
    return b.reshape(x, tuple(x.shape[k] for k in sorted(axes)))


def _uncast(form: Form) -> Form:
    return form.args[0] if isinstance(form, Apply) and form.op == "cast" and form.type == "f32" else form


def _vanishes(form: Form) -> bool:
    """Whether a term is zero when what it reads is: a product of reads."""
    form = _uncast(form)
    if isinstance(form, Apply) and form.op in ("mul", "neg"):
        return any(_vanishes(a) for a in form.args) and all(
            isinstance(_uncast(a), Read) or _vanishes(a) or not reads(a) for a in form.args
        )
    return isinstance(form, Read)


def _range(a: Affine, extents: Sequence[int]) -> tuple[int, int]:
    low = high = a.offset
    for part, factor in a.terms:
        top = (extents[part.coordinate] - 1) // part.by
        top = min(top, part.modulo - 1) if part.modulo else top
        low, high = low + min(0, factor * top), high + max(0, factor * top)
    return low, high


def _index_expr(a: Affine, coords: v.MultiIndex) -> IndexExpr:
    total = constant_index(a.offset)
    for part, factor in a.terms:
        term = coords[part.coordinate] // part.by
        total = total + (term % part.modulo if part.modulo else term) * factor
    return rejoined(total)


def _split(form: Form) -> tuple[Form | None, int, Affine]:
    """An index as data times a scale, plus a known place."""
    match form:
        case Apply(op="add"):
            data, scale, known = _split(form.args[0])
            more, other, also = _split(form.args[1])
            if data is not None and more is not None:
                return None, 0, known
            return (data, scale, _sum(known, also)) if data is not None else (more, other, _sum(known, also))
        case Apply(op="mul"):
            for one, two in (form.args, form.args[::-1]):
                if isinstance(two, Const):
                    data, scale, known = _split(one)
                    return (
                        data,
                        scale * int(two.value),
                        Affine(known.offset * int(two.value), tuple((p, f * int(two.value)) for p, f in known.terms)),
                    )
        case Apply(op="cast") if form.type in ("i64", "i32"):
            return _split(form.args[0])
        case Position():
            return None, 0, form.value
        case Const():
            return None, 0, Affine(int(form.value))
    return form, 1, Affine(0)


def _sum(a: Affine, c: Affine) -> Affine:
    total = dict(a.terms)
    for part, factor in c.terms:
        total[part] = total.get(part, 0) + factor
    return Affine(a.offset + c.offset, tuple(total.items()))
