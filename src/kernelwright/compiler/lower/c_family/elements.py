"""One element of a tile value as C: expressions over loop variables.

In: a value and an index for each of its axes. Out: `Scalar`s (scalars.py), and which places in memory they read or write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.scalars import Scalar
from kernelwright.compiler.lower.c_types import STORED, literal
from kernelwright.compiler.lower.element_index import ElementIndex, Index, fitting, flat, is_picked
from kernelwright.compiler.lower.element_index import offset as offset_of
from kernelwright.compiler.lower.tile_values import Storage, Value
from kernelwright.sketch.index import Poly, Ranges, poly, rejoined, to_c
from kernelwright.sketch.nodes import DType

PLUS_ONE = {"erf": "erf_plus_one_of({0})", "tanh": "tanh_plus_one_of({0})"}
"""Functions of which one more is computed without cancellation: every language of the C family has them by these names."""


@dataclass(frozen=True)
class Place:
    """Where an access goes: the C name of its memory, the offset, and whether it writes."""

    memory: str
    offset: Poly
    writes: bool
    width: DType


@dataclass
class TensorPlace:
    """A tensor as the kernel sees it: the pointer's name, extents and row-major strides."""

    pointer: str
    shape: tuple[Poly, ...]
    strides: tuple[Poly, ...]
    dtype: DType


