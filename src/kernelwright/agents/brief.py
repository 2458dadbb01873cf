"""What every role is told about a task: its source, what goes in and out, what it costs at least on this hardware.

In: a task, its facts (from the judge's referee, in a worker: the file is executed there) and a target. Out: `Brief`, texts for prompts.
What changes from run to run (how long PyTorch takes) is a finding of the run, recorded and replayed like the others; the judge's seed is
never in it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kernelwright.agents import eager
from kernelwright.agents.knowledge.families import families
from kernelwright.agents.prompts import fence
from kernelwright.core.errors import JudgeError, TaskError
from kernelwright.core.job import Source
from kernelwright.core.task import Task
from kernelwright.core.verdict import Track
from kernelwright.judge.servers import REFEREE
from kernelwright.judge.timing.roofline import Work, roofline
from kernelwright.run.workbench import Workbench
from kernelwright.target import Target
from kernelwright.workers.channel import ChannelError, close_all
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.limits import Limits

EXAMINE_SECONDS = 600.0
KEPT = (
    *(
        "inputs",
        "outputs",
        "shapes",
        "parameters",
        "input_bytes",
        "output_bytes",
        "parameter_bytes",
        "flops",
        "longest_reduction",
    ),
    *("operators", "dtype", "state", "aliases_inputs"),
)
"""Facts that are the task's own, and the same at every look."""


@dataclass(frozen=True)
class Brief:
    """A task as the team sees it."""

    task: Task
    dsl: str
    track: Track
    target: Target
    threads: int
    facts: dict[str, Any]
    families: tuple[str, ...]
    original: Source | None = None
    pytorch: dict[str, Any] = field(default_factory=dict)
    """What eager and torch.compile take, as `eager.measured` found it."""

    @property
    def pytorch_text(self) -> str:
        """What PyTorch takes, in a few lines."""
        return eager.told(self.pytorch)

    @property
    def source(self) -> str:
        """The task's file, fenced, and the kernel to migrate if there is one."""
        text = fence(self.task.source, f"The reference (class {self.task.class_name})", "python")
        return text if self.original is None else f"{text}\n\n{_original(self.original)}"

    @property
    def words(self) -> str:
        """What to look for in skills and lessons."""
        return " ".join([*self.families, *self.facts["operators"], self.facts["dtype"], self.task.source[:2000]])

    @property
    def facts_text(self) -> str:
        """Shapes, work and roofline, in a few lines."""
        facts = self.facts
        work = Work.from_facts(facts)
        moved = work.read_bytes + work.written_bytes
        limit = roofline(work, self.target, threads=self.threads)
        lines = [
            f"- inputs: {facts['inputs']}" + (f" (and {facts['shapes'] - 1} more shapes)" if facts["shapes"] > 1 else ""),
            f"- outputs: {facts['outputs']}",
            f"- state_dict: {_state(facts['state'])}",
            f"- operators: {', '.join(facts['operators'])}; families: {', '.join(self.families)}",
            f"- moves at least {_bytes(moved)} ({_bytes(work.read_bytes)} in, {_bytes(work.written_bytes)} out); "
            + (f"products take {work.flops / 1e9:.3g} GFLOP; " if work.flops else _uncounted(facts["operators"], self.families))
            + f"the longest sum has {facts['longest_reduction']:,} terms",
            f"- roofline: {limit.seconds * 1e3:.3g} ms on {self.threads} threads, bounded by {limit.bound}"
            + ("" if work.flops else " as far as bytes tell: arithmetic and latency are not counted in it"),
        ]
        return "\n".join(lines)

    @property
    def hardware(self) -> str:
        """The hardware in a phrase."""
        return f"{self.target.title} ({self.target.kind})"

    @property
    def sheet(self) -> str:
        """The target's sheet as a list."""
        t = self.target
        peaks = ", ".join(f"{dtype} {value / 1e9:.0f} GFLOP/s" for dtype, value in t.peak_flops.items())
        caches = ", ".join(f"{level} {_bytes(size)}" for level, size in t.caches.items())
        lines = [
            f"- {t.title}: {t.cores} {'cores' if t.kind == 'cpu' else 'multiprocessors'}, {t.arch}; kernels get {self.threads} threads"
            if t.kind == "cpu"
            else f"- {t.title}: {t.cores} {'multiprocessors' if t.threaded else 'AI cores'}, {t.arch}",
            f"- memory bandwidth {t.bandwidth / 1e9:.0f} GB/s; peak {peaks} ({t.origin})",
        ]
        if caches:
            lines.append(f"- caches: {caches}")
        if t.shared_memory and t.threaded:
            lines.append(f"- shared memory {_bytes(t.shared_memory)} and {t.registers:,} registers a multiprocessor")
        if t.features:
            lines.append(f"- instructions: {', '.join(t.features)}")
        return "\n".join(lines)


