"""Lines of a Triton kernel while they are written: every expression is a tensor with an axis for each of its block dimensions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelwright.compiler.backends.triton.op_table import TYPE
from kernelwright.compiler.lower.element_index import is_picked
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name, Writer
from kernelwright.sketch.index import Atom, Opaque, Poly, Ranges, poly
from kernelwright.sketch.nodes import DType


class TensorWriter(Writer):
    """Writes expressions of tensors."""

    def __init__(self, ranges: Ranges) -> None:
        super().__init__(ranges, ("tl", "triton", "libdevice"))
        self.spread: dict[str, tuple[str, str, int]] = {}
        """Names whose positions are a program's number times a block, and those inside of it: number, block size, step."""
        self.tiles: dict[str, tuple[str, int | None]] = {}
        """Parallel loops: which part of the grid a program is, and the step."""
        self._later: dict[str, str] = {}

    # ------------------------------------------------------------ expressions

    def named(self, expr: Expr, hint: str = "t") -> Expr:
        """The expression behind a variable."""
        if expr.atom:
            return expr
        name = self.fresh(hint)
        self.line(f"{name} = {unwrapped(expr.text)}", expr.level)
        return Expr(name, expr.dims, expr.dtype, expr.level)

    def shaped(self, expr: Expr, dims: tuple[str, ...]) -> str:
        """The text with an axis for each of `dims`."""
        if not expr.dims or expr.dims == dims:
            return expr.text
        expr = self.named(expr)
        axes = ", ".join(":" if dim in expr.dims else "None" for dim in dims)
        return f"{expr.text}[{axes}]"

    def sizes(self, dims: tuple[str, ...]) -> str:
        return f"[{', '.join(map(self.size, dims))}]"

    def filled(self, expr: Expr, dims: tuple[str, ...]) -> str:
        """The text as a tensor over exactly these dimensions."""
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

    def later(self, stem: str, text: str) -> str:
        """A name whose line is written when it is first used."""
        name = self.fresh(stem)
        self._later[name] = text
        return name

    def place(self, p: Poly, dims: tuple[str, ...]) -> str:
        return super().place(self._joined(p), dims)

    def _atom(self, atom: Atom, dims: tuple[str, ...]) -> str:
        name = self.names.get(str(atom)) if not isinstance(atom, Opaque) else None
        if name is not None:
            self.needed(name.text)
        return super()._atom(atom, dims)

    def needed(self, name: str) -> None:
        """Writes the line of a name that waits for its first use."""
        if name in self._later:
            self.line(f"{name} = {self._later.pop(name)}", 0)

    def _joined(self, p: Poly) -> Poly:
        """Where a program's tile begins and the places inside of it as one vector of positions: `offs_m`."""
        terms = {monomial[0]: count for monomial, count in p.terms if len(monomial) == 1}
        for var, (start, step) in self.tiles.items():
            count = terms.get(var)
            dim = next(
                (d for d in terms if d in self.dims and count and terms[d] == count and not self.dims[str(d)].walk), None
            )
            if count is None or dim is None:
                continue
            name = f"{var}+{dim}"
            if name not in self.names:
                label, size = self.label(str(dim)), self.size(str(dim))
                if step == self.dims[str(dim)].size:
                    begin = f"{start} * {size}"
                else:
                    begin = self.names[var].text
                    self.needed(begin)
                text = self._free(str(dim)) or self.fresh(f"offs_{label}")
                self.line(f"{text} = {begin} + tl.arange(0, {size})", 0)
                self.names[name] = Name(text, (str(dim),), 0)
            p = p + (poly(name) - poly(var) - poly(str(dim))) * count
        return p

    def _free(self, dim: str) -> str:
        """The name of a dimension's own positions, if nothing needed them yet; they get another."""
        name = self.names[dim]
        if name.text not in self._later:
            return ""
        other = self.fresh(f"lanes_{self.label(dim)}")
        self._later[other] = self._later.pop(name.text)
        self.names[dim] = Name(other, name.dims, name.level)
        return name.text

    def label(self, dim: str) -> str:
        """A dimension's letter: k for what is summed over, m, n … for the others."""
        if dim not in self.labels:
            letters = "k" if dim[:1] in "rk" else "mnpquvwxyz"
            taken = set(self.labels.values())
            free = next((letter for letter in letters if letter not in taken), "")
            self.labels[dim] = free or next(f"{letters[0]}_{k}" for k in range(2, 99) if f"{letters[0]}_{k}" not in taken)
        return self.labels[dim]

    def index(self, p: Poly) -> Expr:
        """A polynomial of positions as an integer expression."""
        key = ("index", p)
        if key not in self.known:
            names = [self.names[name] for name in p.names]
            dims = self.sorted([dim for name in names for dim in name.dims])
            level = max((name.level for name in names), default=0)
            self.known[key] = Expr(self.place(p, dims), dims, DType.i32, level)
        return self.known[key]

    def address(self, pointer: str, offset: Poly, dims: tuple[str, ...]) -> str:
        """Pointers over these dimensions. What is the same for the whole block is added up first, as one number: the compiler for Ascend
        does not take a constant beside a stride of two otherwise."""
        offset = self._joined(offset)
        same = Poly(tuple(term for term in offset.terms if not self.dims_of(Poly((term,)))))
        own = Poly(tuple(term for term in offset.terms if term not in same.terms))
        constant = dict(same.terms).get((), 0)
        if same.names and constant and own.terms:
            return f"{pointer} + ({self.place(same, ())}){_signed(self.place(own, dims))}"
        spread = next((term for term in own.terms if len(term[0]) == 1 and term[0][0] in self.spread and term[1] > 0), None)
        if constant and spread and any(count == 2 for _, count in own.terms):
            (name,), count = spread
            number, size, step = self.spread[str(name)]
            first = f"{number} * {size} * {count * step}{_signed(str(constant))}"
            inside = self.shaped(Expr(f"tl.arange(0, {size})", self.names[str(name)].dims, DType.i32, 0), dims)
            rest = Poly(tuple(term for term in own.terms if term != spread))
            return f"{pointer} + ({first}) + {inside} * {count * step}{_signed(self.place(rest, dims)) if rest.terms else ''}"
        return f"{pointer} + {self.place(offset, dims)}" if offset.terms else pointer

    def quotient(self, atom: Opaque) -> Expr:
        """A quotient, remainder, minimum or maximum, behind a variable: it stands in offsets and masks alike."""
        key = ("atom", atom)
        if key not in self.known:
            whole = Poly((((atom,), 1),))
            own = self.dims_of(whole)
            left, right = self.place(atom.left, own), self.place(atom.right, own)
            if atom.op in ("min", "max"):
                text = f"tl.{atom.op}imum({left}, {right})"
            elif self.ranges.nonnegative(atom.left) or _at_run_time(atom.left):
                text = f"{_closed(left)} {atom.op} {_closed(right)}"
            else:
                text = self._floored(atom, left, right)
            hint = {"//": "quotient", "%": "rest", "min": "lower", "max": "upper"}[atom.op]
            self.known[key] = self.named(Expr(text, own, DType.i32, self.level_of(whole)), hint)
        return self.known[key]

    def _floored(self, atom: Opaque, left: str, right: str) -> str:
        """Triton divides towards zero: what may be negative is lifted by a multiple of the divisor first."""
        low, divisor = self.ranges.lower(atom.left), atom.right.constant
        if low is not None and low.constant is not None and divisor:
            lift = -(low.constant // divisor)
            if atom.op == "%":
                return f"({left} + {lift * divisor}) % {divisor}"
            return f"({left} + {lift * divisor}) // {divisor} - {lift}"
        return f"_floor_{'div' if atom.op == '//' else 'mod'}({left}, {right})"


def unwrapped(text: str) -> str:
    """An expression without parentheses around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]


def _signed(text: str) -> str:
    """A text as what is added next."""
    return f" - {text[1:]}" if text.startswith("-") else f" + {text}"


def _closed(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _at_run_time(p: Poly) -> bool:
    """Picked positions are inside their tensor, or masked."""
    return any(is_picked(name) for name in p.names)
