"""Sizes that vary, as torch.export records them, in the designer's own algebra.

In: example inputs and a `Dynamic` (core/task/dynamic.py): which sizes vary, and how far. Out: what torch.export is to be called with; and
of what it found, a `Sizes`: the Region of the design, and every SymInt as a `Size` of it. A size that was to vary and that forward fixes
is refused by name; what the module demands of sizes narrows the region.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.symbolic import Extent, Region, Size, SizeLeaf, largest, size_poly, smallest
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol
from kernelwright.sketch.index import Leaf, Poly, Ranges, poly
from kernelwright.sketch.nodes import DType

LEAST = 2
"""torch.export takes 0 and 1 for special sizes, so a module is recorded at larger ones; what it records holds for these, too."""
SAMPLES = (2, 3, 4, 5, 6, 7, 8, 13, 16, 31, 64, 127, 1000, 4097, 1_000_003)
MOST_SAMPLES = 2000


def recording_inputs(inputs: Sequence[Any], dynamic: Dynamic) -> tuple[Any, ...]:
    """The inputs at sizes that are told apart: no two symbols have one value, and none is 0 or 1."""
    import torch
    import torch.utils._pytree as pytree

    leaves, tree = pytree.tree_flatten(tuple(inputs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    sizes = _told_apart(dynamic.symbols)
    for place, shape in zip(places, dynamic.shapes([leaves[place].shape for place in places], sizes), strict=True):
        if tuple(leaves[place].shape) != shape:
            leaves[place] = leaves[place].new_zeros(shape)
    made: tuple[Any, ...] = pytree.tree_unflatten(leaves, tree)
    return made


def _told_apart(symbols: Sequence[SizeSymbol]) -> dict[str, int]:
    taken: set[int] = set()
    sizes = {}
    for symbol in symbols:
        start = max(symbol.example, LEAST, symbol.low)
        first = -(-start // symbol.divisor) * symbol.divisor
        free = (n for n in itertools.count(first, symbol.divisor) if n not in taken)
        chosen = next(free)
        sizes[symbol.name] = chosen if symbol.high is None or chosen <= symbol.high else symbol.example
        taken.add(sizes[symbol.name])
    return sizes


def dynamic_shapes(model: Any, inputs: Sequence[Any], keywords: dict[str, Any], dynamic: Dynamic) -> Any:
    """What torch.export is told about the inputs: which axes may vary. How they hang together it finds by itself."""
    import torch
    import torch.utils._pytree as pytree
    from torch.export import Dim

    named = inspect.signature(model.forward).bind(*inputs, **keywords).arguments
    leaves, tree = pytree.tree_flatten(dict(named))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    said: list[Any] = [None] * len(leaves)
    for leaf, axis, _ in dynamic.dims:
        place = places[leaf]
        said[place] = {**(said[place] or {}), axis: Dim.AUTO}
    return pytree.tree_unflatten(said, tree)


@dataclass
class Sizes:
    """SymInts as sizes: `known` are torch's symbols by name."""

    region: Region = field(default_factory=Region)
    known: dict[str, Extent] = field(default_factory=dict)

    @staticmethod
    def of(program: Any, inputs: Sequence[Any], dynamic: Dynamic) -> Sizes:
        """The sizes of a recorded program."""
        made = Sizes()
        fakes = _input_fakes(program)
        for leaf, axis, name in dynamic.dims:
            made._declare(fakes[leaf].shape[axis], dynamic, name, (leaf, axis))
        environment = next((e.node.shape_env for fake in fakes for e in fake.shape if hasattr(e, "node")), None)
        if environment is not None:
            made._narrow(environment)
        return made

    def _declare(self, extent: Any, dynamic: Dynamic, name: str, place: tuple[int, int]) -> None:
        import sympy  # type: ignore[import-untyped]

        symbol = dynamic.symbol(name)
        if not hasattr(extent, "node") or extent.node.expr.is_number:
            raise UnsupportedOperator(
                "a dynamic size",
                f"{dynamic.label(name)} cannot vary: forward is recorded for {int(extent)} there and nothing else",
            )
        expression = extent.node.expr
        if isinstance(expression, sympy.Symbol) and str(expression) not in self.known:
            self.known[str(expression)] = self._size(symbol)

    def _size(self, symbol: SizeSymbol) -> Extent:
        """A symbol that is a multiple of a number is that number times a size of its own."""
        by = symbol.divisor
        name = symbol.name if by == 1 else f"{symbol.name}_{by}"
        if name in self.region.sizes:
            return Size(poly(self.region.sizes[name]), self.region) * by
        low, high = -(-symbol.low // by), None if symbol.high is None else symbol.high // by
        return self.region.size(name, max(symbol.example // by, min(LEAST, high or LEAST)), low, high) * by

    def _narrow(self, environment: Any) -> None:
        """What forward demands of the sizes, beyond what torch takes for granted."""
        import sympy

        assumed = Ranges(
            {leaf: (max(leaf.low, LEAST), leaf.high) for leaf in self.region.sizes.values()}, others=None
        )  # fmt: skip
        for guard in environment.guards:
            found = guard.expr
            if isinstance(found, sympy.Ne) or not all(str(s) in self.known for s in found.free_symbols):
                continue
            if isinstance(found, sympy.Rel):
                gap = size_poly(self.extent_of(found.lhs)) - size_poly(self.extent_of(found.rhs))
                if isinstance(found, sympy.Eq):
                    if not all(value == 0 for value in self._samples(gap)):
                        raise UnsupportedOperator("these dynamic sizes", f"forward demands {found}, which they do not keep")
                    continue
                if isinstance(found, sympy.Lt | sympy.Le):
                    gap = gap * -1
                if isinstance(found, sympy.Lt | sympy.Gt):
                    gap = gap - 1
                special = found.rhs.is_number and abs(int(found.rhs)) <= LEAST and not found.lhs.is_Symbol
                if not special and not assumed.nonnegative(gap) and any(value < 0 for value in self._samples(gap)):
                    self.region.conditions[gap] = None

    def _samples(self, demand: Poly) -> list[int]:
        """What an expression is at many sizes of the region: what torch demands of sizes is mostly about strides, and always holds."""
        leaves = sorted((leaf for leaf in demand.leaves if isinstance(leaf, SizeLeaf)), key=lambda leaf: leaf.name)
        tried = [[n for n in SAMPLES if n >= leaf.low and (leaf.high is None or n <= leaf.high)] for leaf in leaves]
        values = itertools.islice(itertools.product(*tried), MOST_SAMPLES)
        found = []
        for numbers in values:
            given: dict[Leaf, Poly] = {leaf: poly(n) for leaf, n in zip(leaves, numbers, strict=True)}
            found.append(demand.substitute(given).constant)
        return [value for value in found if value is not None]

    # ---- expressions

    def extent(self, value: Any) -> Extent:
        """An int or SymInt as an extent."""
        return self.extent_of(value.node.expr) if hasattr(value, "node") else int(value)

    def extent_of(self, expression: Any) -> Extent:
        """One of torch's expressions over its symbols."""
        import sympy

        if isinstance(expression, sympy.Symbol):
            if str(expression) not in self.known:
                raise UnsupportedOperator("a size that depends on values", f"{expression} is known only when forward has run")
            return self.known[str(expression)]
        if isinstance(expression, sympy.Integer | int):
            return int(expression)
        parts = [self.extent_of(part) for part in expression.args]
        match type(expression).__name__:
            case "Add":
                return sum(parts)
            case "Mul":
                return math.prod(parts)
            case "FloorDiv" | "CleanDiv":
                return parts[0] // parts[1]
            case "Mod" | "PythonMod":
                return parts[0] % parts[1]
            case "Max":
                return _all(largest, parts)
            case "Min":
                return _all(smallest, parts)
            case "Pow" if isinstance(parts[1], int) and parts[1] > 0:
                return math.prod([parts[0]] * parts[1])
        raise UnsupportedOperator("a dynamic size", f"the arithmetic of {expression}")

    def number_of(self, expression: Any) -> v.Value | float:
        """A float that depends on sizes, as a value without axes."""
        import sympy

        if expression.is_number:
            return float(expression)
        if isinstance(expression, sympy.Symbol) or expression.is_integer:
            return b.const(self.extent_of(expression), DType.f64)
        parts = [self.number_of(part) for part in expression.args]
        kind = type(expression).__name__
        if kind in ("ToFloat", "Identity"):
            return parts[0]
        if kind in ("Add", "Mul", "IntTrueDiv", "FloatTrueDiv", "FloatPow", "Pow"):
            op = {"Add": "add", "Mul": "mul", "FloatPow": "pow", "Pow": "pow"}.get(kind, "div")
            values = [part if isinstance(part, v.Value) else b.const(part, DType.f64) for part in parts]
            total = values[0]
            for value in values[1:]:
                total = b.apply(op, total, value)
            return total
        if kind == "OpaqueUnaryFn_sqrt":
            return b.apply("sqrt", parts[0])
        raise UnsupportedOperator("a dynamic size", f"the arithmetic of {expression}")


def _all(either: Any, parts: list[Extent]) -> Extent:
    found = parts[0]
    for part in parts[1:]:
        found = either(found, part)
    return found


def _input_fakes(program: Any) -> list[Any]:
    """The tensors among the inputs, in order, as torch recorded them."""
    import torch
    from torch.export.graph_signature import InputKind

    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    found = [nodes[s.arg.name].meta.get("val") for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    return [fake for fake in found if isinstance(fake, torch.Tensor)]
