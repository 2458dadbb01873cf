"""The channel carries whole messages and descriptors, and refuses what is malformed, late or too large."""

from __future__ import annotations

import json
import os
import socket
import threading

import pytest

from kernelwright.workers.channel import (
    HEADER,
    MAGIC,
    MAX_FDS,
    MAX_MESSAGE,
    Channel,
    ChannelClosed,
    ChannelGarbage,
    ChannelTimeout,
    pair,
)


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_messages_and_descriptors_arrive_whole_and_in_order() -> None:
    mine, other = pair()
    theirs = Channel(other)
    reader, writer = os.pipe()
    mine.send({"op": "first"}, [writer])
    mine.send({"op": "second", "text": "x" * 100_000})
    message, fds = theirs.receive(5)
    assert message == {"op": "first"}
    os.write(fds[0], b"through")
    assert os.read(reader, 100) == b"through"
    assert not os.get_inheritable(fds[0])
    assert theirs.receive(5) == ({"op": "second", "text": "x" * 100_000}, [])
    for fd in (reader, writer, *fds):
        os.close(fd)


def test_a_message_larger_than_the_socket_buffer_needs_a_reader_but_no_help() -> None:
    mine, other = pair()
    big = {"text": "y" * 3_000_000}
    sender = threading.Thread(target=mine.send, args=(big,))
    sender.start()
    assert Channel(other).receive(10)[0] == big
    sender.join()


def test_silence_is_a_timeout_and_so_is_a_reader_who_never_reads() -> None:
    mine, other = pair()
    with pytest.raises(ChannelTimeout):
        mine.receive(0.02)
    other.send(HEADER.pack(MAGIC, 10) + b"half")
    with pytest.raises(ChannelTimeout):
        mine.receive(0.02)
    with pytest.raises(ChannelTimeout):
        mine.send({"text": "z" * 4_000_000}, timeout=0.05)


def test_a_closed_end_is_told_apart() -> None:
    mine, other = pair()
    other.close()
    with pytest.raises(ChannelClosed):
        mine.receive(1)
    with pytest.raises(ChannelClosed):
        mine.send({"op": "x"})


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE!" * 4,
        HEADER.pack(MAGIC, MAX_MESSAGE + 1),
        HEADER.pack(MAGIC, 4) + b"\xff\xfe\x00{",
        HEADER.pack(MAGIC, 4) + b"1234",
        HEADER.pack(MAGIC, 100_000) + b"[" * 100_000,
        HEADER.pack(MAGIC, 100_000) + b'{"a":' + b"9" * 99_995,
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    mine, other = pair()
    other.sendall(data)
    with pytest.raises(ChannelGarbage):
        mine.receive(1)


def test_a_flood_of_descriptors_is_refused_and_leaks_none() -> None:
    mine, other = pair()
    payload = json.dumps({"op": "x"}).encode()
    before = open_fds()
    socket.send_fds(other, [HEADER.pack(MAGIC, len(payload)) + payload], [0] * (MAX_FDS + 20))
    with pytest.raises(ChannelGarbage):
        mine.receive(1)
    assert open_fds() == before


def test_our_own_side_refuses_to_send_too_much() -> None:
    mine, _ = pair()
    with pytest.raises(ChannelGarbage):
        mine.send({"text": "x" * (MAX_MESSAGE + 1)})
    with pytest.raises(ChannelGarbage):
        mine.send({}, [0] * (MAX_FDS + 1))
