"""Values of the graph → a function of PyTorch that computes them, with whole tensors."""

from __future__ import annotations

import math
import random
from typing import Any

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.captured import Captured
from kernelwright.compiler.lift.explain.notation import SYMBOLS, Named, index_text, number_text
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.core.operations import BINARY, UNARY
from kernelwright.sketch.index import poly

_REDUCE = {"sum": "sum", "max": "amax", "min": "amin"}
_SCAN = {"sum": "cumsum({}, {})", "prod": "cumprod({}, {})", "max": "cummax({}, {}).values", "min": "cummin({}, {}).values"}
LONGEST = 100
"""Characters of an expression that is not given a name."""


def torch_code(captured: Captured, name: str) -> str:
    """The text of a function of the declared inputs (then of the parameters)."""
    return _Code(captured).text(name)


class _Code:
    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.outputs = [o for o in captured.outputs if isinstance(o, v.Value)]
        self.order = v.topological(list(self.outputs))
        self.uses: dict[int, int] = {}
        for value in self.order:
            for source in value.sources():
                self.uses[id(source)] = self.uses.get(id(source), 0) + 1
        self.lines: list[str] = []
        self.texts: dict[int, str] = {}
        self.count = 0

    def text(self, name: str) -> str:
        constants = dict(self.captured.constants)
        given = [t.name for t in self.captured.tensors if t.role in ("input", "param")]
        for tensor in self.captured.tensors:
            if tensor.role == "constant":
                shape = [int(getattr(e, "value", 0)) for e in tensor.shape]
                numbers = list(constants[tensor.name])
                self.lines.append(
                    f"{tensor.name} = torch.tensor({numbers}, dtype=torch.{tensor.dtype.torch_name}).reshape({shape})"
                )
        for value in self.order:
            self._put(value, self._expression(value))
        made = [
            f"{self.texts[id(o)]}" + ("" if isinstance(o, v.Leaf) else f".expand({list(map(int, o.shape))})")
            for o in self.outputs
        ]
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return {', '.join(made)}"])
        return f"import torch\n\n\ndef {name}({', '.join(given)}):\n{body}\n"

    def _put(self, value: v.Value, text: str) -> None:
        inlined = isinstance(value, v.Leaf | v.Const) or (self.uses.get(id(value), 0) == 1 and len(text) <= LONGEST)
        if not inlined:
            self.lines.append(f"v{self.count} = {text}")
            text = f"v{self.count}"
            self.count += 1
        self.texts[id(value)] = text

    def _of(self, value: v.Value, dtype: Any = None) -> str:
        """A value as an operand, brought to a dtype."""
        text = self.texts[id(value)]
        if isinstance(value, v.Const):
            return text
        return f"{_tight(text)}.to(torch.{dtype.torch_name})" if dtype is not None and dtype != value.dtype else text

    def _tensor(self, value: v.Value) -> str:
        """A value with exactly its shape and dtype."""
        text = self.texts[id(value)]
        shape = list(map(int, value.shape))
        if isinstance(value, v.Const):
            return f"torch.full({shape}, {text}, dtype=torch.{value.dtype.torch_name})"
        if isinstance(value, v.Leaf):
            return text
        return f"{_tight(text)}.expand({shape})" if isinstance(value, v.Map | v.View | v.Position) else _tight(text)

    def _expression(self, value: v.Value) -> str:
        match value:
            case v.Leaf():
                return value.tensor
            case v.Const():
                number = value.value
                return (
                    f"float('{number}')"
                    if isinstance(number, float) and not math.isfinite(number)
                    else number_text(number, value.dtype)
                )
            case v.Position():
                shape = [-1 if k == value.axis else 1 for k in range(len(value.shape))]
                return f"torch.arange({value.shape[value.axis]}).reshape({shape})"
            case v.Map():
                return self._map(value)
            case v.View():
                return self._view(value)
            case v.Reduce():
                return self._reduce(value)
            case v.ArgReduce():
                return f"{self._tensor(value.source)}.arg{value.op}({value.axis})"
            case v.Gather():
                return self._gather(value)
            case v.Concat():
                return f"torch.cat([{', '.join(self._tensor(p) for p in value.parts)}], {value.axis})"
            case v.Scan() if value.op in _SCAN and not value.reverse and not value.exclusive:
                return "torch." + _SCAN[value.op].format(self._tensor(value.source), value.axis)
        raise Refused(0, f"{value.origin or type(value).__name__} is not written as PyTorch code")

    def _map(self, value: v.Map) -> str:
        if value.op == "cast":
            text = self.texts[id(value.args[0])]
            if isinstance(value.args[0], v.Const):
                return f"torch.tensor({text}, dtype=torch.{value.dtype.torch_name})"
            return f"{_tight(text)}.to(torch.{value.dtype.torch_name})"
        args = [self._of(a, value.compute) for a in value.args]
        if value.op == "where":
            c, *sides = args
            if all(isinstance(a, v.Const) for a in value.args[1:]):
                sides[0] = f"torch.tensor({sides[0]}, dtype=torch.{value.dtype.torch_name})"
            return f"torch.where({c}, {', '.join(sides)})"
        if value.op in SYMBOLS and value.op not in ("logical_and", "logical_or"):
            if all(isinstance(a, v.Const) for a in value.args):
                args[0] = f"torch.tensor({args[0]})"
            return f"{_tight(args[0])} {SYMBOLS[value.op][0]} {_tight(args[1])}"
        row = UNARY.get(value.op) or BINARY.get(value.op)
        if row is None:
            raise Refused(0, f"{value.op} is not written as PyTorch code")
        given = [f"torch.tensor({t})" if isinstance(a, v.Const) else t for a, t in zip(value.args, args, strict=True)]
        return f"torch.{row.torch_name}({', '.join(given)})"

    def _reduce(self, value: v.Reduce) -> str:
        source = self._tensor(value.source)
        if value.op in _REDUCE:
            same = f", dtype=torch.{value.dtype.torch_name}" if value.op == "sum" else ""
            return f"{source}.{_REDUCE[value.op]}({value.axes if len(value.axes) > 1 else value.axes[0]}{same})"
        if value.op == "prod":
            return source + "".join(f".prod({k})" for k in sorted(value.axes, reverse=True))
        raise Refused(0, f"a reduction {value.op} is not written as PyTorch code")

    # ------------------------------------------------------------ elements in other places

    def _view(self, value: v.View) -> str:
        source = value.source
        shape, inner = list(map(int, value.shape)), list(map(int, source.shape))
        at = [Named(f"i{k}", e) for k, e in enumerate(shape)]
        moved = value.move(tuple(poly(a) if a.extent != 1 else poly(0) for a in at))
        if value.fill is None:
            if math.prod(shape) == math.prod(inner) and _keeps_order(value, shape, inner):
                return f"{self._tensor(source)}.reshape({shape})"
            texts = [index_text(m) for m in moved]
            order = [int(t[1:]) for t in texts if t.startswith("i") and t[1:].isdigit()]
            moving = [k for k, e in enumerate(shape) if e != 1]
            if len(set(order)) == len(order) == len(texts) and order and sorted(order) == moving:
                ranked = (
                    f"{self._tensor(source)}.permute({[order.index(k) for k in moving]})"
                    if order != moving
                    else self._tensor(source)
                )
                return f"{ranked}.reshape({shape})" if len(order) != len(shape) else ranked
        return self._picked(source, moved, at, value.fill)

    def _picked(self, source: v.Value, moved: Any, at: list[Named], fill: Any) -> str:
        """Elements by their positions."""
        rank = len(at)
        used = {a.text for a in at if any(a.text in _names(m) for m in moved)}
        for k, a in enumerate(at):
            line = f"{a.text}_{rank} = torch.arange({a.extent}).reshape({[-1 if j == k else 1 for j in range(rank)]})"
            if a.text in used and line not in self.lines:
                self.lines.append(line)
        texts = []
        for m in moved:
            text = index_text(m)
            for k in reversed(range(rank)):
                text = text.replace(f"i{k}", f"i{k}_{rank}") if f"i{k}" in _names(m) else text
            texts.append(text.replace("min(", "torch.minimum(").replace("max(", "torch.maximum("))
        base = self._tensor(source)
        if fill is None:
            return f"{_tight(base)}[{', '.join(texts)}]"
        inside, clamped = [], []
        for text, e in zip(texts, source.shape, strict=True):
            moving = not text.isdigit()
            clamped.append(f"({text}).clamp(0, {int(e) - 1})" if moving else text)
            if moving:
                inside.append(f"({text} >= 0) & ({text} < {e})")
        test = " & ".join(f"({one})" if len(inside) > 1 else one for one in inside)
        return f"torch.where({test}, {_tight(base)}[{', '.join(clamped)}], {fill!r})"

    def _gather(self, value: v.Gather) -> str:
        at = [Named(f"i{k}", int(e)) for k, e in enumerate(value.shape)]

        def read(number: int, coords: Any, extent: Any) -> Any:
            index = value.indices[number]
            if list(map(index_text, coords)) != [a.text if e != 1 else "0" for a, e in zip(at, index.shape, strict=False)]:
                raise Refused(0, "a gather whose positions are read in another order is not written as PyTorch code")
            return poly(Named(f"{_tight(self._of(index))}.long()", int(extent)))

        moved = value.build(tuple(poly(a) if a.extent != 1 else poly(0) for a in at), read)
        return self._picked(value.source, moved, at, None)


def _names(index: Any) -> set[str]:
    return {leaf.text for leaf in index.leaves if isinstance(leaf, Named)}


def _keeps_order(value: v.View, shape: list[int], inner: list[int]) -> bool:
    """Whether the elements stay in their order, by looking at some of them."""
    draw = random.Random(0)
    total = math.prod(shape)
    for _ in range(64):
        flat = draw.randrange(total)
        left, coords = flat, []
        for extent in reversed(shape):
            coords.append(left % extent)
            left //= extent
        moved = value.move(tuple(poly(c) for c in reversed(coords)))
        at = 0
        for m, extent in zip(moved, inner, strict=True):
            if m.terms and any(monomial for monomial, _ in m.terms):
                return False
            at = at * extent + m.offset
        if at != flat:
            return False
    return True


def _tight(text: str) -> str:
    """The text so that a method can be called on it."""
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == " " and depth == 0:
            return f"({text})"
    return f"({text})" if text.startswith("-") else text