def examine(server: ForkServer, task: Task) -> dict[str, Any]:
    """The task's own facts, from a referee of the judge. TaskError when the file is at fault."""
    worker = server.spawn(REFEREE, sandboxed=False, limits=Limits(memory=1 << 46, file_bytes=1 << 46))
    try:
        request = {"op": "open", **task.as_json()}
        reply, fds = worker.request(request, timeout=EXAMINE_SECONDS)
        close_all(fds)
    except ChannelError as error:
        raise TaskError(task.path, f"looking at the task did not finish: {worker.exit_reason(wait=0.5)}") from error
    finally:
        worker.stop()
    if reply.get("task_error"):
        raise JudgeError(str(reply["task_error"]))
    if not reply.get("ok"):
        raise JudgeError(f"{task.path}: the task could not be examined: {reply.get('error')}")
    return {name: reply["facts"][name] for name in KEPT}


def make_brief(
    task: Task,
    facts: dict[str, Any],
    target: Target,
    *,
    dsl: str,
    track: Track,
    threads: int,
    original: Source | None = None,
) -> Brief:
    """A brief from facts that were just found, or recalled."""
    return Brief(task, dsl, track, target, threads, facts, families(facts["operators"]), original)


def brief_of(bench: Workbench) -> Brief:
    """The task of a run as the roles see it; what was found out about it is found out once."""
    job = bench.job
    facts = bench.finding("facts", {}, lambda: examine(bench.judge.server, bench.task))
    target = Target.remembered(bench.finding("target", {"target": job.target}, lambda: asdict(bench.target())))
    threads = bench.finding("threads", {}, lambda: {"threads": bench.judge.threads})["threads"]
    brief = make_brief(bench.task, facts, target, dsl=job.dsl, track=job.track, threads=threads, original=job.source)
    if not job.timing or target.kind != "cpu":
        return brief  # what a CPU takes says nothing about a device
    timed = {"compile": job.compile_contender, "threads": threads}
    found = bench.finding(
        "eager", timed, lambda: eager.measured(bench.drafter, bench.task, threads=threads, compiled=job.compile_contender)
    )
    return replace(brief, pytorch=found)


def _original(original: Source) -> str:
    """The kernel to migrate, fenced, with what is asked for."""
    return (
        f"A kernel for this task exists in {original.kernel.dsl}, and is to be written anew in the language asked for. "
        "Keep its algorithm where that suits the new hardware; where it differs from the reference, the reference is right.\n\n"
        + fence(original.kernel.source, "The kernel to migrate", "python")
        + "\n\n"
        + fence(original.refusal, "Why it could not be migrated by rule")
    )


def _uncounted(operators: list[str], kinds: tuple[str, ...]) -> str:
    """Where no operation was counted: that there are none, or that nobody knows how many. A task of only pointwise work and sums of
    its inputs has no products; whatever else has no formula here, has an unknown number."""
    if set(kinds) <= {"pointwise", "reduction", "movement", "softmax", "norm"} and not any("fft" in name for name in operators):
        return "it has no products; "
    return "its operations are not counted (no formula is known for its operators); "


def _state(state: dict[str, list[int]]) -> str:
    if not state:
        return "empty"
    named = [f"{name} {shape}" for name, shape in list(state.items())[:40]]
    return ", ".join([*named, *([f"and {len(state) - 40} more"] if len(state) > 40 else [])])


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
