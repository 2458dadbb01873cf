"""One element of a tile value as C: expressions over loop variables, each made once and written where its loop begins.

In: a value and an index for each of its axes. Out: `Scalar`s, a small graph of C texts that knows how deep in the loop nest each part
belongs; `Lines` writes them down. A load that may leave its tensor carries its conditions, so that a loop can be split into
an interior, where they all hold, and borders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_types import COMPUTED, STORED, literal
from kernelwright.compiler.lower.tile_graph import RESERVED
from kernelwright.compiler.lower.tile_values import AtAccess, PickAccess, SpanAccess, Storage, Value
from kernelwright.sketch.index import Poly, Ranges, combine, poly, rejoined, to_c
from kernelwright.sketch.nodes import DType

Index = tuple[Poly, ...]

PLUS_ONE = {"erf": "erf_plus_one_of({0})", "tanh": "tanh_plus_one_of({0})"}
"""Functions of which one more is computed without cancellation: every language of the C family has them by these names."""


@dataclass(eq=False)
class Scalar:
    """A C text with holes for other scalars. `level` is the depth of the innermost loop it depends on."""

    template: str
    args: tuple[Scalar, ...]
    dtype: DType
    level: int
    hint: str = ""
    guards: tuple[Scalar, ...] = ()
    always: tuple[Scalar, ...] = ()  # guards that no interior makes true (run-time indices)
    pad: str | Scalar = ""  # the value where a guard fails
    place: Poly | None = None  # for an element in memory: its offset
    uses: int = 0
    named: bool = False


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
class Elements:
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
        template, args = self._holes(to_c(p))
        return Scalar(template, args, dtype, self.level(p))

    def _holes(self, text: str) -> tuple[str, tuple[Scalar, ...]]:
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
        if value.storage is not None and value.id not in self.computing:
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
                picked = self.of(at, _fitting(at, index))
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
                value.args[0].storage is not None and value.args[0].id not in self.computing and _dense(value.args[0].storage)
            ):
                return self.stored(value.args[0].storage, (_flat(value.shape, index),), flat=True)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part" | "reshape":
                return self.of(value.args[0], self._viewed(value, index))
        raise AssertionError(f"{value.op} has no element of its own")

    def _here(self, value: Value, function: str) -> bool:
        """True for a function that is computed on the spot: log(1 + e^x), 1 + erf(x) and 1 + tanh(x) have functions of their own."""
        here = value.storage is None or value.id in self.computing
        return value.op == "unary" and value.data == function and here and value.dtype in (DType.f32, DType.f64)

    def _apply(self, dtype: DType, template: str, *args: Scalar) -> Scalar:
        return Scalar(template, args, dtype, max((a.level for a in args), default=0))

    def _binary(self, value: Value, index: Index) -> Scalar:
        a, b = (self.of(arg, _fitting(arg, index)) for arg in value.args)
        dtype = value.args[0].dtype
        power = value.args[1].data if value.data == "pow" and value.args[1].op == "const" else None
        if power is not None and (text := _small_power(power, dtype)):
            return self._apply(value.dtype, c_expressions.rounded(text, dtype), a)
        if value.data == "add" and value.args[1].op == "const" and value.args[1].data == 1.0:
            for name, function in PLUS_ONE.items():
                if self._here(value.args[0], name):
                    inner = self.of(value.args[0].args[0], _fitting(value.args[0].args[0], index))
                    return self._apply(value.dtype, c_expressions.rounded(function, dtype), inner)
        return self._apply(value.dtype, c_expressions.binary(value.data, "{0}", "{1}", dtype), a, b)

    def _where(self, value: Value, index: Index) -> Scalar:
        """A choice; where it depends on positions only, the loop's interior can leave the question out."""
        condition, first, second = value.args
        tests = self.truth(condition, _fitting(condition, index))
        if tests is not None:
            open_tests = [p for p in tests if not self.ranges.nonnegative(p)]
            if not open_tests:
                return self.of(first, _fitting(first, index))
            if any(self.ranges.nonnegative(p * -1 - 1) for p in open_tests):
                return self.of(second, _fitting(second, index))
            a, b = (self.of(x, _fitting(x, index)) for x in (first, second))
            guards = tuple(self.condition(p) for p in open_tests)
            self.borders += open_tests
            level = max(a.level, b.level, *(g.level for g in guards))
            return Scalar("{0}", (a,), value.dtype, level, guards=guards, pad=b)
        parts = [self.of(arg, _fitting(arg, index)) for arg in value.args]
        return self._apply(value.dtype, "{0} ? {1} : {2}", *parts)

    def integer(self, value: Value, index: Index) -> Poly | None:
        """An element that is a polynomial of positions and sizes, or None."""
        if value.storage is not None and value.id not in self.computing:
            return None
        match value.op:
            case "const" if value.dtype in (DType.i64, DType.i32) and not isinstance(value.data, bool | float):
                return poly(value.data)
            case "index":
                found: Poly = value.data
                return found
            case "iota":
                return index[0]
            case "cast" if value.dtype in (DType.i64, DType.i32):
                return self.integer(value.args[0], index)
            case "unary" if value.data == "neg":
                inner = self.integer(value.args[0], index)
                return None if inner is None else inner * -1
            case "binary":
                return self._integer_binary(value, index)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part":
                return self.integer(value.args[0], self._viewed(value, index))
        return None

    def _integer_binary(self, value: Value, index: Index) -> Poly | None:
        a, b = (self.integer(arg, _fitting(arg, index)) for arg in value.args)
        if a is None or b is None:
            return None
        match value.data:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "maximum" | "minimum":
                return combine("max" if value.data == "maximum" else "min", a, b)
            case "floordiv" | "mod" if b.constant is not None and b.constant > 0:
                return self.ranges.divide(a, b)[value.data == "mod"]
        return None

    def truth(self, value: Value, index: Index) -> list[Poly] | None:
        """A bool element as conditions `p >= 0` that must all hold, or None."""
        if value.storage is not None and value.id not in self.computing:
            return None
        if value.op in ("permute", "squeeze", "unsqueeze", "expand", "part"):
            return self.truth(value.args[0], self._viewed(value, index))
        if value.op != "binary":
            return None
        fitted = [_fitting(arg, index) for arg in value.args]
        if value.data in ("logical_and", "and") and value.args[0].dtype is DType.bool:
            left, right = (self.truth(arg, own) for arg, own in zip(value.args, fitted, strict=True))
            return None if left is None or right is None else left + right
        if value.data not in ("lt", "le", "gt", "ge"):
            return None
        a, b = (self.integer(arg, own) for arg, own in zip(value.args, fitted, strict=True))
        if a is None or b is None:
            return None
        gap = b - a if value.data in ("lt", "le") else a - b
        return [gap if value.data in ("le", "ge") else gap - 1]

    def _bitcast(self, value: Value, index: Index) -> Scalar:
        x = value.args[0]
        inner = c_expressions.store("{0}", x.dtype)
        text = c_expressions.load(f"__builtin_bit_cast({STORED[value.dtype]}, {STORED[x.dtype]}({inner}))", value.dtype)
        return self._apply(value.dtype, text, self.of(x, index))

    def _viewed(self, value: Value, index: Index) -> Index:
        """The operand's index for an element of a view."""
        x = value.args[0]
        match value.op:
            case "permute":
                inner = [poly(0)] * len(index)
                for axis, p in zip(value.data, index, strict=True):
                    inner[axis] = p
                return tuple(inner)
            case "squeeze":
                return (*index[: value.data], poly(0), *index[value.data :])
            case "unsqueeze":
                return index[: value.data] + index[value.data + 1 :]
            case "expand":
                return _fitting(x, index)
            case "part":
                spans = iter(index)
                return tuple(a.index if isinstance(a, AtAccess) else a.start + a.step * next(spans) for a in value.data)
        flat = _flat(value.shape, index)
        inner = []
        for extent in reversed(x.shape[1:]):
            flat, rest = self.ranges.divide(flat, extent)
            inner.append(rest)
        return (flat, *reversed(inner)) if x.shape else ()

    # ------------------------------------------------------------ memory

    def stored(self, storage: Storage, index: Index, *, flat: bool = False) -> Scalar:
        """An element of a kept tile; `flat`: the index is one offset in row-major order."""
        offset: Poly | None = None
        if storage.scalar:
            text, level = storage.name, 0
            args: tuple[Scalar, ...] = ()
        else:
            offset = index[0] if flat else self.offset_in(storage, index)
            inner, args = self._holes(to_c(offset))
            text, level = f"{storage.name}[{inner}]", self.level(offset)
            self.places.append(Place(storage.name, offset, False, storage.dtype))
        return Scalar(c_expressions.load(text, storage.dtype), args, storage.dtype, level, place=offset)

    @staticmethod
    def offset_in(storage: Storage, index: Index) -> Poly:
        offset = poly(0)
        for extent, pitch, p in zip(storage.shape, storage.extents, index, strict=True):
            offset = offset * pitch + (poly(0) if extent.constant == 1 else p)
        return rejoined(offset)

    def positions(self, axes: tuple[object, ...], index: Index) -> list[Poly]:
        """Where along each axis of a tensor the element at `index` of a region lies."""
        picked = max((len(a.indices.shape) for a in axes if isinstance(a, PickAccess)), default=0)
        spans = iter(index[picked:])
        positions: list[Poly] = []
        for axis in axes:
            if isinstance(axis, SpanAccess):
                positions.append(axis.start + axis.step * next(spans))
            elif isinstance(axis, AtAccess):
                positions.append(axis.index)
            elif isinstance(axis, PickAccess):
                chosen, own = axis.indices, _fitting(axis.indices, index[:picked])
                known = self.integer(chosen, own)
                positions.append(known if known is not None else self.runtime(self.of(chosen, own)))
        return positions

    def outside(self, tensor: TensorPlace, positions: list[Poly]) -> list[Poly]:
        """Conditions `p >= 0` under which the positions lie inside the tensor, those that are always true left out."""
        conditions = []
        for p, extent in zip(positions, tensor.shape, strict=True):
            if not self.ranges.nonnegative(p) or any(n in self._runtime for n in p.names):
                conditions.append(p)
            if not self.ranges.below(p, extent) or any(n in self._runtime for n in p.names):
                conditions.append(extent - 1 - p)
        return conditions

    def offset(self, tensor: TensorPlace, positions: list[Poly]) -> Poly:
        total = poly(0)
        for p, stride in zip(positions, tensor.strides, strict=True):
            total = total + p * stride
        return rejoined(total)

    def _load(self, value: Value, index: Index) -> Scalar:
        tensor = self.tensors[value.data.tensor]
        positions = self.positions(value.data.axes, index)
        offset = self.offset(tensor, positions)
        self.places.append(Place(tensor.pointer, offset, False, value.dtype))
        inner, args = self._holes(to_c(offset))
        text = c_expressions.load(f"{tensor.pointer}[{inner}]", value.dtype)
        scalar = Scalar(text, args, value.dtype, self.level(offset), place=offset)
        if value.data.pad is None:
            return scalar
        conditions = self.outside(tensor, positions)
        if conditions:
            scalar.pad = literal(value.data.pad, value.dtype)
            scalar.level = max(scalar.level, *(self.level(p) for p in conditions))
            fixed = [p for p in conditions if any(n in self._runtime for n in p.names)]
            scalar.always = tuple(self.condition(p) for p in fixed)
            scalar.guards = tuple(self.condition(p) for p in conditions if p not in fixed)
            self.borders += [p for p in conditions if p not in fixed]
        return scalar

    def condition(self, p: Poly) -> Scalar:
        """`p >= 0` as a bool."""
        if p not in self._conditions:
            template, args = self._holes(_comparison(p))
            self._conditions[p] = Scalar(template, args, DType.bool, self.level(p))
        return self._conditions[p]


