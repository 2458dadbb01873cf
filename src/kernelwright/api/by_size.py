"""A graph with symbolic sizes: one kernel for any of them where the Designer makes one (`any_size`); else one program for each size that
keeps coming, and eager for all others.

In: Dynamo's graph with symbols among its inputs, and functions that compile it for any size and for plain ones. Out: `BySize`, called like
the graph. The kernel for any size is held against eager at the first sizes that come, and raced with it at the first few: where it loses,
or is not right, the size is treated like those that have no such kernel. A size is worth a program of its own when it has come `COMES`
times, and at most `MOST` are: a cache that grows by a token a call never comes back with the same size, and must not be compiled for each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernelwright.api.bounds import complaint, tensors
from kernelwright.api.explanation import Record
from kernelwright.api.race import race
from kernelwright.core.errors import KernelwrightError

COMES = 3
MOST = 4
SEEN = 256
"""Sizes whose calls are counted; a program with more of them has none that keeps coming."""
RACED = 3
"""Sizes at which the kernel for any size is raced; it must have won at all of them to be used at further ones."""
HELD = 8
"""Sizes at which it is held against eager."""

Key = tuple[int, ...]
Run = Callable[..., Any]


def symbolic(value: Any) -> bool:
    """Whether an input of a graph is a symbol or has one among its sizes."""
    if isinstance(value, torch.SymInt):
        return True
    return isinstance(value, torch.Tensor) and any(isinstance(e, torch.SymInt) for e in (*value.shape, *value.stride()))


class BySize:
    """Thread-safe: one thread compiles a size, the others are served by eager meanwhile."""

    def __init__(
        self,
        eager: Run,
        compile_for: Callable[[Sequence[Any]], Run],
        compile_any: Callable[[Sequence[Any]], Run] | None,
        record: Record,
        *,
        raced: bool = True,
        usable: Callable[[], bool] = lambda: True,
    ) -> None:
        """`compile_any` is None where no kernel for any size is wanted; `usable` says whether kernels may run in this process."""
        self.eager, self.compile_for, self.compile_any = eager, compile_for, compile_any
        self.record, self.raced, self.usable = record, raced, usable
        self.any: Run | None = None
        self._why = ""
        self._calls: dict[Key, int] = {}
        self._made: dict[Key, Run] = {}
        self._won: dict[Key, bool] = {}
        self._lock = threading.Lock()
        self._tell()

    def __call__(self, *args: Any) -> Any:
        if not self.usable():
            return self.eager(*args)
        key = _key(args)
        if self.compile_any is not None or (self.any is not None and key not in self._won):
            self._try_any(key, args)
        if self.any is not None and self._won.get(key, self._trusted):
            return self.any(*args)
        made = self._made.get(key)
        if made is not None:
            return made(*args)
        if len(self._made) < MOST and self._due(key) and self._lock.acquire(blocking=False):
            try:
                if key not in self._made:
                    self._made[key] = self.compile_for(args)
                    self._tell()
                return self._made[key](*args)
            finally:
                self._lock.release()
        return self.eager(*args)

    @property
    def _trusted(self) -> bool:
        """Whether sizes that nobody tried are served by the kernel for any size."""
        return len(self._won) >= HELD and all(self._won.values())

    def _try_any(self, key: Key, args: Sequence[Any]) -> None:
        """Makes the kernel at the first call, and tries it at the first sizes."""
        if len(self._won) >= HELD or not self._lock.acquire(blocking=False):
            return
        try:
            if self.compile_any is not None:
                compile_any, self.compile_any = self.compile_any, None
                self.any = compile_any(args)
            if self.any is not None and key not in self._won:
                self._won[key] = self._wins(args)
                if list(self._won.values()).count(False) > 1:
                    self.any = None
        except KernelwrightError as error:
            self._why = str(error)
        except Exception as error:  # a fault of ours must not become one of the user's program
            self.any, self._why = None, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}"
        finally:
            self._tell()
            self._lock.release()

    def _wins(self, args: Sequence[Any]) -> bool:
        assert self.any is not None
        run = self.any
        wrong = complaint(self.eager, args, tensors(self.eager(*args)), tensors(run(*args)))
        if wrong:
            self.any, self._why = None, f"not right: {wrong}"
            return False
        if not self.raced or (len(self._won) >= RACED and all(self._won.values())):
            return True
        outcome = race(lambda: self.eager(*args), lambda: run(*args))
        self.record.gain, self.record.low, self.record.high, self.record.eager = (
            outcome.gain,
            outcome.low,
            outcome.high,
            outcome.eager,
        )
        if not outcome.won:
            self._why = f"no faster than eager{'' if outcome.quiet else ', on a busy machine'}"
        return outcome.won

    def _due(self, key: Key) -> bool:
        if key not in self._calls and len(self._calls) >= SEEN:
            return False
        self._calls[key] = self._calls.get(key, 0) + 1
        return self._calls[key] >= COMES

    def _tell(self) -> None:
        won = sum(self._won.values())
        self.record.used = self.any is not None and won > 0
        if self.any is not None:
            self.record.why = (
                f"sizes are symbols: one kernel for any of them, in use at {won} of the {len(self._won)} that were tried"
            )
            return
        own = f"{len(self._made)} of at most {MOST} sizes that came {COMES} times have a graph of their own"
        said = f" (one kernel for any size: {self._why})" if self._why else ""
        self.record.why = f"sizes are symbols: {own}{said}"


def _key(args: Sequence[Any]) -> Key:
    """All that a graph for plain sizes is made for."""
    found: list[int] = []
    for a in args:
        if isinstance(a, torch.Tensor):
            found.extend(a.shape)
            found.extend(a.stride())
        elif isinstance(a, int):
            found.append(a)
    return tuple(found)
