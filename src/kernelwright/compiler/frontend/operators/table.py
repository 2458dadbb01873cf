"""The table of operators: ATen name → how to build its value. Other files of this folder fill it by family.

A rule is called with the node's result as torch sees it (`Result`: shapes and dtypes) and the node's arguments, in which tensors
are already values. It returns a value, or a tuple of values for an operator with several results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kernelwright.compiler.graph import build
from kernelwright.compiler.graph.values import Value
from kernelwright.core.operations import Operation, of_torch
from kernelwright.sketch.nodes import DType

Rule = Callable[..., Any]
F = TypeVar("F", bound=Rule)
RULES: dict[str, Rule] = {}


@dataclass(frozen=True)
class Result:
    """Shape and dtype of one result. `rounded` names an 8-bit float that is computed with as f32, rounded where torch rounds; `native`
    says that kernels are called, not launched: several of them cost no more than one."""

    shape: tuple[int, ...]
    dtype: DType
    rounded: str = ""
    native: bool = False


def rule(*names: str) -> Callable[[F], F]:
    """Registers a rule under ATen names, without or with overload (`add`, `any.dim`)."""

    def register(fn: F) -> F:
        for name in names:
            RULES[name] = fn
        return fn

    return register


def find(target: str) -> Rule | None:
    """The rule for `aten.name.overload`: the overload's own, or the name's."""
    _, _, name = target.partition("aten.")
    plain = name.split(".")[0]
    return RULES.get(name) or RULES.get(plain) or (_by_row(row) if (row := of_torch(plain)) else None)


def _by_row(row: Operation) -> Rule:
    """Scalar operations need no rule of their own: their row says what they are."""

    def unary(out: Result, x: Value, **_: Any) -> Value:
        return build.apply(row.name, x, dtype=out.dtype, compute=x.dtype if row.gives == "bool" else None)

    def binary(out: Result, a: Any, c: Any, **_: Any) -> Value:
        return build.apply(row.name, a, c, dtype=out.dtype, compute=build.common(a, c) if row.gives == "bool" else None)

    return unary if row.arity == 1 else binary


def first(result: Any) -> Result:
    """The first result of an operator with several."""
    return result[0] if isinstance(result, tuple) else result  # type: ignore[no-any-return]


def tensors(*args: Any) -> list[Value]:
    """Those arguments that are values."""
    return [a for a in args if isinstance(a, Value)]
