"""Expressions of a tile program as values: what one element is, as a tile over all iterations of the parallel loops around it.

`lanes` are the extents of those loops, outermost first; a loop's variable is the position along its axis (`access.axis`). Integers and
conditions over variables stay expressions, because addresses are made of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from kernelwright.compiler.lift.access import with_axes
from kernelwright.compiler.lift.conditions import junction, negated
from kernelwright.compiler.lift.launches import View
from kernelwright.compiler.lift.program import Program
from kernelwright.compiler.lift.tilelang.buffers import Buffers
from kernelwright.compiler.lift.triton import elements, integers, tiles
from kernelwright.compiler.lift.values import Data, Ints, Mask, Num, Ptr, Shape, Value, joined_shape
from kernelwright.core.dtypes import FLOATS, from_torch
from kernelwright.sketch import nodes
from kernelwright.sketch.index import simplify
from kernelwright.sketch.index.exhaustive import never_negative
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int

INTEGER = {"Add": "arith.addi", "Sub": "arith.subi", "Mul": "arith.muli", "FloorDiv": "arith.floordivsi", "FloorMod": "arith.remui",
           "Div": "arith.divsi", "Mod": "arith.remsi", "Max": "arith.maxsi", "Min": "arith.minsi", "bitwise_and": "arith.andi",
           "bitwise_or": "arith.ori", "bitwise_xor": "arith.xori", "shift_left": "arith.shli", "shift_right": "arith.shrsi"}  # fmt: skip
BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "FloorDiv": "floordiv", "FloorMod": "mod", "Max": "maximum", "Min": "minimum",
          "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "shift_left": "shl", "shift_right": "shr", "pow": "pow",
          "fmod": "fmod", "atan2": "atan2", "copysign": "copysign", "max_nan": "maximum", "min_nan": "minimum", "ieee_fdiv": "div",
          "ieee_add": "add", "ieee_sub": "sub", "ieee_mul": "mul"}  # fmt: skip
COMPARE = {"LT": "slt", "LE": "sle", "GT": "sgt", "GE": "sge", "EQ": "eq", "NE": "ne"}
UNARY = {
    **{name: name for name in ("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan",
                               "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc", "sigmoid")},
    "fabs": "abs", "abs": "abs", "nearbyint": "round", "__exp": "exp", "__log": "log", "__log2": "log2", "__log10": "log10",
    "__sin": "sin", "__cos": "cos", "__tan": "tan", "fast_rcp": "reciprocal", "ieee_frcp": "reciprocal", "ieee_fsqrt": "sqrt",
    "ieee_frsqrt": "rsqrt",
}  # fmt: skip
_NUMBERS: dict[str, Callable[[float, float], float]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Max": max, "Min": min,
}  # fmt: skip


class Elements(Buffers):
    """Reads expressions."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.env: dict[int, Value] = {}
        self.views: dict[int, View] = {}
        self.masks: list[Mask] = []

    # ---- dtypes and shapes

    def dtype(self, name: Any) -> DType:
        """TVM's dtype as a sketch's."""
        if (found := from_torch(name)) is None:
            raise self.program.refuse(f"{name} numbers, which a sketch has not")
        return found

    def fitted(self, value: Value) -> Value:
        """A value from outside of the innermost parallel loops, with their axes; scalars stay scalars."""
        if not value.shape or len(value.shape) == len(self.lanes):
            return value
        for position in range(len(value.shape), len(self.lanes)):
            value = tiles.expanded(self.program, value, position)
        return tiles.broadcast(value, self.lanes)

    # ---- expressions

    def value(self, expr: Any) -> Value:
        """Any expression."""
        kind = type(expr).__name__
        if isinstance(expr, bool | int | float) or kind in ("IntImm", "FloatImm"):
            return self._constant(expr)
        if kind in ("Var", "SizeVar"):
            if hash(expr) not in self.env:
                raise self.program.refuse(f"the kernel counts its threads ({expr.name}), which a sketch has not")
            return self.fitted(self.env[hash(expr)])
        if kind in INTEGER:
            return self.arithmetic(kind, self.value(expr.a), self.value(expr.b))
        if kind in COMPARE:
            return self._compared(COMPARE[kind], self.value(expr.a), self.value(expr.b))
        if kind in ("And", "Or"):
            return junction(self.program, kind.lower(), self.mask(expr.a), self.mask(expr.b))
        if kind == "Not":
            return negated(self.program, self.mask(expr.a))
        if kind == "Cast":
            return self.cast(self.value(expr.value), self.dtype(expr.dtype))
        if kind == "BufferLoad":
            return self.element(expr.buffer, [self.index(each) for each in expr.indices])
        if kind == "Select":
            return self.chosen(self.mask(expr.condition), self.value(expr.true_value), self.value(expr.false_value))
        if kind == "Let":
            self.env[hash(expr.var)] = self.named(self.value(expr.value), str(expr.var.name))
            return self.value(expr.body)
        if kind == "Call":
            return self._call(expr)
        raise self.program.refuse(f"{kind}, which has no counterpart in a sketch")

    def _constant(self, expr: Any) -> Value:
        number = getattr(expr, "value", expr)
        dtype = self.dtype(expr.dtype) if hasattr(expr, "dtype") else None
        if dtype is DType.bool or isinstance(number, bool):
            return Mask(() if number else (Int(-1),), ())
        if dtype in FLOATS or (dtype is None and isinstance(number, float)):
            return Num(float(number), (), dtype or DType.f32)
        return Ints(Int(int(number)), (), 8 * dtype.size if dtype else 32)

    def index(self, expr: Any) -> Index:
        """An expression that counts: a position, a bound."""
        found = self.value(expr)
        if isinstance(found, Mask):
            found = self.program.as_data(found, DType.i32)
        return self.program.as_ints(found, "at").index

    def mask(self, expr: Any) -> Mask:
        """An expression that is a condition."""
        found = self.value(expr)
        if isinstance(found, Mask):
            return found
        data = self.program.as_data(found)
        if data.dtype is not DType.bool:
            zero: float | int = 0.0 if data.dtype in FLOATS else 0
            data = Data(nodes.Binary("ne", data.node, nodes.Number(zero)), data.shape, data.actual, DType.bool)
        return Mask((), data.shape, data)

    def named(self, value: Value, hint: str) -> Value:
        """What is computed gets a name, so that it stays what it was when its parts change."""
        if isinstance(value, Data):
            return self.program.bind(value, hint)
        if isinstance(value, Mask) and value.rest is not None:
            return Mask(value.conditions, value.shape, self.program.bind(value.rest, hint))
        return value

    # ---- operations

    def arithmetic(self, kind: str, a: Value, b: Value) -> Value:
        """An operation of two numbers."""
        program = self.program
        if isinstance(a, Ints) and isinstance(b, Ints) and kind in INTEGER:
            found = integers.combine(program, INTEGER[kind], a, b, "at")
            if found is not None:
                return found
        if isinstance(a, Num) and isinstance(b, Num) and kind in _NUMBERS:
            return Num(_NUMBERS[kind](a.value, b.value), joined_shape(a.shape, b.shape), a.dtype)
        if isinstance(a, Mask) or isinstance(b, Mask):
            if kind in ("bitwise_and", "bitwise_or") and isinstance(a, Mask) and isinstance(b, Mask):
                return junction(program, kind.removeprefix("bitwise_"), a, b)
            a, b = (program.as_data(side, DType.i32) if isinstance(side, Mask) else side for side in (a, b))
        if kind in ("Div", "Mod"):
            floats = all(isinstance(side, Num) or (isinstance(side, Data) and side.dtype in FLOATS) for side in (a, b))
            if not floats:
                raise program.refuse("a division of integers towards zero; // and % of TileLang are read")
            return elements.binary(program, "div" if kind == "Div" else "fmod", a, b)
        return elements.binary(program, BINARY[kind], a, b)

    def _compared(self, predicate: str, a: Value, b: Value) -> Mask:
        program = self.program
        if isinstance(a, Mask) and isinstance(b, Mask):
            return junction(program, predicate, a, b)
        if isinstance(a, Ints) and isinstance(b, Ints):
            found = integers.compare(program, predicate, a, b)
            if found is not None:
                return found
        left, right, shape, actual, _ = elements.pair(program, a, b)
        op = predicate if predicate in ("eq", "ne") else predicate[1:]
        return Mask((), shape, Data(nodes.Binary(op, left, right), shape, actual, DType.bool))

    def chosen(self, condition: Mask, a: Value, b: Value) -> Value:
        """One of two values for each element."""
        program = self.program
        truth = program.decided(condition)
        if truth is not None or a == b:
            return a if truth or a == b else b
        if isinstance(a, Mask) or isinstance(b, Mask):
            a, b = program.as_data(a), program.as_data(b)
        test = program.as_data(condition)
        left, right, shape, actual, dtype = elements.pair(program, a, b)
        shape, actual = joined_shape(shape, condition.shape), joined_shape(actual, test.actual)
        if isinstance(left, nodes.Number) and isinstance(right, nodes.Number):
            left = nodes.Full((Int(1),) * len(shape), left.value, dtype)
        data = Data(nodes.Where(test.node, left, right), shape, actual, dtype)
        return Mask((), shape, data) if dtype is DType.bool else data

    def cast(self, value: Value, dtype: DType) -> Value:
        """A conversion of numbers."""
        program = self.program
        if isinstance(value, Num):
            return Num(value.value, value.shape, dtype) if dtype in FLOATS else Ints(Int(int(value.value)), value.shape, 32)
        if isinstance(value, Ints) and dtype not in FLOATS and dtype is not DType.bool:
            return Ints(value.index, value.shape, 8 * dtype.size)
        if isinstance(value, Ints):
            wide = program.as_data(value, DType.i64)
            return Data(nodes.Cast(wide.node, dtype), wide.shape, wide.actual, dtype)
        if isinstance(value, Mask) and dtype is DType.bool:
            return value
        return program.as_data(value, dtype)

    def _call(self, expr: Any) -> Value:
        program = self.program
        name = str(expr.op.name)
        short = name.rpartition(".")[2]
        if short == "if_then_else":
            return self.chosen(self.mask(expr.args[0]), self.value(expr.args[1]), self.value(expr.args[2]))
        if short == "infinity":
            return Num(math.inf, (), self.dtype(expr.dtype))
        if short == "likely":
            return self.value(expr.args[0])
        if short == "reinterpret":
            data, target = program.as_data(self.value(expr.args[0])), self.dtype(expr.dtype)
            if data.dtype.size != target.size:
                raise program.refuse(f"{data.dtype.value} bits looked at as {target.value}")
            return Data(nodes.Bitcast(data.node, target), data.shape, data.actual, target)
        if short in UNARY:
            return elements.unary(program, UNARY[short], self.value(expr.args[0]))
        if short in ("bitwise_not",):
            return elements.unary(program, "invert", self.value(expr.args[0]))
        if short in BINARY:
            return self.arithmetic(short, self.value(expr.args[0]), self.value(expr.args[1]))
        if short in ("fma", "ieee_fmaf"):
            product = self.arithmetic("Mul", self.value(expr.args[0]), self.value(expr.args[1]))
            return self.arithmetic("Add", product, self.value(expr.args[2]))
        if short == "clamp":
            above = self.arithmetic("Max", self.value(expr.args[0]), self.value(expr.args[1]))
            return self.arithmetic("Min", above, self.value(expr.args[2]))
        said = f" ({expr.args[0].value})" if short in ("call_extern", "call_pure_extern") else ""
        raise program.refuse(f"{name}{said}, which has no counterpart in a sketch")

    # ---- memory

    def element(self, buffer: Any, index: Sequence[Index]) -> Data:
        """What a buffer has at a position, for each lane. Outside of a tensor that is zero."""
        if hash(buffer.data) not in self.views:
            return self.read_tile(buffer, index)
        pointer, guard = self._address(buffer, index)
        return self.program.load(pointer, guard, None)

    def put(self, buffer: Any, index: Sequence[Index], value: Value, mode: str = "set") -> None:
        """Writes a position of a buffer for each lane that the conditions around it let through. Outside of a tensor nothing is written."""
        mask = self._taken()
        if hash(buffer.data) not in self.views:
            if mode != "set":
                raise self.program.refuse("an atomic update of a block's own memory")
            self.write_tile(buffer, index, value, mask)
            return
        pointer, guard = self._address(buffer, index)
        value = self._spread(value)
        whole = junction(self.program, "and", guard, mask) if mask is not None else guard
        self.program.store(pointer, self.stored(value, self.dtype(buffer.dtype)), whole, mode)

    def _spread(self, value: Value) -> Value:
        return tiles.broadcast(value, self.lanes) if value.shape != self.lanes else value

    def _taken(self) -> Mask | None:
        """All conditions around a statement."""
        whole: Mask | None = None
        for mask in self.masks:
            fitted = self.fitted(mask)
            assert isinstance(fitted, Mask)
            whole = fitted if whole is None else junction(self.program, "and", whole, fitted)
        if whole is None:
            return None
        spread = tiles.broadcast(whole, self.lanes)
        assert isinstance(spread, Mask)
        return spread

    def _address(self, buffer: Any, index: Sequence[Index]) -> tuple[Ptr, Mask]:
        """The address of an element of a tensor, and where that lies inside."""
        view = self.views[hash(buffer.data)]
        shape, strides = self._seen(buffer, view)
        every = with_axes(self.program.ranges, self.lanes)
        flat: Index = Int(view.offset)
        borders: list[Index] = []
        for at, extent, stride in zip(index, shape, strides, strict=True):
            flat = IndexOp("+", flat, IndexOp("*", at, Int(stride)))
            for end in (simplify(at), simplify(IndexOp("-", Int(extent - 1), at))):
                if not never_negative(end, every, self.program.assumed):
                    borders.append(end)
        return Ptr(view.buffer, simplify(flat), self.lanes), Mask(tuple(borders), self.lanes)

    def _seen(self, buffer: Any, view: View) -> tuple[Shape, Shape]:
        """Extents and strides of a tensor as the program declares it: another shape over the same memory is a view of it."""
        shape = tuple(self.number(extent) for extent in buffer.shape)
        if shape == view.shape:
            return shape, view.strides
        strides, step = [], 1
        for extent in reversed(shape):
            strides.append(step)
            step *= extent
        held = 1
        for extent, stride in reversed(list(zip(view.shape, view.strides, strict=True))):
            if extent != 1 and stride != held:
                raise self.program.refuse(f"{buffer.name} is another view of a tensor that is not contiguous")
            held *= extent
        return shape, tuple(reversed(strides))

    def number(self, expr: Any) -> int:
        """An extent, which has to be a number for these inputs."""
        found = self.value(expr)
        if isinstance(found, Ints) and isinstance(found.index, Int):
            return found.index.value
        raise self.program.refuse("an extent that is no number for these inputs")