@dataclass
class Elements(ElementIndex):
    """Makes the scalars of one loop nest. `levels` gives each loop variable its depth; names that are missing lie outside."""

    tensors: Mapping[str, TensorPlace]
    ranges: Ranges
    levels: dict[str, int]
    computing: set[int] = field(default_factory=set)  # ids of kept values that this nest computes and stores itself
    places: list[Place] = field(default_factory=list)
    borders: list[Poly] = field(default_factory=list)  # conditions `p >= 0` of guarded loads
    _made: dict[tuple[int, Index], Scalar] = field(default_factory=dict)
    _runtime: dict[str, Scalar] = field(default_factory=dict)
    _conditions: dict[Poly, Scalar] = field(default_factory=dict)

    @property
    def bounds(self) -> Ranges:
        return self.ranges

    def is_stored(self, value: Value) -> bool:
        return value.storage is not None and value.id not in self.computing

    def picked(self, indices: Value, index: Index) -> Poly:
        return self.runtime(self.of(indices, index))

    @property
    def picks(self) -> bool:
        """Whether any position was found at run time."""
        return bool(self._runtime)

    def of(self, value: Value, index: Index) -> Scalar:
        """The element of `value` at `index`."""
        key = (value.id, index)
        if key not in self._made:
            made = self._make(value, index)
            if value.name and not made.hint and value.op != "const":
                made.hint = value.name
            self._made[key] = made
        return self._made[key]

    def known(self, value: Value, index: Index, scalar: Scalar) -> None:
        """Says what the element of `value` at `index` is, where a nest has made it by other means."""
        self._made[(value.id, index)] = scalar

    def level(self, p: Poly) -> int:
        return max((self._level_of_name(name) for name in p.names), default=0)

    def _level_of_name(self, name: str) -> int:
        return self._runtime[name].level if name in self._runtime else self.levels.get(name, 0)

    def text(self, p: Poly, dtype: DType = DType.i64) -> Scalar:
        """A polynomial as a scalar; run-time indices in it become holes."""
        template, args = self.holes(to_c(p))
        return Scalar(template, args, dtype, self.level(p))

    def holes(self, text: str) -> tuple[str, tuple[Scalar, ...]]:
        args: list[Scalar] = []
        for name in sorted(set(re.findall(r"@\d+", text)), key=lambda n: -len(n)):
            text = re.sub(rf"{name}(?!\d)", f"{{{len(args)}}}", text)
            args.append(self._runtime[name])
        return text, tuple(args)

    def runtime(self, scalar: Scalar) -> Poly:
        """A computed integer as a name that polynomials can use."""
        for name, known in self._runtime.items():
            if known is scalar:
                return poly(name)
        name = f"@{len(self._runtime)}"
        scalar.named = True
        self._runtime[name] = scalar
        return poly(name)

    # ------------------------------------------------------------ operations

    def _make(self, value: Value, index: Index) -> Scalar:
        if value.storage is not None and self.is_stored(value):
            return self.stored(value.storage, index)
        if (
            value.dtype is DType.i64
            and value.op in ("binary", "cast", "unary")
            and (p := self.integer(value, index)) is not None
        ):
            return self.text(p)
        match value.op:
            case "const":
                return Scalar(literal(value.data, value.dtype), (), value.dtype, 0)
            case "index":
                return self.text(value.data)
            case "iota":
                return self.text(index[0])
            case "load":
                return self._load(value, index)
            case "take":
                x, at = value.args
                picked = self.of(at, fitting(at, index))
                axis = value.data
                inner = tuple(
                    self.runtime(picked) if d == axis else (poly(0) if x.shape[d].constant == 1 else p)
                    for d, p in enumerate(index)
                )
                return self.of(x, inner)
            case "unary":
                if value.data == "log1p" and self._here(value.args[0], "exp"):
                    exponent = self.of(value.args[0].args[0], index)
                    return self._apply(value.dtype, c_expressions.rounded("log1p_exp_of({0})", value.dtype), exponent)
                operand = self.of(value.args[0], index)
                return self._apply(value.dtype, c_expressions.unary(value.data, "{0}", value.args[0].dtype), operand)
            case "binary":
                return self._binary(value, index)
            case "where":
                return self._where(value, index)
            case "cast":
                operand = self.of(value.args[0], index)
                text = c_expressions.cast("{0}", value.args[0].dtype, value.dtype)
                return operand if text == "{0}" else self._apply(value.dtype, text, operand)
            case "bitcast":
                return self._bitcast(value, index)
            case "reshape" if (
                value.args[0].storage is not None and self.is_stored(value.args[0]) and _dense(value.args[0].storage)
            ):
                return self.stored(value.args[0].storage, (flat(value.shape, index),), flat=True)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part" | "reshape":
                return self.of(value.args[0], self.viewed(value, index))
        raise AssertionError(f"{value.op} has no element of its own")

    def _here(self, value: Value, function: str) -> bool:
        """True for a function that is computed on the spot: log(1 + e^x), 1 + erf(x) and 1 + tanh(x) have functions of their own."""
        here = value.storage is None or value.id in self.computing
        return value.op == "unary" and value.data == function and here and value.dtype in (DType.f32, DType.f64)

    def _apply(self, dtype: DType, template: str, *args: Scalar) -> Scalar:
        return Scalar(template, args, dtype, max((a.level for a in args), default=0))

    def _binary(self, value: Value, index: Index) -> Scalar:
        a, b = (self.of(arg, fitting(arg, index)) for arg in value.args)
        dtype = value.args[0].dtype
        power = value.args[1].data if value.data == "pow" and value.args[1].op == "const" else None
        if power is not None and (text := _small_power(power, dtype)):
            return self._apply(value.dtype, c_expressions.rounded(text, dtype), a)
        if value.data == "add" and value.args[1].op == "const" and value.args[1].data == 1.0:
            for name, function in PLUS_ONE.items():
                if self._here(value.args[0], name):
                    inner = self.of(value.args[0].args[0], fitting(value.args[0].args[0], index))
                    return self._apply(value.dtype, c_expressions.rounded(function, dtype), inner)
        return self._apply(value.dtype, c_expressions.binary(value.data, "{0}", "{1}", dtype), a, b)

    def _where(self, value: Value, index: Index) -> Scalar:
        """A choice; where it depends on positions only, the loop's interior can leave the question out."""
        condition, first, second = value.args
        tests = self.truth(condition, fitting(condition, index))
        if tests is not None:
            open_tests = [p for p in tests if not self.ranges.nonnegative(p)]
            if not open_tests:
                return self.of(first, fitting(first, index))
            if any(self.ranges.nonnegative(p * -1 - 1) for p in open_tests):
                return self.of(second, fitting(second, index))
            a, b = (self.of(x, fitting(x, index)) for x in (first, second))
            guards = tuple(self.condition(p) for p in open_tests)
            self.borders += open_tests
            level = max(a.level, b.level, *(g.level for g in guards))
            return Scalar("{0}", (a,), value.dtype, level, guards=guards, pad=b)
        parts = [self.of(arg, fitting(arg, index)) for arg in value.args]
        return self._apply(value.dtype, "{0} ? {1} : {2}", *parts)

    def truth(self, value: Value, index: Index) -> list[Poly] | None:
        """A bool element as conditions `p >= 0` that must all hold, or None."""
        if self.is_stored(value):
            return None
        if value.op in ("permute", "squeeze", "unsqueeze", "expand", "part"):
            return self.truth(value.args[0], self.viewed(value, index))
        if value.op != "binary":
            return None
        fitted = [fitting(arg, index) for arg in value.args]
        if value.data in ("logical_and", "and") and value.args[0].dtype is DType.bool:
            left, right = (self.truth(arg, own) for arg, own in zip(value.args, fitted, strict=True))
            return None if left is None or right is None else left + right
        condition = self.comparison(value, index)
        return None if condition is None else [condition]

    def _bitcast(self, value: Value, index: Index) -> Scalar:
        x = value.args[0]
        inner = c_expressions.store("{0}", x.dtype)
        text = c_expressions.load(f"__builtin_bit_cast({STORED[value.dtype]}, {STORED[x.dtype]}({inner}))", value.dtype)
        return self._apply(value.dtype, text, self.of(x, index))

    # ------------------------------------------------------------ memory

    def stored(self, storage: Storage, index: Index, *, flat: bool = False) -> Scalar:
        """An element of a kept tile; `flat`: the index is one offset in row-major order."""
        offset: Poly | None = None
        if storage.scalar:
            text, level = storage.name, 0
            args: tuple[Scalar, ...] = ()
        else:
            offset = index[0] if flat else self.offset_in(storage, index)
            inner, args = self.holes(to_c(offset))
            text, level = f"{storage.name}[{inner}]", self.level(offset)
            self.places.append(Place(storage.name, offset, False, storage.dtype))
        return Scalar(c_expressions.load(text, storage.dtype), args, storage.dtype, level, place=offset)

    @staticmethod
    def offset_in(storage: Storage, index: Index) -> Poly:
        offset = poly(0)
        for extent, pitch, p in zip(storage.shape, storage.extents, index, strict=True):
            offset = offset * pitch + (poly(0) if extent.constant == 1 else p)
        return rejoined(offset)

    def _load(self, value: Value, index: Index) -> Scalar:
        tensor = self.tensors[value.data.tensor]
        positions = self.positions(value.data.axes, index)
        offset = offset_of(tensor.strides, positions)
        self.places.append(Place(tensor.pointer, offset, False, value.dtype))
        inner, args = self.holes(to_c(offset))
        text = c_expressions.load(f"{tensor.pointer}[{inner}]", value.dtype)
        scalar = Scalar(text, args, value.dtype, self.level(offset), place=offset)
        if value.data.pad is None:
            return scalar
        conditions = self.outside(tensor.shape, positions)
        if conditions:
            scalar.pad = literal(value.data.pad, value.dtype)
            scalar.level = max(scalar.level, *(self.level(p) for p in conditions))
            fixed = [p for p in conditions if any(map(is_picked, p.names))]
            scalar.always = tuple(self.condition(p) for p in fixed)
            scalar.guards = tuple(self.condition(p) for p in conditions if p not in fixed)
            self.borders += [p for p in conditions if p not in fixed]
        return scalar

    def condition(self, p: Poly) -> Scalar:
        """`p >= 0` as a bool."""
        if p not in self._conditions:
            template, args = self.holes(_comparison(p))
            self._conditions[p] = Scalar(template, args, DType.bool, self.level(p))
        return self._conditions[p]


def _dense(storage: Storage) -> bool:
    return storage.extents == storage.shape


def _comparison(p: Poly) -> str:
    """`a >= b` with no negative term on either side."""
    left = Poly(tuple(t for t in p.terms if t[1] > 0))
    right = Poly(tuple((m, -c) for m, c in p.terms if c < 0))
    return f"{to_c(left)} >= {to_c(right)}"


def _small_power(power: float, dtype: DType) -> str | None:
    """Powers that torch itself computes by products and roots."""
    if dtype not in (DType.f32, DType.f64, DType.f16, DType.bf16):
        return {2: "{0} * {0}", 3: "{0} * {0} * {0}"}.get(int(power)) if power in (2, 3) else None
    one = literal(1, dtype)
    known = {
        1.0: "{0}", 2.0: "{0} * {0}", 3.0: "{0} * {0} * {0}", 0.5: "std::sqrt({0})", -0.5: f"{one} / std::sqrt({{0}})",
        -1.0: f"{one} / {{0}}", -2.0: f"{one} / ({{0}} * {{0}})",
    }  # fmt: skip
    return known.get(float(power))
