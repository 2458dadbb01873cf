"""Values of the graph → formulas: `out[i, j] = exp(x[i, j] - s0[i]) / s1[i]`, with a line of its own for every sum and maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.compiler.graph import values as v
from kernelwright.sketch.index import Leaf, poly
from kernelwright.sketch.index.printing import written
from kernelwright.sketch.nodes import DType

SYMBOLS = {
    "add": ("+", 4), "sub": ("-", 4), "mul": ("*", 5), "div": ("/", 5), "floordiv": ("//", 5), "mod": ("%", 5), "eq": ("==", 3),
    "ne": ("!=", 3), "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3), "logical_and": ("and", 2), "logical_or": ("or", 1),
    "and": ("&", 3), "or": ("|", 3), "xor": ("^", 3), "shl": ("<<", 3), "shr": (">>", 3),
}  # fmt: skip
_AXES = "ijklmnpqrtuvw"
_WHOLE = 9


@dataclass(frozen=True)
class Named(Leaf):
    """An integer in a formula: a coordinate, or an element of a tensor of integers."""

    text: str
    extent: int

    @property
    def key(self) -> str:
        return f"|{self.text}"

    def __repr__(self) -> str:
        return self.text

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value."""
        return 0, max(self.extent - 1, 0)


def index_text(index: Any) -> str:
    """An index expression with names for its atoms."""

    def atom(one: Any, first: bool) -> str:
        if isinstance(one, Named | str):
            return str(one if isinstance(one, str) else one.text)
        if hasattr(one, "op"):
            left, right = index_text(one.left), index_text(one.right)
            if one.op in ("min", "max"):
                return f"{one.op}({left}, {right})"
            inner = f"{_bracketed(left)} {one.op} {_bracketed(right)}"
            return inner if first else f"({inner})"
        return repr(one)

    return written(index, atom, str)


def _bracketed(text: str) -> str:
    return f"({text})" if any(c in text for c in " -") else text


