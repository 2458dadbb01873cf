"""What cannot be lifted, written by models: the team of agents gets the source kernel beside the task.

In: a job with a task and a model, and the lifter's refusal. Out: a `Migrated` whose kernel a model's design or its Coder gave. Without
task or model the refusal stands: nobody could tell whether a model's kernel does what the source does.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from kernelwright.agents.team_models import TeamModels
from kernelwright.core.job import JobSpec
from kernelwright.jobs.generate import with_team
from kernelwright.jobs.migrate.lifting import Unliftable
from kernelwright.jobs.migrate.worker import Candidate
from kernelwright.jobs.models import open_models
from kernelwright.run.workbench import Workbench

if TYPE_CHECKING:
    from kernelwright.jobs.migrate.steps import Migrated, Tools


def written(job: JobSpec, tools: Tools, refusal: Unliftable, started: float) -> Migrated:
    """The models' kernel, or the refusal with what would help."""
    from kernelwright.jobs.migrate import report
    from kernelwright.jobs.migrate.steps import Migrated, judged_source, source_of, write

    task, source = job.task, source_of(job)
    if not job.models.asked:
        raise refusal
    if task is None:
        raise Unliftable(f"{refusal}; a model may write it anew, but only with a --task that says what is right")
    if source.golden:
        raise Unliftable(f"{refusal}; without a sketch there is nothing to compare recorded outputs with")
    notes = [f"not lifted: {refusal}"]
    tools.journal.step("sketch", f"the source cannot be lifted: {refusal}", {"kernel": source.kernel.source}, status="refused")
    before = judged_source(job, tools, task, job.track, source.kernel, (), notes)
    bench = Workbench(replace(job, source=replace(source, refusal=str(refusal))), tools.judge, tools.drafter, tools.memory)
    if job.timing:
        tools.judge.prepare(task, job.dsl, job.target, compile_contender=job.compile_contender)
    with ExitStack() as stack:
        designer, coder = open_models(job.models, tools.store, tools.run, stack)
        models = TeamModels(designer, coder, tools.store, tools.run, tools.memory)
        best, ended, _ = with_team(bench, tools.journal, tools.folder, tools.observer, models)
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
    write(tools.folder, "migration.md", report.markdown(job, made, best.sketch))
    return made
