"""A job from its specification to its result: `start` a new one, `resume` one that the store has.

In: a JobSpec (from a door, or from a run in the store). Out: `Finished`: the folder, the result, the run's name. Which of generate and
migrate it is, the specification says; tuning is generate with a search, a benchmark calls `generate` for each of its tasks itself.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelwright.agents.team_models import TeamModels
from kernelwright.core.errors import KernelwrightError, StoreError, ToolMissing
from kernelwright.core.job import JobSpec
from kernelwright.jobs.generate import Generated, generate
from kernelwright.jobs.migrate.steps import Migrated, Tools, migrate
from kernelwright.jobs.models import open_models
from kernelwright.run.folder import JobFolder, default_path, open_folder
from kernelwright.run.journal import Journal
from kernelwright.run.memo import Memory
from kernelwright.run.observer import Observer

if TYPE_CHECKING:
    from kernelwright.judge import Judge
    from kernelwright.run.drafts import Drafter
    from kernelwright.store import Run, Store


@dataclass(frozen=True)
class Finished:
    """What came of a job."""

    folder: JobFolder
    result: Generated | Migrated
    run: str


def start(job: JobSpec, observer: Observer | None = None) -> Finished:
    """A new run. Without a model, a store that cannot be opened is no reason to stop; with one, it is: what is paid for is kept."""
    with ExitStack() as stack:
        tools = _tools(stack)
        store = open_store(job.store, stack, needed=job.models.asked)
        place = Path(job.out) if job.out else default_path(job.name, job.dsl)
        run = store.begin({**job.as_json(), "out": str(place.resolve())}) if store else None
        return _work(job, store, run, observer or Observer(), stack, tools)


def resume(prefix: str, place: str = "", observer: Observer | None = None) -> Finished:
    """Go on with a run: it is repeated from its start, and what it had found out or paid for is recalled."""
    from kernelwright.store import Store

    with ExitStack() as stack:
        store = stack.enter_context(Store.open(place or None))
        run = store.resume(prefix)
        tools = _tools(stack)
        return _work(JobSpec.from_json(run.job), store, run, observer or Observer(), stack, tools)


def open_store(place: str, stack: ExitStack, *, needed: bool) -> Store | None:
    """The store, or None where there is none and nothing that is paid for depends on it."""
    from kernelwright.store import Store

    try:
        return stack.enter_context(Store.open(place or None))
    except (StoreError, ToolMissing):
        if needed:
            raise
        return None


def _tools(stack: ExitStack) -> tuple[Drafter, Judge]:
    """Who designs and who judges. First of all, since both import torch in the background, which takes longer than all the rest."""
    from kernelwright.core import config
    from kernelwright.judge import Judge
    from kernelwright.run.drafts import Drafter

    confined = config.load().settings.sandbox_tasks
    return stack.enter_context(Drafter(confined=confined)), stack.enter_context(Judge(confined=confined))


def _work(
    job: JobSpec, store: Store | None, run: Run | None, observer: Observer, stack: ExitStack, tools: tuple[Drafter, Judge]
) -> Finished:
    drafter, judge = tools
    folder = open_folder(Path(job.out) if job.out else None, job.name, job.dsl, run=run.id if run is not None else None)
    record = Path(job.models.record) if job.models.record else None
    memory = Memory(run.id if run is not None else "", store, record=record, replay=job.models.recording)
    if job.source is not None:
        moving = Tools(judge, drafter, folder, Journal(folder, store, run), memory, observer, store, run)
        return Finished(folder, _migrated(job, moving), folder.run)
    designer, coder = open_models(job.models, store, run, stack) if job.models.asked else (None, None)
    team = TeamModels(designer, coder, store, run, memory, job.models.knowledge)
    return Finished(folder, generate(job, judge, drafter, folder, models=team, observer=observer), folder.run)


def _migrated(job: JobSpec, tools: Tools) -> Migrated:
    try:
        made = migrate(job, tools)
    except KernelwrightError:
        with suppress(KernelwrightError):  # where the disk is full, the end cannot be written either: the first error is told
            tools.journal.finish("failed", None)
        raise
    tools.journal.finish("done" if made.verdict.ok else "failed", made.kernel.source if made.verdict.ok else None)
    return made
