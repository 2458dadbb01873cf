"""`kernelwright.use("aten::layer_norm", kernel)`: an operator of torch runs on a kernel for the shapes and dtypes that it serves.

In: an operator's name and a kernel (a file or run of ours, a callable with the operator's arguments, or none: then one is designed for
each signature that comes). Out: a context manager; inside of it the operator is overridden by `torch.library`, for all threads. Every
signature (shapes, dtypes and the values of all other arguments) is held against torch's own kernel when it first comes: what is not right,
or what was designed here and is not faster, stays with torch and counts as a miss. Gradients stay with torch.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch.fx import GraphModule

from kernelwright.api.bounds import complaint, tensors
from kernelwright.api.piece import Piece, recipe
from kernelwright.api.trial import Trial
from kernelwright.compiler.backends.cpp.c_library import Argument, Library
from kernelwright.core.errors import ConfigError, KernelwrightError

Key = tuple[Any, ...]


@dataclass
class Signature:
    """One kind of call: how often it came, and who serves it. `why` says what keeps it with torch."""

    text: str
    run: Callable[..., Any] | None
    why: str
    calls: int = 0


class Overlay:
    """Enter it to override, leave it to undo. `hits` and `misses` count calls; `print(overlay)` is a table of signatures."""

    def __init__(self, operator: str, kernel: str | Path | Callable[..., Any] | None = None, *, race: bool = True) -> None:
        self.operator = operator
        self.target = _found(operator)
        self.race = race
        self.name = self.target.name()
        self.names = [a.name for a in self.target._schema.arguments]
        self._composite = torch._C._dispatch_has_kernel_for_dispatch_key(self.name, "CompositeImplicitAutograd")
        self._own = None if self._composite else torch.library.get_kernel(self.target, "CPU")
        self._call = kernel if callable(kernel) else None
        self._libraries = _libraries(kernel) if isinstance(kernel, str | Path) else ()
        self._designs = kernel is None
        self._registered: Any = None
        self._lock = threading.RLock()
        self._deciding = threading.local()
        self.signatures: dict[Key, Signature] = {}

    @property
    def hits(self) -> int:
        """Calls that the kernel served."""
        return sum(s.calls for s in self.signatures.values() if s.run is not None)

    @property
    def misses(self) -> int:
        """Calls that torch served."""
        return sum(s.calls for s in self.signatures.values() if s.run is None)

    def __str__(self) -> str:
        lines = [f"{self.operator}: {self.hits} hits, {self.misses} misses"]
        for s in self.signatures.values():
            lines.append(f"  {s.text}  {s.calls}x  {'kernel' if s.run is not None else f'torch: {s.why}'}")
        return "\n".join(lines)

    def __enter__(self) -> Self:
        with self._lock:
            if self._registered is not None:
                raise ConfigError(f"{self.operator} is overridden by this already")
            self._register()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._remove()

    def _register(self) -> None:
        made = torch.library.Library(self.name.partition("::")[0], "IMPL")
        word = self.name.partition("::")[2]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Warning only once")
            made.impl(word, self._served, "CPU", with_keyset=True, allow_override=True)
            if self._composite:  # else autograd would find a kernel without a formula
                made.impl(word, self._served, "AutogradCPU", with_keyset=True, allow_override=True)
        self._registered = made

    def _remove(self) -> None:
        if self._registered is not None:
            self._registered._destroy()
            self._registered = None

    def _torch(self, keyset: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
        if self._own is not None:
            return self._own.call_boxed(keyset, *args, **named)
        return self.target.decompose(*args, **named)

    def _served(self, keyset: Any, *args: Any, **named: Any) -> Any:
        if getattr(self._deciding, "now", False):
            return self._torch(keyset, args, named)
        given = [*args, *(named.get(n, a.default_value) for n, a in self._rest(len(args)))]
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in given):
            return self._counted(("gradients",), "gradients are needed", keyset, args, named)
        if any(isinstance(a, list | tuple) and any(isinstance(t, torch.Tensor) for t in a) for a in given):
            return self._counted(("lists",), "an argument is a list of tensors", keyset, args, named)
        key = tuple(
            (tuple(a.shape), a.dtype, a.is_contiguous()) if isinstance(a, torch.Tensor) else (type(a), str(a)) for a in given
        )
        known = self.signatures.get(key) or self._decided(key, given)
        known.calls += 1
        if known.run is None:
            return self._torch(keyset, args, named)
        return known.run(*given)

    def _rest(self, count: int) -> list[tuple[str, Any]]:
        return [(a.name, a) for a in self.target._schema.arguments[count:]]

    def _counted(self, key: Key, why: str, keyset: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
        self.signatures.setdefault(key, Signature("any", None, why)).calls += 1
        return self._torch(keyset, args, named)

    def _decided(self, key: Key, given: list[Any]) -> Signature:
        """Who serves this signature; torch's own operator is back in its place while that is found out."""
        with self._lock:
            if key in self.signatures:
                return self.signatures[key]
            text = ", ".join(
                f"{str(a.dtype).removeprefix('torch.')}{list(a.shape)}" if isinstance(a, torch.Tensor) else str(a)
                for a in given
            )
            active = self._registered is not None
            self._remove()
            self._deciding.now = True
            try:
                with torch.no_grad():
                    run, why = self._chosen([a.detach() if isinstance(a, torch.Tensor) else a for a in given])
            except (RuntimeError, TypeError, ValueError, IndexError, KeyError, KernelwrightError) as error:
                run, why = None, (str(error).splitlines() or [type(error).__name__])[0][:160]
            finally:
                self._deciding.now = False
                if active:
                    self._register()
            self.signatures[key] = Signature(text, run, why)
            return self.signatures[key]

    def _chosen(self, given: list[Any]) -> tuple[Callable[..., Any] | None, str]:
        places = [k for k, a in enumerate(given) if isinstance(a, torch.Tensor)]
        graph = _graph(self.target, given, places)
        inputs = [given[k] for k in places]
        if self._designs:
            return self._designed(graph, inputs, places)
        if self._call is not None:
            return self._right(graph, inputs, self._call, given)
        why = "the kernel serves other shapes or dtypes"
        for library in self._libraries:
            used = _matched(library, [(self.names[k], given[k], place) for place, k in enumerate(places)])
            if used is not None:
                piece = Piece(recipe(library, used), [None] * len(tensors(self.target(*given))))
                run, why = self._right(graph, inputs, lambda *args, piece=piece: piece(*(args[k] for k in places)), given)
                if run is not None:
                    return run, ""
        return None, why

    def _designed(self, graph: GraphModule, inputs: list[Any], places: list[int]) -> tuple[Callable[..., Any] | None, str]:
        strides = [None if t.is_contiguous() else tuple(t.stride()) for t in tensors(graph(*inputs))]
        trial = Trial.of(graph, inputs, strides, raced=self.race)
        if trial.finding is None:
            with ThreadPoolExecutor(1) as pool:
                trial.begin(inputs, pool)
                trial.wait()
            found = trial.judge(inputs)
        else:
            found = trial.finding
        if not found.used:
            return None, found.why
        piece = trial.piece()
        return lambda *args: piece(*(args[k] for k in places)), ""

    def _right(
        self, graph: GraphModule, inputs: list[Any], run: Callable[..., Any], given: list[Any]
    ) -> tuple[Callable[..., Any] | None, str]:
        wrong = complaint(graph, inputs, tensors(graph(*inputs)), tensors(run(*given)))
        return (None, f"not right: {wrong}") if wrong else (run, "")


