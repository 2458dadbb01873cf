"""Lines of a tile program while they are written: expressions with their block dimensions, and the loops they stand in.

An `Expr` is a text whose value has an axis for each of its `dims` (none: a scalar). All tiles of a kernel keep the one order of
dimensions that `Writer.order` has, so that two of them only ever need new axes to meet, never a transposition. An expression is
written into the innermost loop that something in it belongs to, and known by a key until that loop ends. How expressions meet, and how
a position is spelled, is the language's (`named`, `shaped`, `filled`, `apply`, `index`, `quotient`).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from kernelwright.compiler.lower.tile_programs.plan import Dim
from kernelwright.sketch.index import Atom, Opaque, Poly, Ranges, written
from kernelwright.sketch.nodes import DType

TAKEN = frozenset({*keyword.kwlist, "torch", "min", "max", "range", "float", "int", "abs", "pid", "sum", "math", "nn"})
"""Names that no tile may have, in any language."""


@dataclass(frozen=True)
class Expr:
    """A text, its dimensions (sorted), its dtype, and the depth of the loop it depends on."""

    text: str
    dims: tuple[str, ...]
    dtype: DType
    level: int

    @property
    def atom(self) -> bool:
        """Whether the text can stand in an operation as it is."""
        return re.fullmatch(r'[A-Za-z_]\w*|-?[\d.]+(e[-+]?\d+)?|-?float\("(inf|nan)"\)', self.text) is not None


@dataclass
class Frame:
    """The body of a loop (or of the kernel) that is being written."""

    indent: int
    lines: list[str] = field(default_factory=list)


@dataclass
class Name:
    """What an index name means: a scalar, or a tensor over dimensions."""

    text: str
    dims: tuple[str, ...]
    level: int


class Writer:
    """Writes expressions into frames. `taken` are names that the language has."""

    def __init__(self, ranges: Ranges, taken: Iterable[str] = ()) -> None:
        self.ranges = ranges
        self.frames = [Frame(1)]
        self.order: dict[str, float] = {}
        self.dims: dict[str, Dim] = {}
        self.names: dict[str, Name] = {}
        self.known: dict[Hashable, Expr] = {}
        self.taken: set[str] = {*TAKEN, *taken}
        self.labels: dict[str, str] = {}
        self.constants: dict[str, Dim] = {}
        """Dimensions by the name of the constexpr parameter that is their block size."""

    # ------------------------------------------------------------ frames

    @property
    def depth(self) -> int:
        return len(self.frames) - 1

    def open(self) -> Frame:
        """A loop's body begins."""
        frame = Frame(self.frames[-1].indent + 1)
        self.frames.append(frame)
        return frame

    def close(self, head: str) -> None:
        """The loop ends: its body goes into the frame around it, and what was known inside is forgotten."""
        frame = self.frames.pop()
        depth = len(self.frames)
        self.frames[-1].lines += [
            f"{'    ' * self.frames[-1].indent}{head}",
            *(frame.lines or [f"{'    ' * frame.indent}pass"]),
        ]
        self.known = {key: expr for key, expr in self.known.items() if expr.level < depth}

    def line(self, text: str, level: int | None = None) -> None:
        frame = self.frames[self.depth if level is None else level]
        frame.lines.append(f"{'    ' * frame.indent}{text}")

    def fresh(self, stem: str) -> str:
        """A name that nothing in this kernel has."""
        stem = stem if stem.isidentifier() else "t"
        name, k = stem, 1
        while name in self.taken:
            k += 1
            name = f"{stem}_{k}"
        self.taken.add(name)
        return name

    # ------------------------------------------------------------ expressions

    def sorted(self, dims: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(set(dims), key=lambda name: self.order[name]))

    def union(self, *exprs: Expr) -> tuple[str, ...]:
        return self.sorted([dim for expr in exprs for dim in expr.dims])

    def named(self, expr: Expr, hint: str = "t") -> Expr:
        """The expression behind a variable, where it is more than a name."""
        raise NotImplementedError

    def shaped(self, expr: Expr, dims: tuple[str, ...]) -> str:
        """The text with an axis for each of `dims`."""
        raise NotImplementedError

    def filled(self, expr: Expr, dims: tuple[str, ...]) -> str:
        """The text as a tile over exactly these dimensions."""
        raise NotImplementedError

    def apply(self, template: str, args: Sequence[Expr], dtype: DType, hint: str = "t") -> Expr:
        """An operation on expressions: holes {0}, {1} … are filled with operands of one shape."""
        raise NotImplementedError

    def index(self, p: Poly) -> Expr:
        """A polynomial of positions as an integer expression."""
        raise NotImplementedError

    def quotient(self, atom: Opaque) -> Expr:
        """A quotient, remainder, minimum or maximum of positions."""
        raise NotImplementedError

    def label(self, dim: str) -> str:
        """A dimension's variable: k for what is summed over, m, n … for the others."""
        if dim not in self.labels:
            letters = "k" if dim[:1] in "rk" else "mnpquvwxyz"
            free = next((letter for letter in letters if letter not in self.taken), letters[0])
            self.labels[dim] = self.fresh(free)
        return self.labels[dim]

    def size(self, dim: str) -> str:
        """A dimension's block size: a constexpr parameter of the kernel."""
        name = f"BLOCK_{self.label(dim).upper()}"
        self.constants[name] = self.dims[dim]
        return name

    # ------------------------------------------------------------ positions

    def place(self, p: Poly, dims: tuple[str, ...]) -> str:
        """A polynomial's text over these dimensions."""
        return written(p, lambda atom, _: self._atom(atom, dims), str)

    def _atom(self, atom: Atom, dims: tuple[str, ...]) -> str:
        if isinstance(atom, Opaque):
            return self.shaped(self.quotient(atom), dims)
        name = self.names[str(atom)]
        return self.shaped(Expr(name.text, name.dims, DType.i32, name.level), dims)

    def level_of(self, p: Poly) -> int:
        return max((self.names[name].level for name in p.names), default=0)

    def dims_of(self, p: Poly) -> tuple[str, ...]:
        return self.sorted([dim for name in p.names for dim in self.names[name].dims])

    def condition(self, p: Poly, dims: tuple[str, ...]) -> str:
        """`p >= 0` with no negative term on either side."""
        left = Poly(tuple(term for term in p.terms if term[1] > 0))
        right = Poly(tuple((monomial, -count) for monomial, count in p.terms if count < 0))
        constant = -dict(right.terms).get((), 0)
        rest = Poly(tuple(term for term in right.terms if term[0]))
        if constant == 0 and left.terms and dict(left.terms).get(()) and rest.terms:
            limit = dict(left.terms)[()]
            others = Poly(tuple(term for term in left.terms if term[0]))
            if not others.terms:
                return f"({self.place(rest, dims)} < {limit + 1})"
        if constant == -1 and left.terms:
            return f"({self.place(rest, dims)} < {self.place(left, dims)})"
        return f"({self.place(left, dims)} >= {self.place(right, dims)})"
