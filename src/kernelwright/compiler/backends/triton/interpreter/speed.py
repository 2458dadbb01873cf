"""Triton's interpreter, quicker: the same results, without finding out anew for each operation what is already known.

The interpreter's time goes into Python, not into numpy: 70 to 200 µs for an addition of two small tiles, most of it types that are
built again, and a check of integer overflow that the device does not make either. Here types are made once, and an operator on
operand types that were met before is one numpy operation of 5 µs. What is not plainly the same (other types, casts, negative
division) takes the interpreter's own way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ARITHMETIC = {"__add__": np.add, "__sub__": np.subtract, "__mul__": np.multiply}
COMPARISONS = {
    "__lt__": np.less, "__le__": np.less_equal, "__gt__": np.greater, "__ge__": np.greater_equal,
    "__eq__": np.equal, "__ne__": np.not_equal,
}  # fmt: skip
DIVISIONS = {"__floordiv__": np.floor_divide, "__mod__": np.remainder}
LOGIC = {"__and__": np.bitwise_and, "__or__": np.bitwise_or}
FLOATS, INTEGERS = ("fp32", "fp64"), ("int32", "int64")
_FULL = slice(None)


@dataclass(frozen=True)
class _Plan:
    """How an operator is done for a pair of operand types: what the interpreter's own first result looked like."""

    type: Any
    dtype: Any
    shape: Any
    numel: Any
    scalar: Any
    low: int = 0
    high: int = -1
    width: int = 0
    """Bytes of an element that a pointer is moved by; 0 where no pointer is."""


def teach(interpreter: Any, tl: Any) -> None:
    """Make the interpreting copy quick. Comes last: it wraps what the other changes have made of the operators."""
    interpreter.interpreter_semantic.binary_op_sanitize_overflow_impl = lambda *_, **__: None
    _types_once(interpreter, tl)
    quick = _Quick(tl.core.tensor, interpreter.TensorHandle)
    for names, kinds in (
        (ARITHMETIC, (*FLOATS, *INTEGERS)),
        (COMPARISONS, (*FLOATS, *INTEGERS)),
        ({"__truediv__": np.divide}, FLOATS),
        (DIVISIONS, INTEGERS),
        (LOGIC, ("int1",)),
    ):
        for name, function in names.items():
            quick.operator(name, function, kinds, dividing=names is DIVISIONS)
            if not name.startswith(("__l", "__g", "__e", "__n")):
                quick.operator(f"__r{name[2:]}", _swapped(function), kinds, dividing=names is DIVISIONS, swapped=True)
    quick.indexing()


class _Quick:
    """Operators of the tensor class, each with its plans by the operands' types."""

    def __init__(self, tensor: Any, handle: Any) -> None:
        self.tensor, self.handle = tensor, handle

    def operator(
        self, name: str, function: Any, kinds: tuple[str, ...], *, dividing: bool = False, swapped: bool = False
    ) -> None:
        plain = getattr(self.tensor, name)
        plans: dict[Any, _Plan | None] = {}
        tensor, handle = self.tensor, self.handle
        adding = name == "__add__"

        def operate(left: Any, right: Any, **options: Any) -> Any:
            sort = type(right)
            key = (left.type.name, right.type.name if sort is tensor else sort)
            plan = plans.get(key)
            if plan is None:
                result = plain(left, right, **options)
                if key not in plans and not options:
                    plans[key] = _plan(left, right, result, kinds, adding) if sort in (tensor, int, float) else None
                return result
            a, b = left.handle.data, right.handle.data if sort is tensor else right
            if sort is int and plan.low <= plan.high and not plan.low <= b <= plan.high:
                return plain(left, right)
            if dividing and not (_countable(b, a) if swapped else _countable(a, b)):
                return plain(left, right)
            if plan.width:
                # Offsets are signed: the wrap-around of the unsigned product makes them so.
                steps = b.astype(np.uint64) if sort is tensor else np.uint64(b & 0xFFFFFFFFFFFFFFFF)
                data = a + np.uint64(plan.width) * steps
            else:
                data = function(a, b)
            made = tensor.__new__(tensor)
            made.handle, made.type, made.dtype = handle(data, plan.scalar), plan.type, plan.dtype
            made.shape, made.numel = plan.shape, plan.numel
            return made

        setattr(tensor, name, operate)

    def indexing(self) -> None:
        """`x[:, None]`: a view with another shape."""
        plain, tensor, handle = self.tensor.__getitem__, self.tensor, self.handle
        plans: dict[Any, _Plan] = {}

        def index(whole: Any, places: Any, **options: Any) -> Any:
            if type(places) is not tuple or options or any(p is not None and p != _FULL for p in places):
                return plain(whole, places, **options)
            key = (whole.type.name, tuple(place is None for place in places))
            plan = plans.get(key)
            if plan is None:
                result = plain(whole, places)
                if whole.type.is_block():
                    plans[key] = _like(result)
                return result
            made = tensor.__new__(tensor)
            made.handle, made.type, made.dtype = handle(whole.handle.data[places], plan.scalar), plan.type, plan.dtype
            made.shape, made.numel = plan.shape, plan.numel
            return made

        self.tensor.__getitem__ = index


