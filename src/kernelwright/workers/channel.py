"""The channel between the parent and a worker: framed JSON with limits, and file descriptors beside it.

In: one end of an AF_UNIX stream socket that the parent made. Out: dictionaries, and descriptors whose owner becomes the caller.
The other end may be a hostile candidate: everything is bounded, a read has a deadline, and whatever is malformed raises
`ChannelGarbage` with all received descriptors closed. Imports no torch, so that the parent stays small.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]

MAGIC = b"KWCH"
HEADER = struct.Struct("<4sI")
MAX_MESSAGE = 8 << 20
MAX_FDS = 16
SEND_SECONDS = 30.0


class ChannelError(Exception):
    """Base of what can go wrong on a channel; the judge turns it into a verdict, so it never reaches a user."""


class ChannelClosed(ChannelError):
    """The other side is gone (it exited, was killed, or closed its end)."""


class ChannelTimeout(ChannelError):
    """No complete message arrived (or could be sent) before the deadline."""


class ChannelGarbage(ChannelError):
    """The other side sent something that is not a message: malformed, too large, too many descriptors, impossible tensors."""


class Channel:
    """One end of the conversation. Not thread-safe: one owner at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.setblocking(False)

    def fileno(self) -> int:
        """The descriptor, so that a channel can be polled with others."""
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def send(self, message: Message, fds: Sequence[int] = (), *, timeout: float = SEND_SECONDS) -> None:
        """Send one message. The descriptors are duplicated by the kernel; the caller still owns (and closes) its own."""
        payload = json.dumps(message, separators=(",", ":")).encode()
        if len(payload) > MAX_MESSAGE:
            raise ChannelGarbage(f"a message of {len(payload)} bytes is over the limit of {MAX_MESSAGE}")
        if len(fds) > MAX_FDS:
            raise ChannelGarbage(f"{len(fds)} descriptors are over the limit of {MAX_FDS}")
        data = memoryview(HEADER.pack(MAGIC, len(payload)) + payload)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        deadline = time.monotonic() + timeout
        while data:
            try:
                sent = self._sock.sendmsg([data], ancillary, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            ancillary = []
            data = data[sent:]

    def receive(self, timeout: float | None) -> tuple[Message, list[int]]:
        """Wait for one whole message. The returned descriptors belong to the caller."""
        deadline = None if timeout is None else time.monotonic() + timeout
        fds: list[int] = []
        try:
            magic, length = HEADER.unpack(self._read(HEADER.size, deadline, fds))
            if magic != MAGIC or length > MAX_MESSAGE:
                raise ChannelGarbage("a malformed message header arrived")
            payload = self._read(length, deadline, fds)
            try:
                message = json.loads(payload)
            except (ValueError, RecursionError) as error:
                raise ChannelGarbage("a message is not JSON") from error
            if not isinstance(message, dict):
                raise ChannelGarbage("a message is not an object")
        except BaseException:
            close_all(fds)
            raise
        return message, fds

    def request(self, message: Message, fds: Sequence[int] = (), *, timeout: float | None) -> tuple[Message, list[int]]:
        """Send, then wait for the one reply that belongs to it."""
        self.send(message, fds)
        return self.receive(timeout)

    def _read(self, count: int, deadline: float | None, fds: list[int]) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            try:
                data, ancillary, flags, _ = self._sock.recvmsg(
                    min(count - len(parts), 1 << 20), socket.CMSG_SPACE(4 * MAX_FDS), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            for level, kind, blob in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    received = array.array("i")
                    received.frombytes(blob[: len(blob) - len(blob) % received.itemsize])
                    fds.extend(received)
            if flags & socket.MSG_CTRUNC or len(fds) > MAX_FDS:
                raise ChannelGarbage("too many descriptors in one message")
            if not data:
                raise ChannelClosed("the other side closed the channel")
            parts += data
        return bytes(parts)

    def _wait(self, event: int, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(self._sock, event)
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise ChannelTimeout("no message arrived in time")
        poll.poll(None if left is None else left * 1000 + 1)


def pair() -> tuple[Channel, socket.socket]:
    """A fresh channel and the raw socket of its other end, to be handed to a worker."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(mine), theirs


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors, whatever state they are in."""
    for fd in fds:
        try:
            os.close(fd)
        except OSError:
            continue
