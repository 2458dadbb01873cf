"""Lines of a Triton kernel while they are written: expressions with their block dimensions, and the loops they stand in.

An `Expr` is a text whose value has a tensor axis for each of its `dims` (none: a scalar). All tensors of a kernel keep the one order
of dimensions that `Writer.order` has, so that two of them only ever need new axes to meet, never a transposition. An expression is
written into the innermost loop that something in it belongs to, and known by a key until that loop ends.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from kernelwright.compiler.backends.triton.plan import Dim
from kernelwright.sketch.index import Atom, Opaque, Poly, Ranges, written
from kernelwright.sketch.nodes import DType

TAKEN = frozenset(
    {
        *keyword.kwlist,
        "tl",
        "triton",
        "torch",
        "libdevice",
        "min",
        "max",
        "range",
        "float",
        "int",
        "abs",
        "pid",
        "sum",
        "math",
        "nn",
    }
)


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
    """Writes expressions into frames."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.frames = [Frame(1)]
        self.order: dict[str, int] = {}
        self.dims: dict[str, Dim] = {}
        self.names: dict[str, Name] = {}
        self.known: dict[Hashable, Expr] = {}
        self.taken: set[str] = set(TAKEN)
        self.labels: dict[str, str] = {}
        self.constants: dict[str, int] = {}
        """Block sizes by the name of their constexpr parameter."""
        self.spread: dict[str, tuple[str, str, int]] = {}
        """Names whose positions are a program's number times a block, and those inside of it: number, block size, step."""

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
        """The expression behind a variable."""
        if expr.atom:
            return expr
        name = self.fresh(hint)
        self.line(f"{name} = {expr.text}", expr.level)
        return Expr(name, expr.dims, expr.dtype, expr.level)

    def shaped(self, expr: Expr, dims: tuple[str, ...]) -> str:
        """The text with an axis for each of `dims`."""
        if not expr.dims or expr.dims == dims:
            return expr.text
        expr = self.named(expr)
        axes = ", ".join(":" if dim in expr.dims else "None" for dim in dims)
        return f"{expr.text}[{axes}]"

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
        self.constants[name] = self.dims[dim].size
        return name

    def sizes(self, dims: tuple[str, ...]) -> str:
        return f"[{', '.join(map(self.size, dims))}]"

    def filled(self, expr: Expr, dims: tuple[str, ...]) -> str:
        """The text as a tensor over exactly these dimensions."""
        from kernelwright.compiler.backends.triton.op_table import TYPE

        if expr.dims == dims and dims:
            return expr.text
        if not expr.dims:
            return f"tl.full({self.sizes(dims)}, {expr.text}, {TYPE[expr.dtype]})" if dims else expr.text
        return f"tl.broadcast_to({self.shaped(expr, dims)}, {self.sizes(dims)})"

    def apply(self, template: str, args: Sequence[Expr], dtype: DType, hint: str = "t") -> Expr:
        """An operation on expressions: holes {0}, {1} … are filled with operands of one shape."""
        args = [arg if arg.atom else self.named(arg) for arg in args]
        dims = self.union(*args)
        texts = [self.shaped(arg, dims) for arg in args]
        level = max((arg.level for arg in args), default=0)
        return self.named(Expr(template.format(*texts), dims, dtype, level), hint)

    # ------------------------------------------------------------ positions

    def index(self, p: Poly) -> Expr:
        """A polynomial of positions as an integer expression."""
        key = ("index", p)
        if key not in self.known:
            names = [self.names[name] for name in p.names]
            dims = self.sorted([dim for name in names for dim in name.dims])
            level = max((name.level for name in names), default=0)
            self.known[key] = Expr(self._poly(p, dims), dims, DType.i32, level)
        return self.known[key]

    def place(self, p: Poly, dims: tuple[str, ...]) -> str:
        """A polynomial's text over these dimensions."""
        return self._poly(p, dims)

    def address(self, pointer: str, offset: Poly, dims: tuple[str, ...]) -> str:
        """Pointers over these dimensions. What is the same for the whole block is added up first, as one number: the compiler for Ascend
        does not take a constant beside a stride of two otherwise."""
        same = Poly(tuple(term for term in offset.terms if not self.dims_of(Poly((term,)))))
        own = Poly(tuple(term for term in offset.terms if term not in same.terms))
        constant = dict(same.terms).get((), 0)
        if same.names and constant and own.terms:
            return f"{pointer} + ({self._poly(same, ())}){_signed(self._poly(own, dims))}"
        spread = next((term for term in own.terms if len(term[0]) == 1 and term[0][0] in self.spread and term[1] > 0), None)
        if constant and spread and any(count == 2 for _, count in own.terms):
            (name,), count = spread
            number, size, step = self.spread[str(name)]
            first = f"{number} * {size} * {count * step}{_signed(str(constant))}"
            inside = self.shaped(Expr(f"tl.arange(0, {size})", self.names[str(name)].dims, DType.i32, 0), dims)
            rest = Poly(tuple(term for term in own.terms if term != spread))
            return f"{pointer} + ({first}) + {inside} * {count * step}{_signed(self._poly(rest, dims)) if rest.terms else ''}"
        return f"{pointer} + {self._poly(offset, dims)}" if offset.terms else pointer

    def level_of(self, p: Poly) -> int:
        return max((self.names[name].level for name in p.names), default=0)

    def dims_of(self, p: Poly) -> tuple[str, ...]:
        return self.sorted([dim for name in p.names for dim in self.names[name].dims])

    def _poly(self, p: Poly, dims: tuple[str, ...]) -> str:
        return written(p, lambda atom, _: self._atom(atom, dims), str)

    def _atom(self, atom: Atom, dims: tuple[str, ...]) -> str:
        if isinstance(atom, Opaque):
            return self.shaped(self._quotient(atom), dims)
        name = self.names[str(atom)]
        return self.shaped(Expr(name.text, name.dims, DType.i32, name.level), dims)

    def _quotient(self, atom: Opaque) -> Expr:
        """A quotient, remainder, minimum or maximum, behind a variable: it stands in offsets and masks alike."""
        key = ("atom", atom)
        if key not in self.known:
            whole = Poly((((atom,), 1),))
            own = self.dims_of(whole)
            left, right = self._poly(atom.left, own), self._poly(atom.right, own)
            if atom.op in ("min", "max"):
                text = f"tl.{atom.op}imum({left}, {right})"
            elif self.ranges.nonnegative(atom.left) or self._runtime(atom.left):
                text = f"{_closed(left)} {atom.op} {_closed(right)}"
            else:
                text = self._floored(atom, left, right)
            hint = {"//": "quotient", "%": "rest", "min": "lower", "max": "upper"}[atom.op]
            self.known[key] = self.named(Expr(text, own, DType.i32, self.level_of(whole)), hint)
        return self.known[key]

    def _runtime(self, p: Poly) -> bool:
        """Picked positions are inside their tensor, or masked."""
        return any(name.startswith("@") for name in p.names)

    def _floored(self, atom: Opaque, left: str, right: str) -> str:
        """Triton divides towards zero: what may be negative is lifted by a multiple of the divisor first."""
        low, divisor = self.ranges.lower(atom.left), atom.right.constant
        if low is not None and low.constant is not None and divisor:
            lift = -(low.constant // divisor)
            if atom.op == "%":
                return f"({left} + {lift * divisor}) % {divisor}"
            return f"({left} + {lift * divisor}) // {divisor} - {lift}"
        return f"_floor_{'div' if atom.op == '//' else 'mod'}({left}, {right})"

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
                return f"({self._poly(rest, dims)} < {limit + 1})"
        return f"({self._poly(left, dims)} >= {self._poly(right, dims)})"


def _signed(text: str) -> str:
    """A text as what is added next."""
    return f" - {text[1:]}" if text.startswith("-") else f" + {text}"


def _closed(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"
