"""Lines of a TileLang kernel while they are written: expressions of one element inside `T.Parallel` loops.

The text of an expression is one element of the tile over its dimensions, and the loop over those is put around the statement that
stores it. Names are written where they are first needed and end with that loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelwright.compiler.lower.tile_programs.lines import Expr, Frame, Writer
from kernelwright.sketch.index import Opaque, Poly, Ranges
from kernelwright.sketch.nodes import DType

_SHORT = re.compile(r'[A-Za-z_]\w*(\[[\w, ]*\])?|-?[\d.]+(e[-+]?\d+)?|-?T\.\w+\((-?[\w.+-]+|"\w+")\)')
TAKEN = ("T", "tilelang", "main", "pid", "tx")
BODY = 3
"""Indentation of a kernel's body: function, prim_func, T.Kernel."""


class ElementWriter(Writer):
    """Writes statements about elements."""

    def __init__(self, ranges: Ranges) -> None:
        super().__init__(ranges, TAKEN)
        self.frames = [Frame(BODY)]
        self.allocations: list[str] = []

    def named(self, expr: Expr, hint: str = "t") -> Expr:
        if _SHORT.fullmatch(expr.text):
            return expr
        name = self.fresh(hint)
        self.line(f"{name} = {expr.text}")
        return Expr(name, expr.dims, expr.dtype, self.depth)

    def shaped(self, expr: Expr, dims: tuple[str, ...]) -> str:
        return expr.text

    def filled(self, expr: Expr, dims: tuple[str, ...]) -> str:
        return expr.text

    def apply(self, template: str, args: Sequence[Expr], dtype: DType, hint: str = "t") -> Expr:
        dims = self.union(*args)
        return self.named(Expr(template.format(*(arg.text for arg in args)), dims, dtype, self.depth), hint)

    def index(self, p: Poly) -> Expr:
        """A polynomial of positions; its text may use names of the loop it stands in."""
        return Expr(f"({self.place(p, ())})" if len(p.terms) > 1 else self.place(p, ()), self.dims_of(p), DType.i32, self.depth)

    def quotient(self, atom: Opaque) -> Expr:
        whole = Poly((((atom,), 1),))
        left, right = self.place(atom.left, ()), self.place(atom.right, ())
        if atom.op in ("min", "max"):
            text = f"T.{atom.op}({left}, {right})"
        elif self.ranges.nonnegative(atom.left):
            text = self.divided(atom.op, left, atom.right)
        else:
            text = f"(({left}) {atom.op} ({right}))"
        return Expr(text, self.dims_of(whole), DType.i32, self.depth)

    def divided(self, op: str, left: str, right: Poly) -> str:
        """A quotient or remainder of what is not negative. TileLang asks for the sign of a divisor that it does not know, thirty
        operations long, where it is to round down."""
        if right.constant is None:
            return f"T.trunc{'div' if op == '//' else 'mod'}({left}, {self.place(right, ())})"
        return f"(({left}) {op} {right.constant})" if not left.isidentifier() else f"({left} {op} {right.constant})"

    def close_around(self, dims: tuple[str, ...]) -> None:
        """Ends a frame of element statements: a parallel loop over its dimensions, or nothing around a single element."""
        if dims:
            names, sizes = ", ".join(map(self.label, dims)), ", ".join(map(self.size, dims))
            self.close(f"for {names} in T.Parallel({sizes}):")
            return
        frame = self.frames.pop()
        depth = len(self.frames)
        self.frames[-1].lines += [line.removeprefix("    ") for line in frame.lines]
        self.known = {key: expr for key, expr in self.known.items() if expr.level < depth}

    def allocate(self, kind: str, hint: str, dims: tuple[str, ...], dtype: str) -> str:
        """A buffer of the block: `fragment` or `shared`."""
        name = self.fresh(hint)
        sizes = ", ".join(map(self.size, dims)) or "1"
        self.allocations.append(f'{name} = T.alloc_{kind}(({sizes}{"," if len(dims) < 2 else ""}), "{dtype}")')
        return name
