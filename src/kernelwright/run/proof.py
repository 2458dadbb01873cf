"""Is a sketch right? A sketch's text and a task in, a `Proof` out; nothing is built, and the task file runs in a worker.

1. parse and check: faults with their lines (no torch, in the parent: a sketch is parsed, never executed);
2. run in the interpreter beside the reference, on the task's own inputs, every shape, watched element by element;
3. lowered by rule where the language's rules can.

`prove` is the parent's side and shares the Drafter's server; `serve` is the worker. `recount` asks a right sketch what went into one
element of an output: what the Coder of a wrong kernel should find on the way there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from kernelwright.core import errors
from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.run.drafts import Drafter, describe_failure, state_of
from kernelwright.workers.channel import Channel, ChannelClosed, ChannelTimeout

if TYPE_CHECKING:
    from kernelwright.target import Capabilities

RUN_SECONDS = 120.0
"""A sketch of small tiles over a large tensor takes minutes in the interpreter; after this the judge has to tell."""
FAULTS_TOLD = 8

Outcome = Literal["malformed", "misdesigned", "right", "unproved"]


@dataclass(frozen=True)
class Proof:
    """What is known of a sketch. `faults` are sentences with line numbers; `kernel` is the rules' lowering, or "" with the reason
    in `lowering`. `unproved` means that it checks, but the interpreter could not finish."""

    outcome: Outcome
    faults: tuple[str, ...] = ()
    kernel: str = ""
    lowering: str = ""
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Proof:
        return cls(**{**data, "faults": tuple(data["faults"])})


def check_text(source: str, *, track: str = "pure") -> tuple[str, ...]:
    """The faults of a sketch's text, each with its line and what stands there; empty when it checks."""
    from kernelwright.sketch.check.rules import check
    from kernelwright.sketch.parse import parse

    try:
        sketch = parse(source)
        found = check(sketch)
    except errors.SketchError as error:
        found = [error]
    except (RecursionError, OverflowError, MemoryError, ValueError) as error:
        return (f"the sketch cannot be read: {type(error).__name__}: {error}"[:300],)
    else:
        if track == "pure" and any(type(step).__name__ == "LibraryCall" for step in sketch.steps):
            return ("library(…) is for track hybrid; on track pure every operation must be written in the sketch",)
    lines = source.splitlines()
    told = []
    for fault in found[:FAULTS_TOLD]:
        where = f"line {fault.line}: " if fault.line else ""
        hint = f" ({fault.hint})" if fault.hint else ""
        quoted = f"\n    {lines[fault.line - 1].strip()}" if 0 < fault.line <= len(lines) else ""
        told.append(f"{where}{fault.reason}{hint}{quoted}")
    if len(found) > FAULTS_TOLD:
        told.append(f"and {len(found) - FAULTS_TOLD} more faults")
    return tuple(told)


def prove(drafter: Drafter, job: JobSpec, source: str, *, timeout: float = RUN_SECONDS) -> Proof:
    """All three steps. A worker that dies or hangs on the sketch is a fact about the sketch, never an error of ours."""
    started = time.monotonic()
    faults = check_text(source, track=job.track)
    if faults:
        return Proof("malformed", faults, seconds=round(time.monotonic() - started, 3))
    request = {"job": job.as_json(), "sketch": source, "seconds": timeout}
    try:
        reply = drafter.ask("run.proof:serve", request, timeout=timeout + 60.0)
    except ChannelTimeout:
        reply = {"outcome": "unproved", "faults": [], "kernel": "", "lowering": "the interpreter did not finish in time"}
    except ChannelClosed as error:
        reply = {
            "outcome": "misdesigned",
            "faults": [f"running the sketch ended its process: {error}"],
            "kernel": "",
            "lowering": "",
        }
    return Proof.from_json({**reply, "seconds": round(time.monotonic() - started, 3)})


def recount(drafter: Drafter, task: Task, source: str, output: str, place: Sequence[int], timeout: float = RUN_SECONDS) -> str:
    """The sketch's intermediate values on the task's own inputs at one element of an output (`output`, `output[1]` …); "" where the
    interpreter cannot tell in time."""
    request = {
        "sketch": source,
        "task": task.as_json(),
        "output": output,
        "place": list(place),
        "seconds": timeout,
    }
    try:
        return str(drafter.ask("run.proof:serve_witness", request, timeout=timeout + 60.0)["seen"])
    except (ChannelTimeout, ChannelClosed):
        return ""


def serve_witness(channel: Channel) -> None:
    """The worker of `recount`; a sketch that cannot be run has nothing to tell."""
    message, _ = channel.receive(None)
    try:
        with _alarm(float(message["seconds"])):
            seen = _witnessed(message)
    except (Exception, _TooSlow):
        seen = ""
    channel.send({"seen": seen})


