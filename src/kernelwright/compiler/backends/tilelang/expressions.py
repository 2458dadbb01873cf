"""Expressions of TVM's IR as Python functions: an expression in, `Code` out, whose `run()` gives a number or an array over lanes.

Lanes are the iterations of parallel loops, and the threads of a block where a program names them. An array over lanes has an axis
for each loop around it, the outermost of a nest first, threads last: what was made further out broadcasts by NumPy's rules. Branches
are evaluated under masks, so that what a lane does not take it does not read either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tilelang import tvm  # tilelang puts its own TVM on the path

from kernelwright.compiler.backends.tilelang.arrays import Array, Unknown, cast, floating, numpy_dtype
from kernelwright.compiler.offdevice.libdevice import FUNCTIONS

tirx: Any = tvm.tirx
Run = Callable[[], Any]
WARP = 32


@dataclass(frozen=True)
class Code:
    """A compiled expression; `varies` says that its value may differ between lanes."""

    run: Run
    varies: bool = False


@dataclass
class State:
    """What a running program has: variables and buffers by slot, and the mask of active lanes (None: all)."""

    slots: list[Any] = field(default_factory=list)
    mask: Any = None
    threads: tuple[int, int, int] = (1, 1, 1)
    tf32: bool = False
    watched: list[Any] = field(default_factory=list)
    """Tensors that the program both writes and reads (races.py)."""

    def barrier(self) -> None:
        """All threads of the block see what was stored before."""
        for tensor in self.watched:
            tensor.barrier()


@dataclass(frozen=True)
class Lane:
    """A parallel loop's variable: its axis, counted from the end (1 is the last), and its extent."""

    axis: int
    extent: Run


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Short floats are computed in fp32 and rounded once."""

    def run(*args: Any) -> Any:
        kind = np.asarray(args[0]).dtype
        if floating(kind) and kind.itemsize < 4:
            return cast(function(*(cast(arg, np.dtype(np.float32)) for arg in args)), kind)
        result = function(*args)
        return cast(result, kind) if floating(kind) and np.asarray(result).dtype != kind and _number(result) else result

    return run


def _number(value: Any) -> bool:
    return bool(np.asarray(value).dtype.kind != "b")


def _truncated(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if np.asarray(a).dtype.kind in "iu" and np.asarray(b).dtype.kind in "iu":
        return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return a / b


def _division(a: Any, b: Any) -> Any:
    if floating(np.asarray(a).dtype):
        return np.floor_divide(a, b)
    if not np.all(b):
        raise ZeroDivisionError("a tile program divides an integer by zero")
    return a // b


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


BINARY: dict[str, Callable[..., Any]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": _truncated, "Mod": np.fmod,
    "FloorDiv": _division, "FloorMod": lambda a, b: a % b, "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
    # fmaxf and fminf of the device give the number when the other operand is NaN.
    "Max": _wide(np.fmax), "Min": _wide(np.fmin),
}  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {
    name: _wide(FUNCTIONS[name])
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "erf", "exp", "exp2",
                 "exp10", "fabs", "floor", "fma", "fmod", "hypot", "ldexp", "log", "log10", "log1p", "log2", "nearbyint", "nextafter",
                 "pow", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")
} | {
    "sigmoid": _wide(_sigmoid), "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.bitwise_not, "shift_left": np.left_shift, "shift_right": np.right_shift, "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite, "likely": lambda x: x, "popcount": np.bitwise_count, "fmul": lambda a, b: a * b,
    "__exp": _wide(np.exp), "__exp10": _wide(FUNCTIONS["exp10"]), "__log": _wide(np.log), "__log2": _wide(np.log2),
    "__log10": _wide(np.log10), "__sin": _wide(np.sin), "__cos": _wide(np.cos), "__tan": _wide(np.tan), "__ldg": lambda x: x,
    "fast_rcp": _wide(lambda x: 1 / x), "ieee_frcp": _wide(lambda x, _: 1 / x), "ieee_fsqrt": _wide(lambda x, _: np.sqrt(x)),
    "ieee_frsqrt": _wide(FUNCTIONS["rsqrt"]), "ieee_fdiv": _wide(lambda a, b, _: a / b), "ieee_add": lambda a, b, _: a + b,
    "ieee_sub": lambda a, b, _: a - b, "ieee_mul": lambda a, b, _: a * b, "ieee_fmaf": lambda a, b, c, _: a * b + c,
    "max_nan": np.maximum, "min_nan": np.minimum, "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "pow_of_int": _wide(lambda x, n: np.power(x, n)), "round_ties_away_from_zero": _wide(FUNCTIONS["round"]),
}  # fmt: skip
"""Functions of elements. Approximate ones of the device are exact here: they differ in the last bits."""


class Expressions:
    """Compiles expressions. Slots are given to variables and buffers as they are met."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.variables: dict[int, int] = {}
        self.buffers: dict[int, int] = {}
        self.views: dict[int, list[tuple[int, Any]]] = {}
        self.varying: set[int] = set()
        self.lanes: dict[int, Lane] = {}
        self.axes = 0
        self.threaded = False
        self.seams: set[int] = set()
        """Buffers in global memory that are both written and read (races.py)."""

    # ------------------------------------------------------------ names

    def slot(self, var: Any) -> int:
        """The place of a variable's value."""
        key = hash(var)
        if key not in self.variables:
            self.variables[key] = len(self.state.slots)
            self.state.slots.append(None)
        return self.variables[key]

    def buffer(self, buffer: Any) -> int:
        """The place of a buffer; one that nobody allocated is a view of what has the same data."""
        key = hash(buffer)
        if key not in self.buffers:
            self.buffers[key] = len(self.state.slots)
            self.state.slots.append(None)
            self.views.setdefault(hash(buffer.data), []).append((self.buffers[key], buffer))
        return self.buffers[key]

    # ------------------------------------------------------------ expressions

    def code(self, expr: Any) -> Code:
        """Any expression."""
        kind = type(expr).__name__
        if isinstance(expr, int | float | bool):
            return Code(lambda: expr)
        if kind in ("IntImm", "FloatImm"):
            return self._constant(expr)
        if kind in ("Var", "SizeVar"):
            slots, place = self.state.slots, self.slot(expr)
            return Code(lambda: slots[place], hash(expr) in self.varying)
        if kind in BINARY:
            return self._binary(BINARY[kind], expr, kind)
        if kind in ("And", "Or"):
            return self._junction(expr, kind == "And")
        if kind == "Not":
            a = self.code(expr.a)
            return Code(lambda: np.logical_not(a.run()), a.varies)
        if kind == "Cast":
            value, dtype = self.code(expr.value), numpy_dtype(str(expr.dtype))
            return Code(lambda: cast(value.run(), dtype), value.varies)
        if kind == "BufferLoad":
            return self.load(expr)
        if kind == "Select":
            return self._chosen(expr.condition, expr.true_value, expr.false_value)
        if kind == "Let":
            return self._let(expr)
        if kind == "Call":
            return self.call(expr)
        if kind == "StringImm":
            text = str(expr.value)
            return Code(lambda: text)
        raise Unknown(f"the interpreter does not know {kind} in a tile program")

    def _constant(self, expr: Any) -> Code:
        name = str(expr.dtype)
        if name in ("int32", "int64"):
            number: Any = int(expr.value)
        elif name == "bool":
            number = bool(expr.value)
        else:
            number = cast(expr.value, numpy_dtype(name))
        return Code(lambda: number)

    def _binary(self, function: Callable[..., Any], expr: Any, kind: str) -> Code:
        a, b = self.code(expr.a), self.code(expr.b)
        left, right = a.run, b.run
        if kind == "Add":
            return Code(lambda: left() + right(), a.varies or b.varies)
        if kind == "Mul":
            return Code(lambda: left() * right(), a.varies or b.varies)
        if kind in ("Max", "Min") and str(expr.dtype).startswith(("int", "uint")):
            function = np.maximum if kind == "Max" else np.minimum
            scalar: Callable[..., Any] = max if kind == "Max" else min
            if not (a.varies or b.varies):
                return Code(lambda: scalar(left(), right()))
        return Code(lambda: function(left(), right()), a.varies or b.varies)

    def _junction(self, expr: Any, both: bool) -> Code:
        a, b = self.code(expr.a), self.code(expr.b)
        state = self.state

        def run() -> Any:
            first = a.run()
            if not isinstance(first, np.ndarray):
                return b.run() if bool(first) == both else first
            before = state.mask
            state.mask = (first if both else ~first) if before is None else before & (first if both else ~first)
            try:
                second = b.run()
            finally:
                state.mask = before
            return first & second if both else first | second

        return Code(run, a.varies or b.varies)

    def _chosen(self, condition: Any, yes: Any, no: Any) -> Code:
        test, a, b = self.code(condition), self.code(yes), self.code(no)
        state = self.state

        def run() -> Any:
            where = test.run()
            if not isinstance(where, np.ndarray):
                return a.run() if where else b.run()
            before = state.mask
            try:
                state.mask = where if before is None else before & where
                first = a.run()
                state.mask = ~where if before is None else before & ~where
                second = b.run()
            finally:
                state.mask = before
            return np.where(where, first, second)

        return Code(run, test.varies or a.varies or b.varies)

    def _let(self, expr: Any) -> Code:
        value = self.code(expr.value)
        place = self.slot(expr.var)
        if value.varies:
            self.varying.add(hash(expr.var))
        body, slots = self.code(expr.body), self.state.slots

        def run() -> Any:
            slots[place] = value.run()
            return body.run()

        return Code(run, body.varies)

    # ------------------------------------------------------------ memory

    def load(self, expr: Any) -> Code:
        """A load, as a slice where each axis is a number or a parallel variable with an offset."""
        place, slots, state = self.buffer(expr.buffer), self.state.slots, self.state
        index = [self.code(each) for each in expr.indices]
        varies = any(each.varies for each in index) or (
            str(expr.buffer.scope()).startswith("local") and not _fragment(expr.buffer)
        )
        runs = [each.run for each in index]
        if self.seams and str(expr.buffer.scope()).startswith("shared"):

            def behind_barrier() -> Any:
                """TileLang puts a barrier before what reads shared memory: it orders global memory, too."""
                state.barrier()
                return slots[place].load([each() for each in runs], state.mask)

            return Code(behind_barrier, varies)
        plan = self.slices(expr.indices, index)
        if plan is None or not any(lane for lane, _ in plan):
            return Code(lambda: slots[place].load([run() for run in runs], state.mask), varies)
        order, shape = _placing([lane for lane, _ in plan if lane])

        def run() -> Any:
            buffer = slots[place]
            if state.mask is None and type(buffer) is Array:
                box = box_of(plan, buffer.data.shape)
                if box is not None:
                    part = buffer.data[box]
                    return (part.transpose(order) if order else part)[shape]
            return buffer.load([each() for each in runs], state.mask)

        return Code(run, varies)

    def slices(self, indices: Sequence[Any], index: Sequence[Code]) -> list[tuple[Lane | None, Run]] | None:
        """For each axis the lane it walks along (or None) and the run of its offset; None when one is anything else."""
        found: list[tuple[Lane | None, Run]] = []
        used: set[int] = set()
        for expr, code in zip(indices, index, strict=True):
            if not code.varies:
                found.append((None, code.run))
                continue
            split = self._along(expr)
            if split is None or split[0].axis in used:
                return None
            used.add(split[0].axis)
            found.append(split)
        return found

    def _along(self, expr: Any) -> tuple[Lane, Run] | None:
        if not hasattr(expr, "dtype"):
            return None
        if hash(expr) in self.lanes:
            return self.lanes[hash(expr)], lambda: 0
        if type(expr).__name__ in ("Add", "Sub"):
            left = self._along(expr.a)
            if left is not None:
                other = self.code(expr.b)
                if other.varies:
                    return None
                base, rest = left[1], other.run
                return left[0], (lambda: base() + rest()) if type(expr).__name__ == "Add" else (lambda: base() - rest())
            if type(expr).__name__ == "Add":
                right = self._along(expr.b)
                other = self.code(expr.a)
                if right is not None and not other.varies:
                    base, rest = right[1], other.run
                    return right[0], lambda: base() + rest()
        return None

    # ------------------------------------------------------------ calls

    def call(self, expr: Any) -> Code:
        """A call of an intrinsic function."""
        name = str(expr.op.name)
        short = name.rpartition(".")[2]
        if short == "if_then_else":
            return self._chosen(*expr.args)
        if short in CALLS:
            args = [self.code(arg) for arg in expr.args]
            function, runs = CALLS[short], [arg.run for arg in args]
            return Code(lambda: function(*(run() for run in runs)), any(arg.varies for arg in args))
        if short == "infinity":
            value = cast(math.inf, numpy_dtype(str(expr.dtype)))
            return Code(lambda: value)
        if short == "reinterpret":
            operand, kind = self.code(expr.args[0]), numpy_dtype(str(expr.dtype))
            source = numpy_dtype(str(expr.args[0].dtype))
            return Code(lambda: np.asarray(cast(operand.run(), source)).view(kind)[()], operand.varies)
        if short in ("call_extern", "call_pure_extern"):
            return self._extern(expr)
        if short in ("get_lane_idx", "get_warp_idx", "get_warp_idx_sync") or "shfl" in short or short.startswith("warp_reduce"):
            return self._warp(short, [self.code(arg) for arg in expr.args])
        if short in ("any_of", "all_of"):
            return self._any(expr, short == "any_of")
        found = self.effect(expr, short)
        if found is not None:
            return found
        raise Unknown(f"the interpreter does not know {name}")

    def effect(self, expr: Any, name: str) -> Code | None:
        """A call that changes memory and gives a value; tile operations know them."""
        return None

    def _extern(self, expr: Any) -> Code:
        symbol = str(expr.args[0].value)
        function = FUNCTIONS.get(symbol) or FUNCTIONS.get(symbol.removesuffix("f")) or FUNCTIONS.get(symbol.strip("_"))
        if function is None:
            raise Unknown(f"the interpreter does not know the external function {symbol}")
        args = [self.code(arg) for arg in expr.args[1:]]
        wide = _wide(function)
        return Code(lambda: wide(*(arg.run() for arg in args)), any(arg.varies for arg in args))

    def _warp(self, name: str, args: list[Code]) -> Code:
        """Numbers of lanes, and exchanges between the lanes of a warp."""
        state = self.state

        def threads() -> Any:
            return np.arange(int(np.prod(state.threads)))

        if name == "get_lane_idx":
            return Code(lambda: threads() % WARP, True)
        if name.startswith("get_warp"):
            return Code(lambda: threads() // WARP, True)

        def run() -> Any:
            own = threads()
            if name.startswith("warp_reduce"):
                value = np.broadcast_to(args[0].run(), own.shape).reshape(-1, WARP)
                function = REDUCTIONS[name.removeprefix("warp_reduce_")]
                return np.repeat(function.reduce(value, axis=1), WARP)
            _, value, delta, *rest = (arg.run() for arg in args)
            width = int(rest[0]) if rest else WARP
            base, lane = own // width * width, own % width
            value = np.broadcast_to(value, own.shape)
            if "xor" in name:
                return value[(own ^ delta)]
            goal = {"up": lane - delta, "down": lane + delta}.get(name.split("_")[1], delta % width)
            return value[np.where((goal >= 0) & (goal < width), base + goal, own)]

        return Code(run, True)

    def _any(self, expr: Any, any_: bool) -> Code:
        load = expr.args[0].args[0]
        place, slots = self.buffer(load.buffer), self.state.slots
        start, count = [self.code(each) for each in load.indices], self.code(expr.args[1])

        def run() -> Any:
            data = slots[place].data
            at = np.ravel_multi_index([int(each.run()) for each in start], data.shape)
            part = data.reshape(-1)[at : at + int(count.run())]
            return bool(np.any(part) if any_ else np.all(part))

        return Code(run)


REDUCTIONS: dict[str, Any] = {
    "sum": np.add, "max": np.fmax, "min": np.fmin, "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
}  # fmt: skip


def _fragment(buffer: Any) -> bool:
    return str(buffer.scope()) == "local.fragment"


def box_of(plan: Sequence[tuple[Lane | None, Run]], shape: Sequence[int]) -> tuple[Any, ...] | None:
    """Slices for a plan, or None when they leave the buffer."""
    box: list[Any] = []
    for (lane, offset), size in zip(plan, shape, strict=True):
        start = int(offset())
        end = start + int(lane.extent()) if lane else start + 1
        if start < 0 or end > size:
            return None
        box.append(slice(start, end) if lane else start)
    return tuple(box)


def _placing(lanes: Sequence[Lane]) -> tuple[tuple[int, ...] | None, tuple[Any, ...]]:
    """How the axes of a slice are put in the order of lanes, and where axes of extent 1 stand between them."""
    order = tuple(sorted(range(len(lanes)), key=lambda number: -lanes[number].axis))
    axes = {lane.axis for lane in lanes}
    shape = tuple(slice(None) if axis in axes else None for axis in range(max(axes), 0, -1))
    return (None if order == tuple(range(len(order))) else order), shape
