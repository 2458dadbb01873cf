"""How a module's state comes about: the constructor watched while it runs, and its draws written as statements that give the same
values under the same seed.

In: a loaded task. Out: an `Initialisation`, or None where the constructor does what cannot be written down (large tables from
plain data, another
source of chance). Evaluators of the field construct reference and kernel under one seed and compare; a kernel that declares its
parameters and draws nothing would hold other weights there. What is returned was executed once and compared with the real state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelwright.core.task.load import LoadedTask, seed_everything

LITERAL = 64
"""Elements of a tensor made from plain data that may stand in a kernel file as a list."""
SEED = 20_011
ASKING = ("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero")
"""Operators that tell a program the values of a tensor."""
Key = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Initialisation:
    """`statements` run in order; `values` has the expression of each entry of the state_dict."""

    statements: tuple[str, ...]
    values: dict[str, str]


@dataclass(frozen=True)
class _Call:
    """One operator of the constructor: what it read and wrote, by storage, and what it gave."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[torch.Tensor, ...]
    writes: frozenset[int]
    draws: bool
    data: tuple[Any, ...] | None = None
    """The values of a tensor that was made from plain data, as they were then."""


class _Unwritable(Exception):
    """Something that has no place in a kernel file."""


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[_Call] = []
        self.drawn: set[int] = set()
        """Storages whose values depend on chance; a constructor that asks for one (to draw again, say) cannot be written down."""
        self.asks = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        results = tuple(r for r in (result if isinstance(result, tuple | list) else (result,)) if isinstance(r, torch.Tensor))
        written = [
            value
            for argument, value in zip(function._schema.arguments, args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, torch.Tensor)
        ]
        draws = torch.Tag.nondeterministic_seeded in function.tags
        writes = frozenset(_storage(tensor) for tensor in [*written, *results])
        chance = draws or any(_storage(tensor) in self.drawn for tensor in _tensors((args, kwargs)))
        if chance:
            self.drawn |= writes
            self.asks = self.asks or function._schema.name in ASKING
        data = None
        if function._schema.name == "aten::lift_fresh" and args[0].numel() <= LITERAL:
            data = tuple(args[0].flatten().tolist())
        self.calls.append(_Call(function, tuple(args), kwargs, results, writes, draws, data))
        return result


def initialisation_of(loaded: LoadedTask) -> Initialisation | None:
    """The constructor's draws as statements, or None where they cannot be told."""
    recorder = _Recorder()
    seed_everything(SEED)
    with torch.no_grad(), recorder:
        model = loaded.model_class(*loaded.init_args, **loaded.init_kwargs)
    state = {name: value.detach() for name, value in model.state_dict(keep_vars=True).items()}
    if recorder.asks:
        return None
    try:
        found = _written(recorder.calls, state)
    except _Unwritable:
        return None
    return found if _same(found, state) else None


def _written(calls: Sequence[_Call], state: dict[str, torch.Tensor]) -> Initialisation:
    live = {_storage(tensor) for tensor in state.values()}
    kept: list[_Call] = []
    for call in reversed(calls):
        if call.draws or call.writes & live:
            kept.append(call)
            live |= {_storage(tensor) for tensor in _tensors((call.args, call.kwargs))}
    names: dict[Key, str] = {}
    statements: list[str] = []

    def name_of(tensor: torch.Tensor) -> str:
        key = _key(tensor)
        if key not in names:
            raise _Unwritable(f"a tensor of {tensor.numel()} elements that no operator made")
        return names[key]

    for call in reversed(kept):
        text = _statement(call, name_of) if call.data is None else _made_from(call.data, call.results[0])
        new = [result for result in call.results if _key(result) not in names]
        if not new:
            if call.draws or call.function._schema.is_mutable:
                statements.append(text)
        elif len(call.results) == 1:
            names[_key(new[0])] = f"t{len(names)}"
            statements.append(f"{names[_key(new[0])]} = {text}")
        else:
            raise _Unwritable(f"{call.function} gives several tensors")
    return Initialisation(tuple(statements), {name: name_of(tensor) for name, tensor in state.items()})


def _statement(call: _Call, name_of: Any) -> str:
    """A method in place and the plain factories as people write them; any other operator by its full name."""
    base = call.function._schema.name.removeprefix("aten::")
    overload = call.function._overloadname
    kwargs = {key: value for key, value in call.kwargs.items() if not _default(key, value)}
    words = [_literal(value, name_of) for value in call.args] + [f"{k}={_literal(v, name_of)}" for k, v in kwargs.items()]
    if base in ("empty", "zeros", "ones", "full", "randn", "rand", "arange", "eye") and overload in (
        "default",
        "memory_format",
        "start",
    ):
        return f"torch.{base}({', '.join(words)})"
    if base.endswith("_") and not base.startswith("_") and call.args and isinstance(call.args[0], torch.Tensor):
        return f"{words[0]}.{base}({', '.join(words[1:])})"
    return f"torch.ops.aten.{base}.{overload}({', '.join(words)})"


def _made_from(data: tuple[Any, ...], result: torch.Tensor) -> str:
    values = _literal(data if result.ndim else data[0], None)
    shaped = f".reshape({list(result.shape)})" if result.ndim > 1 else ""
    return f"torch.tensor({values}, dtype={result.dtype}){shaped}"


def _default(key: str, value: Any) -> bool:
    """Keywords that say nothing: the CPU, no pinning, strided memory, our own generator."""
    if value is None or (key == "pin_memory" and not value):
        return True
    return (key == "device" and str(value) == "cpu") or (key == "layout" and value is torch.strided)


def _literal(value: Any, name_of: Any) -> str:
    if isinstance(value, torch.Tensor):
        return str(name_of(value))
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(item, name_of) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return str(value)
    if isinstance(value, torch.device) and value.type == "cpu":
        return "'cpu'"
    raise _Unwritable(f"a {type(value).__name__} among the arguments")


def _same(found: Initialisation, state: dict[str, torch.Tensor]) -> bool:
    """Whether the statements, run under the same seed, give the same state."""
    seed_everything(SEED)
    space: dict[str, Any] = {"torch": torch}
    try:
        with torch.no_grad():
            exec("\n".join(found.statements), space)  # our own text, from the schema names of operators and literals
    except Exception:
        return False
    return all(
        value.shape == space[found.values[name]].shape and torch.equal(value, space[found.values[name]])
        for name, value in state.items()
    )


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    if isinstance(value, dict):
        return _tensors(list(value.values()))
    return []


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _key(tensor: torch.Tensor) -> Key:
    return _storage(tensor), int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride())
