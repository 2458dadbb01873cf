"""The worker of a search: holds the designs of one task, and writes a kernel for any point of their spaces.

In: `open` {task, dsl, track, effort, sketches} → {spaces: [{axes, defaults, cost, sketch}]}: the designer's own designs, then the sketches
given (of a kernel that is to be tuned); `write` {design, values} → {kernel, sketch}, or {} where the checker objects. Forked from the
drafting template, since the task file has to run for its shapes. `Station` is the parent's side.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kernelwright.errors import KernelwrightError

if TYPE_CHECKING:
    from kernelwright.agents.drafts import Drafter
    from kernelwright.judge.channel import Channel
    from kernelwright.task import Task

SECONDS = 300.0


@dataclass(frozen=True)
class Axes:
    """One design as a proposer sees it."""

    axes: dict[str, tuple[int, ...]]
    defaults: dict[str, int]
    cost: float


class Station:
    """The parent's side; use as a context manager."""

    def __init__(
        self, drafter: Drafter, task: Task, *, dsl: str, track: str, effort: str, sketches: tuple[str, ...] = ()
    ) -> None:
        self._worker = drafter.open("search.station:serve")
        message = {"op": "open", "task": drafter.task_message(task), "dsl": dsl, "track": track, "effort": effort}
        try:
            reply = self._ask({**message, "sketches": list(sketches)})
        except BaseException:
            self._worker.stop()
            raise
        self.designs = [
            Axes({name: tuple(values) for name, values in item["axes"].items()}, dict(item["defaults"]), float(item["cost"]))
            for item in reply["spaces"]
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._worker.stop()

    def write(self, design: int, values: dict[str, int]) -> tuple[str, str] | None:
        """(kernel, sketch) for a point, or None where it breaks a rule of the sketch."""
        reply = self._ask({"op": "write", "design": design, "values": values})
        return (reply["kernel"], reply["sketch"]) if "kernel" in reply else None

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.judge.channel import ChannelError

        try:
            reply, _ = self._worker.request(message, timeout=SECONDS)
        except ChannelError as error:
            raise KernelwrightError(f"the search's designer was lost: {error}") from error
        if not reply.get("ok"):
            raise KernelwrightError(str(reply.get("error")))
        return reply


def serve(channel: Channel) -> None:
    """The worker: answers until the parent is done."""
    from kernelwright.agents.drafts import describe_failure
    from kernelwright.judge.channel import ChannelClosed

    desk = _Desk()
    while True:
        try:
            message, _ = channel.receive(None)
        except ChannelClosed:
            return
        try:
            reply = desk.open(message) if message["op"] == "open" else desk.write(message)
            channel.send({"ok": True, **reply})
        except KernelwrightError as error:
            channel.send({"ok": False, "error": str(error)})
        except Exception as error:
            channel.send({"ok": False, "error": describe_failure("the built-in designer", error)})


class _Desk:
    def open(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.agents.drafts import state_of
        from kernelwright.design import Design, design_task
        from kernelwright.dsl import language
        from kernelwright.search.space import Space
        from kernelwright.sketch.parse import parse
        from kernelwright.task import Task
        from kernelwright.task.load import load_task

        task = Task.from_source(**message["task"])
        self._coder = language(message["dsl"])
        self._state = state_of(load_task(task).construct(0))
        given = [Design(parse(text)) for text in message["sketches"]]
        self._designs = given or design_task(task, track=message["track"], effort=message["effort"], dsl=message["dsl"])
        self._spaces = [Space.of(design.sketch) for design in self._designs]
        return {
            "spaces": [
                {"axes": space.axes, "defaults": space.defaults, "cost": design.cost}
                for space, design in zip(self._spaces, self._designs, strict=True)
            ]
        }

    def write(self, message: dict[str, Any]) -> dict[str, Any]:
        from kernelwright.errors import SketchError
        from kernelwright.sketch.print import to_source

        number = int(message["design"])
        sketch = self._spaces[number].variant(message["values"])
        if sketch is None:
            return {}
        try:
            kernel = self._coder.lower(sketch, state=self._state, shapes=self._designs[number].shapes)
        except SketchError:
            return {}  # a point that this language cannot express is no point of its space
        return {"kernel": kernel, "sketch": to_source(sketch)}