def _plan(left: Any, right: Any, result: Any, kinds: tuple[str, ...], adding: bool) -> _Plan | None:
    """The plan, where nothing is cast on the way."""
    one = left.dtype
    if one.is_ptr():
        offset = right.dtype.name in INTEGERS if hasattr(right, "dtype") else type(right) is int
        width = max(1, int(one.element_ty.primitive_bitwidth) // 8)
        return _like(result, width=width, low=-(1 << 31), high=(1 << 31) - 1) if adding and offset else None
    if one.name not in kinds:
        return None
    if hasattr(right, "dtype"):
        return _like(result) if right.dtype.name == one.name else None
    if one.name in FLOATS:
        return _like(result)
    bits = int(one.name.removeprefix("int"))
    return _like(result, low=-(1 << bits - 1), high=(1 << bits - 1) - 1) if type(right) is int and bits > 1 else None


def _like(result: Any, **more: int) -> _Plan:
    return _Plan(result.type, result.dtype, result.shape, result.numel, result.handle.dtype, **more)


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b, a)


def _countable(a: Any, b: Any) -> bool:
    """No negative number among them: then rounding towards zero, as the device does it, is rounding down. No division by zero."""
    return bool((a >= 0 if isinstance(a, int) else a.min() >= 0) and (b > 0 if isinstance(b, int) else b.min() > 0))


def _types_once(interpreter: Any, tl: Any) -> None:
    """Block types, the shapes of tensors and numpy's types by name."""
    core = tl.core
    plain_block, plain_numpy = core.block_type.__init__, interpreter._get_np_dtype
    blocks: dict[Any, dict[str, Any]] = {}
    shapes: dict[str, tuple[Any, Any]] = {}
    arrays: dict[str, Any] = {}

    def block(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = shape.values if type(shape) is core.tuple else shape
        if type(element_ty) is not core.dtype or type(sizes) not in (list, tuple):
            plain_block(self, element_ty, shape)
            return
        key = (element_ty.name, *(size.value if type(size) is core.constexpr else size for size in sizes))
        known = blocks.get(key)
        if known is None:
            plain_block(self, element_ty, shape)
            blocks[key] = dict(self.__dict__)
        else:
            self.__dict__.update(known)

    def tensor(self: Any, handle: Any, type: Any) -> None:
        known = shapes.get(type.name)
        if known is None:
            sizes = type.shape if type.is_block() else ()
            extent = core.constexpr(int(np.prod([int(size) for size in sizes], dtype=np.int64)))
            known = shapes[type.name] = (core.tuple([core.constexpr(size) for size in sizes]), extent)
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = known

    def numpy_type(kind: Any) -> Any:
        found = arrays.get(kind.name)
        if found is None:
            found = arrays[kind.name] = plain_numpy(kind)
        return found

    core.block_type.__init__, core.tensor.__init__, interpreter._get_np_dtype = block, tensor, numpy_type
