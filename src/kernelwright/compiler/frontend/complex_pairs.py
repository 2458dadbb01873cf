"""Complex numbers between library calls (track hybrid): pairs along a last axis of extent 2, and the maths that is made on them.

In: a node of the exported graph that takes or gives complex numbers, with its arguments as values. Out: the value, or None where
no rule is known (the operator is then left to the library, if it may be).
"""

from __future__ import annotations

from typing import Any

from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.values import Value


def of_pairs(node: Any, args: list[Any], keywords: dict[str, Any]) -> Value | None:
    """The value of an operator on complex numbers."""
    name = node.target._schema.name.removeprefix("aten::")
    if name in ("view_as_real", "view_as_complex", "clone", "alias", "detach", "lift_fresh_copy"):
        return args[0]  # type: ignore[no-any-return]
    if keywords or name not in (*_PARTS, *_MATHS):
        return None
    if name in _PARTS:
        real, imaginary = _split(args[0])
        made = _PARTS[name](real, imaginary)
        return _joined(*made) if isinstance(made, tuple) else made
    kinds = [_is_complex(origin) for origin in node.args]
    if len(args) != 2 or any(isinstance(a, complex) for a in args):
        return None
    parts = [_split(a) if kind else (a, 0) for a, kind in zip(args, kinds, strict=True)]
    found = _MATHS[name](parts[0], parts[1], kinds)
    return _joined(*found) if found else None


def _is_complex(origin: Any) -> bool:
    fake = getattr(origin, "meta", {}).get("val")
    return bool(fake is not None and fake.is_complex())


def _split(pair: Value) -> tuple[Value, Value]:
    return b.select(pair, -1, 0), b.select(pair, -1, 1)


def _joined(real: Value, imaginary: Value) -> Value:
    shape = b.broadcast_shape(real.shape, imaginary.shape)
    parts = tuple(b.unsqueeze(b.expand(x, shape), -1) for x in (real, imaginary))
    return v.Concat((*shape, 2), real.dtype, parts, len(shape))


_PARTS: dict[str, Any] = {
    "abs": lambda r, i: b.apply("sqrt", b.add(b.mul(r, r), b.mul(i, i))),
    "angle": lambda r, i: b.apply("atan2", i, r),
    "real": lambda r, i: r,
    "imag": lambda r, i: i,
    "neg": lambda r, i: (b.apply("neg", r), b.apply("neg", i)),
    "_conj": lambda r, i: (r, b.apply("neg", i)),
    "conj_physical": lambda r, i: (r, b.apply("neg", i)),
    "_conj_physical": lambda r, i: (r, b.apply("neg", i)),
    "resolve_conj": lambda r, i: (r, i),
}


def _product(x: Any, y: Any, kinds: list[bool]) -> tuple[Value, Value] | None:
    if kinds == [True, True]:
        return b.sub(b.mul(x[0], y[0]), b.mul(x[1], y[1])), b.add(b.mul(x[0], y[1]), b.mul(x[1], y[0]))
    (real, imaginary), factor = (x, y[0]) if kinds[0] else (y, x[0])
    return b.mul(real, factor), b.mul(imaginary, factor)


def _quotient(x: Any, y: Any, kinds: list[bool]) -> tuple[Value, Value] | None:
    return None if kinds[1] else (b.div(x[0], y[0]), b.div(x[1], y[0]))


def _sum(op: str) -> Any:
    def made(x: Any, y: Any, kinds: list[bool]) -> tuple[Value, Value] | None:
        if kinds == [True, True]:
            return b.apply(op, x[0], y[0]), b.apply(op, x[1], y[1])
        return (b.apply(op, x[0], y[0]), x[1]) if kinds[0] else None

    return made


_MATHS: dict[str, Any] = {"mul": _product, "div": _quotient, "add": _sum("add"), "sub": _sum("sub")}
