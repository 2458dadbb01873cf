"""A graph with symbolic sizes: one program for each size that keeps coming, eager for all others.

In: Dynamo's graph with symbols among its inputs, and a function that compiles it for plain sizes. Out: `BySize`, called like the graph.
A size is worth preparing when it has come `COMES` times, and at most `MOST` are: a cache that grows by a token a call never comes back
with the same size, and must not be compiled for each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernelwright.api.explanation import Record

COMES = 3
MOST = 4
SEEN = 256
"""Sizes whose calls are counted; a program with more of them has none that keeps coming."""

Key = tuple[int, ...]


def symbolic(value: Any) -> bool:
    """Whether an input of a graph is a symbol or has one among its sizes."""
    if isinstance(value, torch.SymInt):
        return True
    return isinstance(value, torch.Tensor) and any(isinstance(e, torch.SymInt) for e in (*value.shape, *value.stride()))


class BySize:
    """Thread-safe: one thread compiles a size, the others are served by eager meanwhile."""

    def __init__(
        self, eager: Callable[..., Any], compile_for: Callable[[Sequence[Any]], Callable[..., Any]], record: Record
    ) -> None:
        self.eager, self.compile_for, self.record = eager, compile_for, record
        self._calls: dict[Key, int] = {}
        self._made: dict[Key, Callable[..., Any]] = {}
        self._lock = threading.Lock()
        self._tell()

    def __call__(self, *args: Any) -> Any:
        key = _key(args)
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

    def _due(self, key: Key) -> bool:
        if key not in self._calls and len(self._calls) >= SEEN:
            return False
        self._calls[key] = self._calls.get(key, 0) + 1
        return self._calls[key] >= COMES

    def _tell(self) -> None:
        self.record.why = (
            f"sizes are symbols: {len(self._made)} of at most {MOST} sizes that came {COMES} times have a graph of their own"
        )


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