def _witnessed(message: dict[str, Any]) -> str:
    from kernelwright.core.task import tree
    from kernelwright.core.task.load import load_task
    from kernelwright.sketch.interpret import interpreter
    from kernelwright.sketch.interpret.witness import Witness
    from kernelwright.sketch.parse import parse

    sketch = parse(message["sketch"])
    tensor = dict(tree.leaves(interpreter.returned(sketch.returns, str), "output"))[message["output"]]
    loaded = load_task(Task.from_source(**message["task"]))
    model, inputs = loaded.construct(0), loaded.draw(0)[0]
    witness = Witness(sketch, tensor, message["place"])
    interpreter.call(sketch, [leaf for _, leaf in tree.leaves(inputs, "")], model.state_dict(), witness=witness)
    return "\n".join(witness.lines)


def serve(channel: Channel) -> None:
    """The worker: one sketch beside its reference."""
    message, _ = channel.receive(None)
    try:
        reply = _examined(message)
    except errors.KernelwrightError as error:
        reply = {"outcome": "misdesigned", "faults": [str(error)], "kernel": "", "lowering": ""}
    except MemoryError:
        reply = {
            "outcome": "misdesigned",
            "faults": ["the sketch needs more memory than there is"],
            "kernel": "",
            "lowering": "",
        }
    except Exception as error:
        reply = {"outcome": "unproved", "faults": [], "kernel": "", "lowering": describe_failure("running the sketch", error)}
    channel.send(reply)


def _examined(message: dict[str, Any]) -> dict[str, Any]:
    from kernelwright.core.task.load import load_task
    from kernelwright.sketch.interpret.compare import compare
    from kernelwright.sketch.parse import parse

    sketch = parse(message["sketch"])
    job = JobSpec.from_json(message["job"])
    assert job.task is not None
    loaded = load_task(job.task)
    model = loaded.construct(0)
    workloads = loaded.draw(0)
    deadline = time.monotonic() + float(message["seconds"])
    outcome, covered = "right", True
    with _alarm(float(message["seconds"])):
        try:
            for number, inputs in enumerate(workloads):
                found = compare(sketch, model, inputs)
                if not found.agrees and number == 0:
                    faults = [found.reason, *_where(sketch, model, inputs)]
                    return {"outcome": "misdesigned", "faults": faults, "kernel": "", "lowering": ""}
                covered = covered and found.agrees
                if time.monotonic() > deadline:
                    break
        except _TooSlow:
            outcome = "unproved"
    kernel, lowering = _lowered(job, sketch, state_of(loaded), covered)
    return {"outcome": outcome, "faults": [], "kernel": kernel, "lowering": lowering}


def _where(sketch: Any, model: Any, inputs: list[Any]) -> list[str]:
    """Where the values differ and what they are, for the Designer; nothing where there are no values to compare."""
    import torch

    from kernelwright.core.task import tree
    from kernelwright.judge.reference import regions
    from kernelwright.sketch.interpret import interpreter

    try:
        made = tree.tensors(interpreter.call(sketch, [leaf for _, leaf in tree.leaves(inputs, "")], model.state_dict()))
    except errors.SketchError:
        return []
    with torch.no_grad():
        wanted = tree.tensors(model(*inputs))
    told = []
    for number, (want, got) in enumerate(zip(wanted, made, strict=False)):
        if want.shape != got.shape or want.dtype != got.dtype or not want.numel():
            continue
        wrong = ~torch.isclose(got, want, rtol=1e-3, atol=1e-5, equal_nan=True)
        if bool(wrong.any()):
            told.append(f"output {number}: {regions.describe(wrong)} is wrong ({int(wrong.sum())} of {wrong.numel()} elements)")
            told += regions.samples(got, want, wrong)
    return told


def _lowered(job: JobSpec, sketch: Any, state: Any, covered: bool) -> tuple[str, str]:
    """The rules' kernel; shapes that the sketch does not cover are the built-in designer's."""
    from kernelwright.compiler.hardware import capabilities_of
    from kernelwright.compiler.language import language

    try:
        backend = language(job.dsl)
        machine = capabilities_of(backend, job.target)
        shapes = () if covered else _other_shapes(job, machine)
        return backend.lower(sketch, state=state, shapes=shapes, capabilities=machine), ""
    except errors.KernelwrightError as error:
        return "", str(error)
    except Exception as error:
        return "", describe_failure("lowering", error)


def _other_shapes(job: JobSpec, machine: Capabilities) -> tuple[Any, ...]:
    from kernelwright.compiler.designer import design_task

    return design_task(job.task, capabilities=machine, track=job.track)[0].shapes


class _TooSlow(BaseException):
    """Not an Exception: nothing on the way may take it for a fault of the sketch."""


class _alarm:
    """Interrupts the interpreter after so many seconds; the worker's main thread is ours."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        import signal

        def ring(*_: object) -> None:
            raise _TooSlow

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        import signal

        signal.setitimer(signal.ITIMER_REAL, 0)
