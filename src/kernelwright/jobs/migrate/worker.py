"""The worker of a migration: re-schedules and lowers, because a task's file has to run for its parameters.

In: {task, dsl, target, sketches, state, redesign}. Out: {candidates: [{kind, kernel, sketch, changes, kept, open}], refusals}: first the
sketch as the target wants it, then as it was where that differs; with `redesign`, the built-in designer's own design for the task
where the new language cannot express the old one. `plan` is the parent's side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelwright.core.errors import KernelwrightError, SketchError
from kernelwright.core.kernel import Kernel

if TYPE_CHECKING:
    from kernelwright.core.task import Task
    from kernelwright.jobs.migrate.source import Entry
    from kernelwright.run.drafts import Drafter
    from kernelwright.workers.channel import Channel

SECONDS = 300.0


@dataclass(frozen=True)
class Candidate:
    """One way to write the kernel in the new language. `kind`: rescheduled, kept, redesigned; designer or coder where models wrote it."""

    kind: str
    kernel: Kernel
    sketch: str
    changes: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


@dataclass(frozen=True)
class Offer:
    """All candidates, best guess first, and why there are not more."""

    candidates: tuple[Candidate, ...]
    refusals: tuple[str, ...] = ()


def plan(
    drafter: Drafter, task: Task | None, *, dsl: str, target: str, texts: Sequence[str], state: Sequence[Entry], track: str
) -> dict[str, Any]:
    """The worker's offer as plain data (it goes into the run's memory). Without a task of the user's, `state` is what the source
    declares, and nothing can be designed anew."""
    from kernelwright.workers.channel import ChannelError

    message = {
        "task": task.as_json() if task is not None else None,
        "dsl": dsl,
        "target": target,
        "sketches": list(texts),
        "state": [[name, list(shape), dtype, buffer] for name, shape, dtype, buffer in state],
        "track": track,
    }
    try:
        reply = drafter.ask("jobs.migrate.worker:serve", message, timeout=SECONDS)
    except ChannelError as error:
        raise KernelwrightError(f"re-scheduling did not finish: {error}") from error
    if not reply.get("ok"):
        raise KernelwrightError(str(reply.get("error")))
    return {"candidates": reply["candidates"], "refusals": reply["refusals"]}


def offer(found: dict[str, Any], dsl: str) -> Offer:
    """An offer from plain data."""
    made = []
    for item in found["candidates"]:
        kernel = Kernel.from_source(item["kernel"], dsl=dsl)
        told = (tuple(item[name]) for name in ("changes", "kept", "open"))
        made.append(Candidate(item["kind"], kernel, item["sketch"], *told))
    return Offer(tuple(made), tuple(found["refusals"]))


def serve(channel: Channel) -> None:
    """The worker: answers one request."""
    from kernelwright.run.drafts import describe_failure

    message, _ = channel.receive(None)
    try:
        channel.send({"ok": True, **_make(message)})
    except KernelwrightError as error:
        channel.send({"ok": False, "error": str(error)})
    except Exception as error:
        channel.send({"ok": False, "error": describe_failure("re-scheduling", error)})


def _make(message: dict[str, Any]) -> dict[str, Any]:
    from kernelwright.compiler.hardware import capabilities_of
    from kernelwright.compiler.language import language
    from kernelwright.core.task import Task
    from kernelwright.core.task.load import load_task
    from kernelwright.jobs.migrate.reschedule import Plan, reschedule
    from kernelwright.run.drafts import state_of
    from kernelwright.search.space import bound
    from kernelwright.sketch.parse import parse
    from kernelwright.sketch.print import to_source

    task = Task.from_source(**message["task"]) if message["task"] else None
    state = state_of(load_task(task)) if task else [(n, tuple(s), d, b) for n, s, d, b in message["state"]]
    coder = language(message["dsl"])
    machine = capabilities_of(coder, message["target"])
    sketches = [parse(text) for text in message["sketches"]]
    main, *others = [reschedule(sketch, machine) for sketch in sketches]
    candidates: list[dict[str, Any]] = []
    refusals: list[str] = []

    def add(kind: str, plan: Plan, shapes: Sequence[Any]) -> None:
        try:
            kernel = coder.lower(plan.sketch, state=state, shapes=list(shapes), capabilities=machine)
        except SketchError as error:
            refusals.append(f"{kind}: {message['dsl']} cannot express the sketch: {error}")
            return
        if not any(item["kernel"] == kernel for item in candidates):
            told = {"changes": [str(c) for c in plan.changes], "kept": list(plan.kept), "open": list(plan.open)}
            candidates.append({"kind": kind, "kernel": kernel, "sketch": to_source(plan.sketch), **told})

    changed = main.changes or any(other.changes for other in others)
    if changed:
        add("rescheduled", main, [other.sketch for other in others])
    as_it_was = Plan(bound(sketches[0], {}), (), () if changed else main.kept, main.open if not changed else ())
    add("kept", as_it_was, [bound(sketch, {}) for sketch in sketches[1:]])
    if task is not None and not candidates:
        from kernelwright.compiler.designer import design_task

        for design in design_task(task, capabilities=machine, track=message["track"])[:2]:
            add("redesigned", Plan(design.sketch), design.shapes)
    return {"candidates": candidates, "refusals": refusals}
