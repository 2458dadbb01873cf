"""The journal of a run: every step with its reason, in the job's folder and, where there is a store, in the store.

In: a step when it is finished. Out: nothing, but it is on disk when `step` returns. Texts are kept in the store under their hash, so
that `kernelwright show` can print what was asked and answered. A resumed run repeats its steps; the store recognises them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernelwright.run.folder import JobFolder
from kernelwright.run.workbench import digest

if TYPE_CHECKING:
    from kernelwright.store import Run, Store


class Journal:
    """Writes to the folder, and to the store's run if there is one."""

    def __init__(self, folder: JobFolder, store: Store | None = None, run: Run | None = None) -> None:
        self._folder, self._store, self._run = folder, store, run

    @property
    def run(self) -> str:
        """The run's name."""
        return self._run.id if self._run is not None else self._folder.run

    @property
    def store(self) -> Store | None:
        """Where the journal is kept beside the folder."""
        return self._store

    def step(
        self,
        kind: str,
        reason: str,
        inputs: Mapping[str, str] | None = None,
        result: str | None = None,
        **facts: Any,
    ) -> None:
        """One finished step. `inputs` and `result` are texts; what is written are their hashes."""
        named = {name: self._kept(text) for name, text in (inputs or {}).items() if text}
        made = self._kept(result) if result else None
        told = {name: value for name, value in facts.items() if value is not None}
        if self._run is not None:
            self._run.step(kind, reason, named, made, told)
        self._folder.journal(kind, reason=reason, inputs=named, result=made, **told)

    def finish(self, status: str, best: str | None) -> None:
        """The run has ended."""
        self._folder.journal("done", status=status, kernel=digest(best) if best else None)
        if self._run is not None:
            self._run.finish(status, self._kept(best) if best else None)

    def _kept(self, text: str) -> str:
        return self._store.put(text.encode(errors="replace")) if self._store is not None else digest(text)
