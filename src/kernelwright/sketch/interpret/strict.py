"""Strict mode of the interpreter: who wrote which element, and when.

In: every load and store as it happens, and the parallel loops it stands in. Out: a SketchError at the first race, read of
unwritten memory, or output element that nobody wrote. Two accesses race when they belong to different iterations of one
execution of one parallel loop, touch the same element, and at least one writes it other than atomically.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.interpret import storage

Stack = tuple[tuple[int, str, int], ...]
"""Open parallel loops from the outside in: (execution of the loop, variable, value)."""

UNWRITTEN = -1
_ATOMIC = 1 << 40
"""Added to the access number of an atomic update, so that two atomic updates of one element do not count as a race."""


def racing(first: Stack, second: Stack) -> bool:
    """Whether two accesses stand in different iterations of the same execution of a parallel loop."""
    for one, other in zip(first, second, strict=False):
        if one != other:
            return one[0] == other[0]
    return False


class Observer:
    """Keeps, for each element of each output and temp, the last access that wrote it and the last that read it."""

    def __init__(self, sketch: nodes.Sketch, tensors: dict[str, torch.Tensor]) -> None:
        watched = [t.name for t in sketch.tensors if t.role in ("output", "temp")]
        # A view has the same elements in the same order, so its accesses are booked on the tensor it looks at.
        self._base = {name: name for name in watched}
        self._base |= {t.name: t.source for t in sketch.tensors if t.role == "view" and t.source in watched}
        self._shapes = {name: list(tensors[name].shape) for name in self._base}
        self._writer = {name: torch.full((tensors[name].numel(),), UNWRITTEN, dtype=torch.int64) for name in watched}
        self._reader = {name: torch.full((tensors[name].numel(),), UNWRITTEN, dtype=torch.int64) for name in watched}
        self._stacks: list[Stack] = [()]
        self._open: list[tuple[int, str, int]] = []
        self._executions = 0

    # ---- loops

    def begin_kernel(self, _name: str) -> None:
        """A kernel starts after the previous one ended: earlier accesses cannot race with it."""
        self._open = []
        self._stacks.append(())

    def enter(self) -> None:
        """A parallel loop begins."""
        self._executions += 1
        self._open.append((self._executions, "", 0))

    def iterate(self, variable: str, value: int) -> None:
        """The next iteration of the innermost open parallel loop."""
        self._open[-1] = (self._open[-1][0], variable, value)
        self._stacks.append(tuple(self._open))

    def leave(self) -> None:
        """The innermost parallel loop has ended."""
        self._open.pop()
        self._stacks.append(tuple(self._open))

    # ---- accesses

    def on_load(self, load: nodes.Load, places: Sequence[storage.Place]) -> None:
        """A load reads only what was written, and not by another iteration of an open parallel loop."""
        if load.tensor not in self._base:
            return
        positions, base = self._positions(load.tensor, places), self._base[load.tensor]
        writers = self._writer[base][positions]
        if bool((writers == UNWRITTEN).any()):
            raise SketchError(f"load of {load.tensor} reads elements that were never written", line=load.line)
        self._refuse_race(writers, f"load of {load.tensor} reads what another iteration writes", load.line)
        self._reader[base][positions] = len(self._stacks) - 1

    def on_store(self, store: nodes.Store, places: Sequence[storage.Place]) -> None:
        """A store touches nothing that another iteration wrote or read; an atomic update needs something to update."""
        positions, base = self._positions(store.tensor, places), self._base[store.tensor]
        writers = self._writer[base][positions]
        atomic = store.mode != "set"
        if atomic and bool((writers == UNWRITTEN).any()):
            raise SketchError(f"store to {store.tensor} with mode={store.mode!r} updates unwritten elements", line=store.line)
        against = writers[writers < _ATOMIC] if atomic else writers
        self._refuse_race(against, f"store to {store.tensor} writes an element that another iteration writes", store.line)
        self._refuse_race(
            self._reader[base][positions],
            f"store to {store.tensor} writes an element that another iteration reads",
            store.line,
        )
        self._writer[base][positions] = len(self._stacks) - 1 + (_ATOMIC if atomic else 0)

    def written_by_library(self, names: Iterable[str]) -> None:
        """A library call writes its outputs whole."""
        for name in names:
            if name in self._base:
                self._writer[self._base[name]].fill_(0)

    def require_written(self, names: Iterable[str]) -> None:
        """Every element of every output must have been written."""
        for name in names:
            missing = int((self._writer[name] == UNWRITTEN).sum())
            if missing:
                first = int((self._writer[name] == UNWRITTEN).nonzero()[0])
                where = [int(i) for i in torch.unravel_index(torch.tensor(first), self._shapes[name])]
                raise SketchError(f"{missing} elements of output {name} are never written, the first at {where}")

    def _positions(self, name: str, places: Sequence[storage.Place]) -> torch.Tensor:
        flat, valid = storage.flat_positions(places, self._shapes[name])
        return flat[valid]

    def _refuse_race(self, accesses: torch.Tensor, reason: str, line: int) -> None:
        here = tuple(self._open)
        for access in torch.unique(accesses).tolist():
            if access == UNWRITTEN:
                continue
            other = self._stacks[access % _ATOMIC]
            if racing(other, here):
                values = [f"{name}={value}" for _, name, value in here]
                others = [f"{name}={value}" for _, name, value in other]
                raise SketchError(f"{reason} ({', '.join(values)} and {', '.join(others)})", line=line)
