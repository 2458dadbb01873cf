"""What cannot be lifted, written by models: the team of agents gets the source kernel beside the task.

In: an order with a task and a model, and the lifter's refusal. Out: a `Migrated` whose kernel a model's design or its Coder gave. Without
task or model the refusal stands: nobody could tell whether a model's kernel does what the source does.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from kernelwright.agents.team_models import TeamModels
from kernelwright.core import effort as efforts
from kernelwright.jobs import order as agents
from kernelwright.jobs.generate import with_team
from kernelwright.jobs.migrate.lifting import Unliftable
from kernelwright.jobs.migrate.worker import Candidate
from kernelwright.run.workbench import Job, Original, Workbench

if TYPE_CHECKING:
    from kernelwright.jobs.migrate.job import Migrated, Tools
    from kernelwright.jobs.migrate.order import MigrationOrder


def written(order: MigrationOrder, tools: Tools, refusal: Unliftable, started: float) -> Migrated:
    """The models' kernel, or the refusal with what would help."""
    from kernelwright.jobs.migrate import report
    from kernelwright.jobs.migrate.job import Migrated, judged_source, write

    task = order.task
    if order.model == agents.BUILTIN:
        raise refusal
    if task is None:
        raise Unliftable(f"{refusal}; a model may write it anew, but only with a --task that says what is right")
    if order.golden:
        raise Unliftable(f"{refusal}; without a sketch there is nothing to compare recorded outputs with")
    notes = [f"not lifted: {refusal}"]
    tools.journal.step("sketch", f"the source cannot be lifted: {refusal}", {"kernel": order.source}, status="refused")
    before = judged_source(order, tools, task, order.track, order.source, (), notes)
    original = Original(order.source, order.dsl, str(refusal))
    effort = efforts.preset("quick")
    job = Job(task, order.to, order.track, effort, None, order.timing, order.compile_contender, order.target, original=original)
    bench = Workbench(job, tools.judge, tools.drafter, tools.memory)
    if order.timing:
        tools.judge.prepare(task, order.to, order.target, compile_contender=order.compile_contender)
    with ExitStack() as stack:
        asked = agents.Order(
            order.task_path,
            order.task_source,
            order.class_name,
            model=order.model,
            base_url=order.base_url,
            max_cost=order.max_cost,
            max_tokens=order.max_tokens,
        )
        designer, coder = agents.open_models(asked, tools.store, tools.run, stack)
        minds = TeamModels(designer, coder, tools.store, tools.run, tools.memory)
        best, ended, _ = with_team(bench, tools.journal, tools.folder, tools.observer, minds)
    chosen = Candidate("coder" if best.author == "coder" else "designer", best.kernel, best.sketch)
    made = Migrated(
        best.kernel,
        best.sketch,
        best.verdict,
        before,
        chosen,
        "written",
        "the task",
        (*notes, ended),
        round(time.monotonic() - started, 3),
    )
    write(tools.folder, "migration.md", report.markdown(order, made, best.sketch))
    return made
