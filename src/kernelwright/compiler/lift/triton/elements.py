"""Elementwise operations on tiles: TTIR's names to those of a sketch.

In: an operation and its operands as values. Out: a Data (or a Mask for comparisons and logic).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelwright.compiler.lift.program import Program
from kernelwright.compiler.lift.triton.ttir import Op, Type
from kernelwright.compiler.lift.values import Data, Ints, Mask, Num, Value, joined_shape
from kernelwright.core import operations
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import DType, Tile

DTYPES = {dtype.value: dtype for dtype in DType if dtype.kind in ("float", "signed")} | {"i1": DType.bool}
"""Triton's element types by their names in TTIR, where signs are not told apart."""
BINARY = {
    "arith.addf": "add", "arith.subf": "sub", "arith.mulf": "mul", "arith.divf": "div", "arith.remf": "fmod",
    "arith.maxnumf": "maximum", "arith.maximumf": "maximum", "arith.minnumf": "minimum", "arith.minimumf": "minimum",
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.maxsi": "maximum", "arith.minsi": "minimum",
    "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor", "arith.shli": "shl", "arith.shrsi": "shr",
    "tt.precise_divf": "div", "math.powf": "pow", "math.copysign": "copysign", "math.atan2": "atan2",
}  # fmt: skip
UNARY = {
    "arith.negf": "neg", "math.absf": "abs", "math.absi": "abs", "math.exp": "exp", "math.exp2": "exp2", "math.log": "log",
    "math.log2": "log2", "math.log1p": "log1p", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt", "math.sin": "sin", "math.cos": "cos",
    "math.erf": "erf", "math.floor": "floor", "math.ceil": "ceil", "math.tanh": "tanh", "tt.precise_sqrt": "sqrt",
    "math.expm1": "expm1", "math.tan": "tan", "math.trunc": "trunc", "math.roundeven": "round",
}  # fmt: skip
CASTS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.extsi", "arith.extui",
         "arith.trunci", "tt.fp_to_fp")  # fmt: skip
LIBRARY = {
    "fabs": "abs", "rint": "round", "nearbyint": "round", "fast_expf": "exp", "fast_logf": "log", "fast_tanhf": "tanh",
    "fast_sinf": "sin", "fast_cosf": "cos", "rcp_rn": "reciprocal", "frcp_rn": "reciprocal", "fsqrt_rn": "sqrt", "sqrt_rn": "sqrt",
}  # fmt: skip
_LIBRARY_BINARY = {"pow": "pow", "fmod": "fmod", "atan2": "atan2", "copysign": "copysign", "fmax": "maximum", "fmin": "minimum",
                   "div_rn": "div", "fdiv_rn": "div", "fast_fdividef": "div", "fdividef": "div"}  # fmt: skip


def dtype_of(program: Program, kind: Type) -> DType:
    """A TTIR element type as a sketch's."""
    if kind.element not in DTYPES:
        raise program.refuse(f"{kind.element} numbers, which a sketch has not")
    return DTYPES[kind.element]


def pair(program: Program, a: Value, b: Value) -> tuple[Tile, Tile, tuple[int, ...], tuple[int, ...], DType]:
    """Two operands as tiles of one dtype; a constant stays a bare number beside a tile."""
    shape = joined_shape(a.shape, b.shape)
    if isinstance(a, Num) and isinstance(b, Num):
        a = program.as_data(a)
    if isinstance(a, Num):
        other = program.as_data(b)
        return nodes.Number(a.value), other.node, shape, other.actual, other.dtype
    if isinstance(b, Num):
        other = program.as_data(a)
        return other.node, nodes.Number(b.value), shape, other.actual, other.dtype
    x, y = program.as_data(a), program.as_data(b)
    if x.dtype is not y.dtype:  # signed and unsigned bytes are one type in TTIR
        y = (
            Data(nodes.Bitcast(y.node, x.dtype), y.shape, y.actual, x.dtype)
            if x.dtype.size == y.dtype.size
            else program.as_data(y, x.dtype)
        )
    left, right = x.node, y.node
    if isinstance(right, nodes.Full) and not isinstance(left, nodes.Full):
        right = nodes.Number(right.value)
    elif isinstance(left, nodes.Full) and not isinstance(right, nodes.Full):
        left = nodes.Number(left.value)
    return left, right, shape, joined_shape(x.actual, y.actual), x.dtype


def binary(program: Program, op: str, a: Value, b: Value) -> Data:
    """An operation of two tiles."""
    left, right, shape, actual, dtype = pair(program, a, b)
    if dtype is DType.bool and op in ("add", "sub", "mul", "maximum", "minimum"):
        op = {"add": "xor", "sub": "xor", "mul": "and", "maximum": "or", "minimum": "and"}[op]
    return Data(nodes.Binary(op, left, right, program.line), shape, actual, dtype)


def unary(program: Program, op: str, x: Value) -> Data:
    """A function of one tile."""
    data = program.as_data(x)
    return Data(nodes.Unary(op, data.node), data.shape, data.actual, data.dtype)


