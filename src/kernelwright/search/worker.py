"""The worker of a search: holds the designs of one task, and writes a kernel for any point of their spaces.

In: `open` {job, sketches, own, options} → {designs: [Axes]}: the sketches given (of a kernel that is to be tuned, with
the coder's options that it was written with; of models) and, where they are asked for, the designer's `own` designs; `write`
{design, values} → {kernel, sketch, code}, or {} where the checker objects. Axes are those of the sketch (space.py) and the coder's
options that make a difference (ways.py). Forked from the drafting server, since the task file has to run for its shapes. `SearchWorker`
is the parent's side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kernelwright.compiler.language import HasCodegenOptions
from kernelwright.core.errors import KernelwrightError, SketchError
from kernelwright.core.job import JobSpec
from kernelwright.core.kernel import Kernel
from kernelwright.search.codegen_options import CODER, code_of, split, ways
from kernelwright.search.features import Axes, family_of, roles_of, traits_of
from kernelwright.search.point import Point

if TYPE_CHECKING:
    from kernelwright.run.drafts import Drafter
    from kernelwright.sketch.nodes import Sketch
    from kernelwright.workers.channel import Channel

SECONDS = 300.0
EFFORT = "standard"
"""The designs that a search begins with, whatever the job's own effort: more of them than its drafts were."""


@dataclass(frozen=True)
class Written:
    """A kernel for a point, the sketch it was lowered from, and the hash of its code (ways.py): equal code runs equally fast."""

    kernel: Kernel
    sketch: str
    code: str


class SearchWorker:
    """The parent's side; use as a context manager."""

    def __init__(
        self,
        drafter: Drafter,
        job: JobSpec,
        *,
        sketches: tuple[str, ...] = (),
        own: bool = True,
        options: dict[str, int] | None = None,
    ) -> None:
        self._worker = drafter.open("search.worker:serve")
        self._dsl = job.dsl
        message = {"op": "open", "job": job.as_json(), "sketches": list(sketches), "own": own, "options": options or {}}
        try:
            reply = self._ask(message)
        except BaseException:
            self._worker.stop()
            raise
        self.designs = [
            Axes(**{**item, "axes": {name: tuple(values) for name, values in item["axes"].items()}})
            for item in reply["designs"]
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._worker.stop()

    def write(self, point: Point) -> Written | None:
        """The kernel for a point, or None where it breaks a rule of the sketch."""
        reply = self._ask({"op": "write", "design": point.design, "values": dict(point.values)})
        if "kernel" not in reply:
            return None
        return Written(Kernel.from_source(reply["kernel"], dsl=self._dsl), reply["sketch"], reply["code"])

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.workers.channel import ChannelError

        try:
            reply, _ = self._worker.request(message, timeout=SECONDS)
        except ChannelError as error:
            raise KernelwrightError(f"the search's designer was lost: {error}") from error
        if not reply.get("ok"):
            raise KernelwrightError(str(reply.get("error")))
        return reply


def serve(channel: Channel) -> None:
    """The worker: answers until the parent is done."""
    from kernelwright.run.drafts import describe_failure
    from kernelwright.workers.channel import ChannelClosed

    session = _Session()
    while True:
        try:
            message, _ = channel.receive(None)
        except ChannelClosed:
            return
        try:
            reply = session.open(message) if message["op"] == "open" else session.write(message)
            channel.send({"ok": True, **reply})
        except KernelwrightError as error:
            channel.send({"ok": False, "error": str(error)})
        except Exception as error:
            channel.send({"ok": False, "error": describe_failure("the built-in designer", error)})


class _Session:
    def open(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.compiler.designer import Design, design_task
        from kernelwright.compiler.hardware import capabilities_of
        from kernelwright.compiler.language import language
        from kernelwright.core.task.load import load_task
        from kernelwright.run.drafts import state_of
        from kernelwright.search.space import Space
        from kernelwright.sketch.parse import parse

        job = JobSpec.from_json(message["job"])
        assert job.task is not None
        self._coder = language(job.dsl)
        self._machine = capabilities_of(self._coder, job.target)
        self._state = state_of(load_task(job.task))
        self._designs = [Design(parse(text)) for text in message["sketches"]]
        self._given = len(self._designs)
        if message["own"]:
            try:
                self._designs += design_task(job.task, capabilities=self._machine, track=job.track, effort=EFFORT)
            except KernelwrightError:
                if not self._designs:  # else what a model proposed can still be varied
                    raise
        self._spaces = [Space.of(design.sketch) for design in self._designs]
        self._options: dict[str, int] = dict(message["options"]) if isinstance(self._coder, HasCodegenOptions) else {}
        return {"designs": [self._axes(number) for number in range(len(self._designs))]}

    def _axes(self, number: int) -> dict[str, Any]:
        """One design as a search sees it."""
        design, space = self._designs[number], self._spaces[number]
        axes, defaults = dict(space.axes), dict(space.defaults)
        if isinstance(self._coder, HasCodegenOptions):

            def write(options: Mapping[str, int]) -> str:
                return self._lowered(number, design.sketch, options)

            try:
                known = self._coder.options(write({}))
                found = ways(known, self._options, write)
            except SketchError:
                known, found = {}, {}  # the design as it is cannot be written: its points are invalid, each by itself
            axes |= found
            defaults |= {
                name: self._options.get(name.removeprefix(CODER), known[name.removeprefix(CODER)][0]) for name in found
            }
        traits = traits_of(design.sketch)
        roles, family = roles_of(space.sketch, axes), family_of(design.sketch, traits)
        return asdict(Axes(axes, defaults, design.cost, roles, traits, family, self._note(number)))

    def _note(self, number: int) -> str:
        """What the designer says of a design that it does not say of its first."""
        if number <= self._given:
            return ""
        first = self._designs[self._given].notes
        own = [note for note in self._designs[number].notes if note not in first]
        return "; ".join(dict.fromkeys((own[0], own[-1]))) if own else ""

    def _lowered(self, number: int, sketch: Sketch, options: Mapping[str, int]) -> str:
        shapes = self._designs[number].shapes
        if isinstance(self._coder, HasCodegenOptions):
            return self._coder.lower(sketch, state=self._state, shapes=shapes, capabilities=self._machine, options=options)
        return self._coder.lower(sketch, state=self._state, shapes=shapes, capabilities=self._machine)

    def write(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.sketch.print import to_source

        number = int(message["design"])
        values, options = split(message["values"])
        sketch = self._spaces[number].variant(values)
        if sketch is None:
            return {}
        try:
            kernel = self._lowered(number, sketch, {**self._options, **options})
        except SketchError:
            return {}  # a point that this language cannot express is no point of its space
        return {"kernel": kernel, "sketch": to_source(sketch), "code": code_of(kernel)}