def _dense(storage: Storage) -> bool:
    return storage.extents == storage.shape


def _flat(shape: tuple[Poly, ...], index: Index) -> Poly:
    flat = poly(0)
    for extent, p in zip(shape, index, strict=True):
        flat = flat * extent + (poly(0) if extent.constant == 1 else p)
    return flat


def _comparison(p: Poly) -> str:
    """`a >= b` with no negative term on either side."""
    left = Poly(tuple(t for t in p.terms if t[1] > 0))
    right = Poly(tuple((m, -c) for m, c in p.terms if c < 0))
    return f"{to_c(left)} >= {to_c(right)}"


def _fitting(value: Value, index: Index) -> Index:
    """NumPy's broadcasting: the operand's own axes, at 0 where its extent is 1."""
    own = index[len(index) - len(value.shape) :] if value.shape else ()
    return tuple(poly(0) if extent.constant == 1 else p for extent, p in zip(value.shape, own, strict=True))


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


class Lines:
    """Writes scalars as C lines, sorted by loop level. Each line is written once per level and variant."""

    def __init__(self, elements: Elements, depth: int, taken: set[str]) -> None:
        self.depth = depth
        self.taken = set(taken)
        self.lines: list[list[str]] = [[] for _ in range(depth + 1)]
        self.names: dict[Scalar, str] = {}
        self.elements = elements
        self.asks_outer = False  # in an interior, the guards that do not change in the innermost loop are asked all the same

    def count(self, roots: list[Scalar]) -> None:
        """Counts uses, so that what is used once stays inside its consumer."""
        stack = list(roots)
        for root in roots:
            root.uses += 1
        seen: set[Scalar] = set()
        while stack:
            scalar = stack.pop()
            if scalar in seen:
                continue
            seen.add(scalar)
            other = (scalar.pad,) if isinstance(scalar.pad, Scalar) else ()
            for arg in (*scalar.args, *scalar.guards, *scalar.always, *other):
                arg.uses += 1
                stack.append(arg)

    def write(self, scalar: Scalar, at: int, interior: bool) -> str:
        """The C text of a scalar for a consumer at level `at`; writes the lines it needs."""
        if scalar in self.names:
            return self.names[scalar]
        text = self._body(scalar, interior)
        simple = re.fullmatch(r"[\w.]+|-?[\d.]+f?|-INFINITY", text) is not None
        line = scalar.named or (not simple and (scalar.uses > 1 or scalar.level < at or len(text) > 90 or bool(scalar.hint)))
        if not line:
            return text
        name = self._fresh(scalar.hint)
        self.names[scalar] = name
        self.lines[scalar.level].append(f"const {COMPUTED[scalar.dtype]} {name} = {text};")
        return name

    def forget_inner(self) -> list[str]:
        """Hands out the lines of the innermost level and forgets their names, for another variant of the same body."""
        inner, self.lines[self.depth] = self.lines[self.depth], []
        self.names = {s: n for s, n in self.names.items() if s.level < self.depth}
        return inner

    def _body(self, scalar: Scalar, interior: bool) -> str:
        texts = [self.write(arg, scalar.level, interior) for arg in scalar.args]
        text = fill(scalar.template, texts)
        guards = [*scalar.always, *self.asked(scalar, interior)]
        if guards:
            # `&`, not `&&`: a loop without branches vectorises, and the load itself stays conditional
            tests = " & ".join(_closed(self.write(g, scalar.level, interior)) for g in guards)
            pad = self.write(scalar.pad, scalar.level, interior) if isinstance(scalar.pad, Scalar) else scalar.pad
            text = f"{tests if len(guards) > 1 else f'({tests})'} ? {_closed(text)} : {_closed(pad)}"
        return text

    def asked(self, scalar: Scalar, interior: bool) -> tuple[Scalar, ...]:
        """The guards of a scalar that have to be tested, in a border or in an interior of the innermost loop."""
        if not interior or scalar.level < self.depth:
            return scalar.guards
        return tuple(guard for guard in scalar.guards if guard.level < self.depth) if self.asks_outer else ()

    def _fresh(self, stem: str) -> str:
        """The sketch's own name for a value where it has one, else t1, t2 …"""
        name, k = (stem, 1) if stem else ("t1", 1)
        while name in self.taken or name in RESERVED:
            k += 1
            name = f"{stem}_{k}" if stem else f"t{k}"
        self.taken.add(name)
        return name


_HOLE = re.compile(r"\{(\d)\}")


def fill(template: str, texts: list[str]) -> str:
    """Puts texts into the holes of a template, in parentheses where an operator could tear them apart."""

    def one(match: re.Match[str]) -> str:
        text = texts[int(match.group(1))]
        before = template[: match.start()].rstrip()
        after = template[match.end() :].lstrip()
        alone = before.endswith(("(", ",", "[")) and after.startswith((")", ",", "]"))
        whole = template == match.group(0)
        return text if alone or whole or _atomic(text) else f"({text})"

    return _HOLE.sub(one, template)


def _closed(text: str) -> str:
    return text if _atomic(text) else f"({text})"


def _atomic(text: str) -> bool:
    depth = 0
    for char in text:
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif depth == 0 and not (char.isalnum() or char in "_.:"):
            return False
    return True
