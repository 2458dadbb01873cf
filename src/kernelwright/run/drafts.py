"""The built-in Designer and Coder as a worker: a job in, drafts (sketch and kernel file) out, best guess first.

`Drafter` is the parent's side and imports no torch. `serve` is the worker's side: forked from the judge's server, it executes the
task file, captures the module, designs and lowers. A task that crashes or hangs costs only this worker.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kernelwright.compiler.language import InitialisedState
from kernelwright.core import errors
from kernelwright.core.job import JobSpec
from kernelwright.core.kernel import Kernel
from kernelwright.workers.channel import Channel, ChannelClosed, ChannelError
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.limits import GIB, Limits
from kernelwright.workers.worker import Worker

if TYPE_CHECKING:
    from kernelwright.compiler.designer import Design

DESIGN_SECONDS = 300.0
READY = "kernelwright.run.preload"


@dataclass(frozen=True)
class Draft:
    """One design and the kernel it was lowered to. `predicted_ms` is the cost model's guess."""

    sketch: str
    kernel: Kernel
    notes: tuple[str, ...] = ()
    predicted_ms: float | None = None

    def as_json(self) -> dict[str, Any]:
        """As it travels from the worker and is remembered."""
        return {**asdict(self), "kernel": self.kernel.source, "notes": list(self.notes)}

    @classmethod
    def from_json(cls, data: dict[str, Any], dsl: str) -> Draft:
        kernel = Kernel.from_source(data["kernel"], dsl=dsl)
        return cls(data["sketch"], kernel, tuple(data["notes"]), data.get("predicted_ms"))


class Drafter:
    """Asks a fresh worker for drafts of each task. Has a server process of its own, because a designer needs torch.export
    imported (seconds), which the judge's server must not have. Use as a context manager; it starts in the background. `confined`: task
    files are strangers', and run in the sandbox."""

    def __init__(self, *, confined: bool = False) -> None:
        self._server = ForkServer(preload=(READY,), confined=confined)
        self._starting = threading.Thread(target=self._start, daemon=True)

    def __enter__(self) -> Drafter:
        self._starting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._starting.join()
        self._server.close()

    def _start(self) -> None:
        # A server that cannot start is told by the first spawn, in the caller's thread.
        with contextlib.suppress(errors.KernelwrightError):
            self._server.start()

    def drafts(self, job: JobSpec, count: int | None = None, *, timeout: float = DESIGN_SECONDS) -> list[Draft]:
        """As many as are asked for, or as the effort allows. Raises what the worker met (TaskError, UnsupportedOperator, …) as the same
        error, in one sentence."""
        message = {"job": job.as_json(), "count": count or job.effort.drafts}
        try:
            reply = self.ask("run.drafts:serve", message, timeout=timeout)
        except ChannelError as error:
            place = job.task.path if job.task else job.name
            raise errors.KernelwrightError(f"{place}: designing a kernel did not finish: {error}") from error
        if not reply.get("ok"):
            raise DraftError(str(reply.get("error")), int(reply.get("exit_code", 2)))
        return [Draft.from_json(item, job.dsl) for item in reply["drafts"]]

    def open(self, entry: str) -> Worker:
        """A worker of one's own that runs `entry` ("room.module:function") until it is stopped."""
        return self._server.spawn(entry, sandboxed=False, limits=Limits(memory=64 * GIB))

    def ask(self, entry: str, message: dict[str, Any], *, timeout: float) -> dict[str, Any]:
        """One request to a fresh worker that runs `entry` ("agents.module:function"). A worker that ends without an answer is a
        ChannelClosed with the reason."""
        worker = self.open(entry)
        try:
            return worker.request(message, timeout=timeout)[0]
        except ChannelClosed as error:
            raise ChannelClosed(str(worker.exit_reason(wait=0.5))) from error
        finally:
            worker.stop()


class DraftError(errors.KernelwrightError):
    """An error that was met in the drafting worker, with its own sentence and exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def serve(channel: Channel) -> None:
    """The worker: answers one request."""
    message, _ = channel.receive(None)
    try:
        made = texts(JobSpec.from_json(message["job"]), message["count"])
        channel.send({"ok": True, "drafts": [draft.as_json() for draft in made]})
    except errors.KernelwrightError as error:
        # A sketch that the language cannot express is no fault of the task: there is no kernel, which is an answer.
        code = 1 if isinstance(error, errors.SketchError) else error.exit_code
        channel.send({"ok": False, "error": str(error), "exit_code": code})
    except Exception as error:
        channel.send({"ok": False, "error": describe_failure("the built-in designer", error), "exit_code": 1})


def describe_failure(who: str, error: Exception) -> str:
    """One sentence for a failure that nobody foresaw, with its place; the traceback goes to the worker's output."""
    import traceback

    traceback.print_exception(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    first = (str(error).strip().splitlines() or [""])[0][:300]
    return f"{who} failed: {type(error).__name__}: {first} ({where.filename.rpartition('/')[2]}:{where.lineno})"


def texts(job: JobSpec, count: int) -> list[Draft]:
    """The drafts, made in this process, which executes the task's file."""
    from kernelwright.compiler.designer import design_task
    from kernelwright.compiler.hardware import capabilities_of
    from kernelwright.compiler.language import language
    from kernelwright.core.task.load import load_task
    from kernelwright.sketch.print import to_source

    assert job.task is not None
    backend = language(job.dsl)
    machine = capabilities_of(backend, job.target)
    state = state_of(load_task(job.task))
    designs = _sound(design_task(job.task, capabilities=machine, track=job.track, effort=job.effort.name))[:count]
    return [
        Draft(
            to_source(design.sketch),
            Kernel.from_source(
                backend.lower(design.sketch, state=state, shapes=design.shapes, capabilities=machine), dsl=job.dsl
            ),
            tuple(design.notes),
            design.cost * 1e3,
        )
        for design in designs
    ]


def _sound(designs: list[Design]) -> list[Design]:
    """The designs without those that some size breaks; where that is all of them, the first one's fault is raised."""
    from kernelwright.sketch.check.rules import examine
    from kernelwright.sketch.parse import parse
    from kernelwright.sketch.print import to_source

    sound: list[Design] = []
    first: errors.SketchError | None = None
    for design in designs:
        if any(size.dynamic for size in design.sketch.sizes):
            found = examine(parse(to_source(design.sketch)))
            if found.settled is not None and found.settled.refuted:
                first = first or next(fault for fault in found.faults if "; it does at " in fault.reason)
                continue
        sound.append(design)
    if first is not None and not sound:
        raise first
    return sound


def state_of(loaded: Any) -> InitialisedState:
    """The reference's state_dict in outline, so that a kernel file can take its values under the same names, and how its constructor
    draws them, so that the same seed gives the same values."""
    from kernelwright.core.task.initialisation import initialisation_of

    model = loaded.construct(0)
    parameters = dict(model.named_parameters())
    entries = [
        (name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), name not in parameters)
        for name, tensor in model.state_dict().items()
    ]
    drawn = initialisation_of(loaded) if entries else None
    return InitialisedState(entries, drawn.statements, drawn.values) if drawn is not None else InitialisedState(entries)
