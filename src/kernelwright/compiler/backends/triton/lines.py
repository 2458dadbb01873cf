"""Lines of a Triton kernel while they are written: every expression is a tensor with an axis for each of its block dimensions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelwright.compiler.backends.triton.op_table import TYPE
from kernelwright.compiler.lower.element_index import is_picked
from kernelwright.compiler.lower.tile_programs.lines import Expr, Writer
from kernelwright.sketch.index import Opaque, Poly, Ranges
from kernelwright.sketch.nodes import DType


class TensorWriter(Writer):
    """Writes expressions of tensors."""

    def __init__(self, ranges: Ranges) -> None:
        super().__init__(ranges, ("tl", "triton", "libdevice"))
        self.spread: dict[str, tuple[str, str, int]] = {}
        """Names whose positions are a program's number times a block, and those inside of it: number, block size, step."""

    # ------------------------------------------------------------ expressions

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


def _signed(text: str) -> str:
    """A text as what is added next."""
    return f" - {text[1:]}" if text.startswith("-") else f" + {text}"


def _closed(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _at_run_time(p: Poly) -> bool:
    """Picked positions are inside their tensor, or masked."""
    return any(is_picked(name) for name in p.names)
