"""A referee in a sandbox, for task files that a model wrote: the judge's referee behind the numbered requests of sandboxed workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.judge.reference import service
from kernelwright.workers.channel import Channel, Message


class _Numbered:
    """A channel whose replies carry the number of their request, as those of every sandboxed worker must."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._number: Any = None

    def receive(self, timeout: float | None) -> tuple[Message, list[int]]:
        message, fds = self._channel.receive(timeout)
        self._number = message.get("id")
        return message, fds

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        self._channel.send({**message, "id": self._number}, fds)


def serve(channel: Channel) -> None:
    """Entry of the worker."""
    service.serve(_Numbered(channel))  # type: ignore[arg-type]
