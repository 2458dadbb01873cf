"""The worker behind probe.py: executes a task file, scales it if asked, counts its memory, runs its reference once and times it.

In: `look` {path, source, class_name, scale}, then `time` {most}. Out: {source, changes} and {seconds}, or {error, too_large}.
"""

from __future__ import annotations

import time
from typing import Any

from kernelwright.core.errors import TaskError
from kernelwright.core.task import Task, footprint, load, scale
from kernelwright.workers.channel import Channel, ChannelClosed


class Look:
    """One task under the glass."""

    def __init__(self) -> None:
        self.loaded: Any = None

    def look(self, message: dict[str, Any]) -> dict[str, Any]:
        """Load it, at the wanted scale, and make sure that it fits."""
        factor = float(message.pop("scale"))
        scaled = scale.fit(Task.from_source(**message), factor)
        self.loaded = load.load_task(scaled.task)
        self.loaded.require_memory(footprint.available_bytes())
        return {"ok": True, "source": scaled.task.source, "changes": list(scaled.changes)}

    def time(self, most: float) -> dict[str, Any]:
        """Construct, draw, run; a first run that is slow is enough, a fast one is a warm-up."""
        model = self.loaded.construct(0)
        inputs = self.loaded.draw(0)[0]
        seconds = self._run(model, inputs)
        if seconds < most:
            seconds = min(seconds, self._run(model, inputs))
        return {"ok": True, "seconds": seconds}

    def _run(self, model: Any, inputs: list[Any]) -> float:
        started = time.perf_counter()
        load.require_outputs(self.loaded.task, self.loaded.forward(model, inputs))
        return time.perf_counter() - started


def serve(channel: Channel) -> None:
    """Answer until the parent is gone."""
    look = Look()
    while True:
        try:
            message, _ = channel.receive(None)
        except ChannelClosed:
            return
        number = message.pop("id", None)
        operation = message.pop("op")
        try:
            reply = look.look(message) if operation == "look" else look.time(float(message["most"]))
        except TaskError as error:
            reply = {"ok": False, "error": str(error), "too_large": "too large for memory" in error.reason}
        channel.send({**reply, "id": number} if number else reply)
