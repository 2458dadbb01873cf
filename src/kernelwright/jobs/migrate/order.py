"""An order of a migration: everything that was asked for, as plain data. `fulfil` does it, `resume` goes on with a run.

The texts of kernel and task are part of the order: a resumed run works on what it began with.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwright.core.errors import ConfigError, KernelwrightError
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.core.verdict import Track
from kernelwright.jobs import order as agents
from kernelwright.jobs.migrate.job import Migrated, Tools, migrate
from kernelwright.run.folder import JobFolder, default_path, open_folder
from kernelwright.run.journal import Journal
from kernelwright.run.memo import Memory
from kernelwright.run.observer import Observer

if TYPE_CHECKING:
    from kernelwright.store import Store

COMMAND = "migrate"


@dataclass(frozen=True)
class MigrationOrder:
    """What `kernelwright migrate` was asked for."""

    path: str
    source: str
    dsl: str
    to: str
    target: str = "auto"
    task_path: str = ""
    task_source: str = ""
    class_name: str = "Model"
    inputs: str = ""
    init: str = ""
    golden: str = ""
    track: Track = "pure"
    timing: bool = True
    compile_contender: bool = True
    out: str | None = None
    model: str = agents.BUILTIN
    base_url: str = ""
    max_cost: float | None = None
    max_tokens: int | None = None
    store: str = ""

    @property
    def kernel(self) -> Kernel:
        return Kernel.from_source(self.source, path=self.path, dsl=self.dsl)

    @property
    def task(self) -> Task | None:
        """The user's own task, if one was given."""
        if not self.task_source:
            return None
        return Task.from_source(self.task_source, path=self.task_path, class_name=self.class_name)

    @property
    def name(self) -> str:
        return self.task.name if self.task is not None else self.kernel.name

    def as_json(self) -> dict[str, Any]:
        return {"command": COMMAND, "task": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, job: dict[str, Any]) -> MigrationOrder:
        """The order of a run; fields of another version are refused in one sentence."""
        try:
            return cls(**{key: value for key, value in job.items() if key not in ("command", "task")})
        except TypeError as error:
            raise ConfigError(f"this run cannot be resumed: {error}") from error


@dataclass(frozen=True)
class Moved:
    """What came of an order."""

    folder: JobFolder
    migrated: Migrated
    run: str


def fulfil(order: MigrationOrder, observer: Observer | None = None) -> Moved:
    """A new run."""
    with ExitStack() as stack:
        store = agents.open_store(order.store, stack, needed=order.model != agents.BUILTIN)
        place = Path(order.out) if order.out else default_path(order.name, order.to)
        run = store.begin({**order.as_json(), "dsl": order.dsl, "out": str(place.resolve())}) if store else None
        return _work(order, store, run, observer or Observer(), stack)


def resume(job: dict[str, Any], store: Store, run: Any, observer: Observer, stack: ExitStack) -> Moved:
    """Go on with a run: it is repeated from its start, and what it had found out is recalled."""
    return _work(MigrationOrder.from_json(job), store, run, observer, stack)


def _work(order: MigrationOrder, store: Store | None, run: Any, observer: Observer, stack: ExitStack) -> Moved:
    from kernelwright.judge import Judge
    from kernelwright.run.drafts import Drafter

    name = run.id if run is not None else None
    folder = open_folder(Path(order.out) if order.out else None, order.name, order.to, run=name)
    journal = Journal(folder, store, run)
    memory = Memory(name or "", store)
    tools = Tools(stack.enter_context(Judge()), stack.enter_context(Drafter()), folder, journal, memory, observer, store, run)
    try:
        migrated = migrate(order, tools)
    except KernelwrightError:
        journal.finish("failed", None)
        raise
    ok = migrated.verdict.ok
    journal.finish("done" if ok else "failed", migrated.kernel if ok else None)
    return Moved(folder, migrated, folder.run)