def use(operator: str, kernel: str | Path | Callable[..., Any] | None = None, *, race: bool = True) -> Overlay:
    """An overlay for an operator such as `aten::layer_norm` or `aten::add.Tensor`: `with use(…) as overlay:`. Without a kernel one is
    designed for each signature and used where it is faster (`race=False`: where it is right)."""
    return Overlay(operator, kernel, race=race)


def _found(name: str) -> Any:
    space, _, word = name.partition("::")
    word, _, overload = word.partition(".")
    try:
        packet = getattr(getattr(torch.ops, space), word)
        target = getattr(packet, overload or packet.overloads()[0])
    except (AttributeError, IndexError, RuntimeError):
        raise ConfigError(f"torch has no operator {name!r}; name it as aten::layer_norm or aten::add.Tensor") from None
    if target._schema.is_mutable:
        raise ConfigError(f"{name} changes its arguments; only operators that give new results can be overridden")
    return target


def _libraries(kernel: str | Path) -> tuple[Library, ...]:
    from kernelwright.api.packages.contents import Contents

    found = Contents.of(kernel).libraries
    if any(library.kept and any(a.role == "param" for a in library.inputs) for library in found):
        raise ConfigError(
            f"{kernel} keeps what it makes of its parameters: export it (--as torch-op) and pass that package's operator instead"
        )
    return found


def _graph(target: Any, given: list[Any], places: list[int]) -> GraphModule:
    """The call as a functional ATen graph of its tensors; all other arguments are fixed."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(*values: Any) -> tuple[Any, ...]:
        args = list(given)
        for k, value in zip(places, values, strict=True):
            args[k] = value
        return tuple(tensors(target(*args)))

    made: GraphModule = make_fx(call, tracing_mode="fake")(*(given[k] for k in places))
    return made


def _matched(library: Library, given: list[tuple[str, Any, int]]) -> tuple[int, ...] | None:
    """Which tensor of the call each input of the kernel is: a parameter by its own name, all others in order. None where one does not
    fit."""
    left = list(given)
    used: dict[str, int] = {}
    for argument in library.inputs:
        own = next((g for g in left if argument.role == "param" and g[0] == argument.source.rpartition(".")[2]), None)
        if own is not None:
            left.remove(own)
            used[argument.name] = own[2]
            if not _fits(argument, own[1]):
                return None
    for argument in sorted((a for a in library.inputs if a.name not in used), key=_order):
        if not left or not _fits(argument, left[0][1]):
            return None
        used[argument.name] = left.pop(0)[2]
    return tuple(used[a.name] for a in library.inputs)


def _order(argument: Argument) -> tuple[bool, int]:
    return argument.role != "input", int(argument.source) if argument.source.isdigit() else 0


def _fits(argument: Argument, tensor: Any) -> bool:
    return tuple(tensor.shape) == argument.shape and str(tensor.dtype) == f"torch.{argument.dtype.torch_name}"
