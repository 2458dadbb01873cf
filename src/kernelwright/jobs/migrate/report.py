"""migration.md: what was kept, what was re-scheduled and why, the verdicts of both kernels, the two programs side by side."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from kernelwright.core.job import JobSpec
from kernelwright.jobs.migrate import sides
from kernelwright.jobs.migrate.steps import source_of
from kernelwright.sketch.nodes import Kernel
from kernelwright.sketch.parse import parse

if TYPE_CHECKING:
    from kernelwright.core.verdict import Verdict
    from kernelwright.jobs.migrate.steps import Migrated

KINDS = {
    "kept": "The schedule is the source's.",
    "rescheduled": "The sketch was re-scheduled for the new device.",
    "redesigned": "The new language cannot express the source's sketch; the built-in designer's own design of the task was taken.",
    "designer": "The source could not be lifted; a model's Designer wrote the sketch with the source before its eyes.",
    "coder": "The source could not be lifted; a model's Coder wrote the kernel with the source before its eyes.",
}
CHOSEN = "Vector widths, register blocks, threads, warps and pipeline stages are no part of a sketch: the new language's coder chose them."


def markdown(job: JobSpec, made: Migrated, source_sketch: str) -> str:
    """The report's text."""
    source = source_of(job).kernel
    title = f"# {source.name}: {source.dsl} to {job.dsl}"
    where = f"The sketch was {made.origin} {'by' if made.origin == 'carried' else 'from'} the source."
    if made.origin == "written":
        where = "The source was not lifted: models wrote the kernel anew."
    parts = [
        title,
        f"`{source.path}` → `kernel.py`. {where} Both kernels were judged against {made.reference}.",
        "## Verdicts",
        verdicts(job, made),
        "## What was kept, what was re-scheduled",
        KINDS[made.chosen.kind],
        *_list("Re-scheduled", made.chosen.changes),
        *_list("Kept", made.chosen.kept),
        *_list("Rules of the device that no allowed change satisfies", made.chosen.open),
        *_list("Notes", made.notes),
        "" if made.chosen.kind == "coder" else CHOSEN,
        *(["## The sketch", _sketch(source_sketch, made.sketch)] if made.sketch.strip() else []),
        "## Side by side",
        f"Left: the source ({source.dsl}). Right: the migrated kernel ({job.dsl}). Joined by the kernels of the sketch.",
        *_sides(job, made),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def verdicts(job: JobSpec, made: Migrated) -> str:
    """A table of both verdicts."""
    source = source_of(job).kernel
    rows = ["| | language | verdict | executed | trials | why |", "| --- | --- | --- | --- | --- | --- |"]
    if made.source is None:
        rows.append(f"| source | {source.dsl} | not run | - | - | recorded outputs stand for it |")
    else:
        rows.append(_row("source", source.dsl, made.source))
    rows.append(_row("migrated", job.dsl, made.verdict))
    text = "\n".join(rows)
    timing = made.verdict.timing
    if timing is not None:
        text += (
            f"\n\nTimed on this machine: {timing.kernel_ms:.3g} ms; PyTorch eager {timing.eager_ms:.3g} ms: {timing.speedup:.2f}x "
            f"[{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]"
        )
        text += f"; torch.compile {timing.compile_ms:.3g} ms: {timing.speedup_vs_compile:.2f}x." if timing.compile_ms else "."
    for name, figures in (made.verdict.compiled_for or {}).items():
        if figures.registers is None:
            reached = f"lowered to {figures.stage} by {figures.compiler}" if figures.stage else figures.compiler
            text += f"\n\nFor {name} ({figures.architecture}): {reached}."
            continue
        text += (
            f"\n\nCompiled for {name} ({figures.architecture}, {figures.compiler}): {figures.registers} registers, "
            f"{figures.shared_memory} bytes of shared memory, {figures.spills} bytes spilled."
        )
    return text


def _row(who: str, dsl: str, verdict: Verdict) -> str:
    trials = f"{verdict.trials.seeds} seeds, {len(verdict.trials.distributions)} distributions, {verdict.trials.shapes} shapes"
    reason = verdict.reason.replace("|", "/").replace("\n", " ")
    return f"| {who} | {dsl} | {verdict.status} | {verdict.execution} | {trials} | {reason} |"


def _list(title: str, items: tuple[str, ...]) -> list[str]:
    return [f"{title}:\n\n" + "\n".join(f"- {item}" for item in items)] if items else []


def _sketch(before: str, after: str) -> str:
    if before.strip() == after.strip():
        return f"The same for both.\n\n```python\n{after.strip()}\n```"
    lines = difflib.unified_diff(
        before.strip().splitlines(), after.strip().splitlines(), "source", "migrated", lineterm="", n=3
    )
    changed = "\n".join(lines)
    return f"```python\n{after.strip()}\n```\n\nWhat changed:\n\n```diff\n{changed}\n```"


def _sides(job: JobSpec, made: Migrated) -> list[str]:
    source = source_of(job).kernel
    kernels = [step.name for step in parse(made.sketch).steps if isinstance(step, Kernel)] if made.sketch.strip() else []
    found = sides.pairs(kernels, sides.functions(source.source), sides.functions(made.kernel.source))
    return [f"### {title}\n\n```text\n{sides.columns(left, right)}\n```" for title, left, right in found]