def compare(program: Program, op: Op, a: Value, b: Value) -> Mask:
    """cmpf and cmpi on tiles."""
    predicate = op.text.split(",")[0].strip().split(" ")[0]
    left, right, shape, actual, dtype = pair(program, a, b)
    if op.name == "arith.cmpf":
        if predicate in ("uno", "ord"):
            nan: Tile = nodes.Unary("isnan", left if not isinstance(left, nodes.Number) else right)
            if left != right and not isinstance(right, nodes.Number):
                nan = nodes.Binary("or", nodes.Unary("isnan", left), nodes.Unary("isnan", right))
            return _mask(nan if predicate == "uno" else nodes.Unary("logical_not", nan), shape, actual)
        kind, unordered = predicate[1:], predicate[0] == "u"
        if (kind == "ne" and not unordered) or (kind == "eq" and unordered):
            raise program.refuse(f"the comparison {predicate}")
        if unordered and kind != "ne":
            opposite = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}[kind]
            return _mask(nodes.Unary("logical_not", nodes.Binary(opposite, left, right)), shape, actual)
        return _mask(nodes.Binary(kind, left, right), shape, actual)
    kind = predicate if predicate in ("eq", "ne") else predicate[1:]
    if predicate[0] == "u" and dtype is not DType.u8:
        left, right = (unsigned(program, side, dtype) for side in (left, right))
    if dtype is DType.bool and (isinstance(left, nodes.Number) or isinstance(right, nodes.Number)):
        left, right = (nodes.Number(bool(s.value)) if isinstance(s, nodes.Number) else s for s in (left, right))
    return _mask(nodes.Binary(kind, left, right), shape, actual)


def _mask(tile: Tile, shape: tuple[int, ...], actual: tuple[int, ...]) -> Mask:
    return Mask((), shape, Data(tile, shape, actual, DType.bool))


def unsigned(program: Program, tile: Tile, dtype: DType) -> Tile:
    """The bits of an integer read as an unsigned number, in i64."""
    if isinstance(tile, nodes.Number):
        return nodes.Number(int(tile.value) & ((1 << 8 * dtype.size) - 1)) if dtype is not DType.i64 else tile
    if dtype in (DType.u8, DType.bool):
        return nodes.Cast(tile, DType.i64)
    if dtype is DType.i64:
        raise program.refuse("arithmetic of unsigned 64-bit integers")
    return nodes.Binary("and", nodes.Cast(tile, DType.i64), nodes.Number((1 << 8 * dtype.size) - 1))


def unsigned_binary(program: Program, op: str, a: Value, b: Value) -> Data:
    """divui, remui, shrui, umulhi and the like: made in i64, where 32 bits fit."""
    x, y = program.as_data(a), program.as_data(b)
    dtype = x.dtype
    left, right = unsigned(program, x.node, dtype), unsigned(program, y.node, y.dtype)
    made: Tile
    if op == "mulhi":
        if dtype is not DType.i32:
            raise program.refuse("the high half of a product of 64-bit integers")
        # The product modulo 2**64 has the right bits; the shift brings the sign along, the mask takes it away.
        made = nodes.Binary("shr", nodes.Binary("mul", left, right), nodes.Number(32))
    else:
        made = nodes.Binary(op, left, right)
    return Data(wrapped(made, dtype), joined_shape(x.shape, y.shape), joined_shape(x.actual, y.actual), dtype)


def wrapped(tile: Tile, dtype: DType) -> Tile:
    """An i64 tile brought back to a narrower integer type, modulo its width."""
    return tile if dtype is DType.i64 else nodes.Cast(tile, dtype)


def cast(program: Program, op: Op, x: Value) -> Value:
    """A conversion of numbers."""
    kind = op.result_types[0]
    target = dtype_of(program, kind)
    if isinstance(x, Num) and target in FLOATS:
        return Num(x.value, x.shape, target)
    if (
        isinstance(x, Ints)
        and target not in FLOATS
        and target is not DType.bool
        and op.name in ("arith.extsi", "arith.extui", "arith.trunci")
    ):
        return Ints(x.index, x.shape, 8 * target.size)
    if isinstance(x, Ints):
        wide = program.as_data(x, DType.i64)
        return Data(nodes.Cast(wide.node, target), wide.shape, wide.actual, target)
    data = program.as_data(x)
    node = data.node
    if op.name in ("arith.extui", "arith.uitofp") and data.dtype not in (DType.u8, DType.bool):
        node = unsigned(program, node, data.dtype)
        if target is DType.i64:
            return Data(node, data.shape, data.actual, target)
    elif op.name in ("arith.extsi", "arith.sitofp") and data.dtype is DType.u8:
        node = nodes.Bitcast(node, DType.i8)
    elif op.name == "arith.extsi" and data.dtype is DType.bool:
        return Data(nodes.Unary("neg", nodes.Cast(node, target)), data.shape, data.actual, target)
    elif op.name == "arith.trunci" and target is DType.bool:
        odd = nodes.Binary("ne", nodes.Binary("and", node, nodes.Number(1)), nodes.Number(0))
        return _mask(odd, data.shape, data.actual)
    elif op.name == "tt.fp_to_fp" and "rtz" in op.text:
        raise program.refuse("a conversion that rounds towards zero")
    return Data(nodes.Cast(node, target), data.shape, data.actual, target)


def library(program: Program, op: Op, operands: Sequence[Value]) -> Value:
    """A function of CUDA's libdevice (or AMD's ocml)."""
    found = re.search(r'symbol = "__(?:nv|ocml)_(\w+)"', op.text)
    name = found[1] if found else "an unknown function"
    plain = re.sub(r"_(f16|f32|f64)$", "", name)
    for known in (plain, plain.removesuffix("f")):
        if known in _LIBRARY_BINARY and len(operands) == 2:
            return binary(program, _LIBRARY_BINARY[known], operands[0], operands[1])
        target = LIBRARY.get(known, known)
        if target in ("isnan", "isinf") and len(operands) == 1:
            data = unary(program, target, operands[0])
            return Data(nodes.Cast(data.node, DType.i32), data.shape, data.actual, DType.i32)
        if target in operations.UNARY and len(operands) == 1 and (target != "round" or known != "round"):
            return unary(program, target, operands[0])
        if known in ("fma", "fma_rn") and len(operands) == 3:
            return binary(program, "add", binary(program, "mul", operands[0], operands[1]), operands[2])
    raise program.refuse(f"the function {name} of the device's library")