class Notation:
    """Writes formulas; `lines` are the named sums, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._known: dict[str, str] = {}
        self._kept: list[v.Value] = []

    def result(self, name: str, value: v.Value) -> None:
        """The formula of a result."""
        at = self._coordinates(value.shape, 0)
        body, _ = self.element(value, tuple(map(_place, at)))
        left = f"{name}[{', '.join(a.text for a in at)}]" if at else name
        self.lines.append(f"{left} = {body}{_ranges(at)}")

    def _coordinates(self, shape: Any, used: int) -> list[Named]:
        """Names for coordinates; one that never moves has none."""
        made = []
        for e in shape:
            letter = _AXES[used % len(_AXES)] + (str(used // len(_AXES)) if used >= len(_AXES) else "")
            made.append(Named(letter if e != 1 else "0", int(e)))
            used += e != 1
        return made

    def element(self, value: v.Value, at: Any) -> tuple[str, int]:
        """The element at coordinates, and how tightly its text binds."""
        at = tuple(poly(0) if e == 1 else c for c, e in zip(at, value.shape, strict=True))
        match value:
            case v.Leaf():
                return (f"{value.tensor}[{', '.join(map(index_text, at))}]" if at else value.tensor), _WHOLE
            case v.Const():
                return number_text(value.value, value.dtype), _WHOLE if "-" not in str(value.value) else 6
            case v.Position():
                text = index_text(at[value.axis])
                return text, _WHOLE if text.isidentifier() else 4
            case v.Map():
                return self._map(value, at)
            case v.View():
                return self._view(value, at)
            case v.Gather():
                return self._gather(value, at)
            case v.Concat():
                return self._concat(value, at)
            case v.Reduce() | v.ArgReduce() | v.Scan():
                return _picked(self._named(value), value.shape, at), _WHOLE
        return _picked(self._opaque(value), value.shape, at), _WHOLE

    def _map(self, value: v.Map, at: Any) -> tuple[str, int]:
        parts = [self.element(a, at[len(at) - len(a.shape) :]) for a in value.args]
        if value.op == "cast":
            source = value.args[0].dtype
            wider = value.dtype.is_float and (not source.is_float or source.size <= value.dtype.size)
            if wider or value.dtype == source or (not value.dtype.is_float and not source.is_float):
                return parts[0]
            return f"{value.dtype.value}({parts[0][0]})", _WHOLE
        if value.op == "where":
            c, a, b = parts
            return f"{_wrapped(a, 1)} if {_wrapped(c, 1)} else {_wrapped(b, 0)}", 0
        if value.op == "neg":
            return f"-{_wrapped(parts[0], 6)}", 6
        if value.op == "logical_not":
            return f"not {_wrapped(parts[0], 3)}", 2
        if value.op in SYMBOLS:
            sign, level = SYMBOLS[value.op]
            tighter = level + (value.op in ("sub", "div", "floordiv", "mod", "shl", "shr"))
            return f"{_wrapped(parts[0], level)} {sign} {_wrapped(parts[1], tighter)}", level
        return f"{value.op}({', '.join(text for text, _ in parts)})", _WHOLE

    def _view(self, value: v.View, at: Any) -> tuple[str, int]:
        moved = value.move(at)
        body = self.element(value.source, moved)
        if value.fill is None:
            return body
        inside = []
        for c, e in zip(moved, value.source.shape, strict=True):
            text = index_text(c)
            if not text.isidentifier() and not text.isdigit():
                inside.append(f"0 <= {text} < {e}")
        return (f"{_wrapped(body, 1)} if {' and '.join(inside)} else {value.fill}", 0) if inside else body

    def _gather(self, value: v.Gather, at: Any) -> tuple[str, int]:
        def read(number: int, coords: Any, extent: Any) -> Any:
            text, _ = self.element(value.indices[number], coords)
            return poly(Named(text, int(extent)))

        return self.element(value.source, value.build(at, read))

    def _concat(self, value: v.Concat, at: Any) -> tuple[str, int]:
        start, pieces = 0, []
        for part in value.parts:
            moved = list(at)
            moved[value.axis] = at[value.axis] - start
            start += int(part.shape[value.axis])
            pieces.append((self.element(part, tuple(moved)), start))
        text = _wrapped(pieces[-1][0], 0)
        for body, limit in reversed(pieces[:-1]):
            text = f"{_wrapped(body, 1)} if {index_text(at[value.axis])} < {limit} else {text}"
        return text, 0

    # ------------------------------------------------------------ sums and their kin

    def _named(self, value: Any) -> str:
        """A reduction under a name of its own."""
        if id(value) in self._names:
            return self._names[id(value)]
        at = self._coordinates(value.shape, 0)
        if isinstance(value, v.Scan):
            source = [_place(a) for a in at]
            name = Named(at[value.axis].text + "'", at[value.axis].extent)
            source[value.axis] = poly(name)
            sign = ("<" if value.exclusive else "<=") if not value.reverse else (">" if value.exclusive else ">=")
            body, level = self.element(value.source, tuple(source))
            text = f"{value.op}[{name.text} {sign} {at[value.axis].text}] {_wrapped((body, level), 5)}"
        else:
            gone = value.axes if isinstance(value, v.Reduce) else (value.axis,)
            new = self._coordinates([value.source.shape[k] for k in gone], sum(a.extent != 1 for a in at))
            kept, over = iter(at), iter(new)
            source = [_place(next(over)) if k in gone else _place(next(kept)) for k in range(len(value.source.shape))]
            body, level = self.element(value.source, tuple(source))
            ranges = ", ".join(f"{n.text} < {n.extent}" for n in new if n.extent != 1)
            prefix = "arg" if isinstance(value, v.ArgReduce) else ""
            text = f"{prefix}{value.op}[{ranges}] {_wrapped((body, level), 5)}"
        return self._line(value, at, text)

    def _opaque(self, value: v.Value) -> str:
        """What is no formula of single elements: a sort, a product that torch's operators asked for."""
        if id(value) in self._names:
            return self._names[id(value)]
        given = []
        for source in value.sources():
            at = self._coordinates(source.shape, 0)
            given.append(self.element(source, tuple(map(_place, at)))[0])
        return self._line(
            value, self._coordinates(value.shape, 0), f"{value.origin or type(value).__name__}({', '.join(given)})"
        )

    def _line(self, value: v.Value, at: list[Named], text: str) -> str:
        key = f"{_indexed('', at)} = {text}{_ranges(at)}"
        if key not in self._known:
            self._known[key] = f"s{len(self._known)}"
            self.lines.append(f"{_indexed(self._known[key], at)} = {text}{_ranges(at)}")
        self._names[id(value)] = self._known[key]
        self._kept.append(value)
        return self._known[key]


def _place(axis: Named) -> Any:
    return poly(axis) if axis.extent != 1 else poly(0)


def _indexed(name: str, at: list[Named]) -> str:
    moving = [a.text for a in at if a.extent != 1]
    return f"{name}[{', '.join(moving)}]" if moving else name


def _picked(name: str, shape: Any, at: Any) -> str:
    moving = [index_text(c) for c, e in zip(at, shape, strict=True) if e != 1]
    return f"{name}[{', '.join(moving)}]" if moving else name


def _ranges(at: list[Named]) -> str:
    found = [f"{a.text} < {a.extent}" for a in at if a.extent != 1]
    return f"    for {', '.join(found)}" if found else ""


def _wrapped(part: tuple[str, int], level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


def number_text(value: Any, dtype: DType) -> str:
    """A number with as many digits as its type holds."""
    return str(np.float32(value)) if isinstance(value, float) and dtype.size <= 4 else str(value)
