"""Workers are forked from one server, end when told, when they must, and when their parent is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelwright.core.errors import JudgeError
from kernelwright.judge.servers import CANDIDATE, judge_server
from kernelwright.workers import bundle, processes
from kernelwright.workers.channel import ChannelClosed, ChannelTimeout
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.limits import MIB, Limits
from kernelwright.workers.worker import Exit, Forged, Worker


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with judge_server(threads=1) as made:
        yield made


def load(worker: Worker, source: str, timeout: float = 60) -> dict[str, object]:
    packed = bundle.pack([[], {}])
    try:
        message = {"op": "load", "source": source, "class": "ModelNew", "init": packed.header, "seed": 0, "threads": 1}
        return worker.request(message, [packed.fd], timeout=timeout)[0]
    finally:
        packed.close()


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_until_gone(pids: list[int], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os; os._exit(7)", Exit("code", 7)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Exit("signal", 9)),
        ("import os; os.abort()", Exit("signal", 6)),
        ("import ctypes; ctypes.string_at(0)", Exit("signal", 11)),
    ],
)
def test_the_way_a_worker_ended_is_known(server: ForkServer, source: str, expected: Exit) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True)
    with pytest.raises(ChannelClosed):
        load(worker, source)
    assert worker.exit_reason() == expected
    worker.stop()
    worker.stop()


def test_stopping_ends_the_whole_family_also_those_who_hide(server: ForkServer) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True)
    source = """
import os, time, signal
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        if os.fork() == 0:
            while True: time.sleep(1)
        while True: time.sleep(1)
"""
    load(worker, source)
    deadline = time.monotonic() + 20
    while len(processes.descendants(worker.pid)) < 7 and time.monotonic() < deadline:
        time.sleep(0.02)
    pids = [worker.pid, *processes.descendants(worker.pid)]
    assert len(pids) == 8
    worker.stop()
    assert wait_until_gone(pids)


def test_a_fork_bomb_is_bounded(server: ForkServer) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True, limits=Limits(processes=40))
    source = "import os, time\nfor _ in range(500):\n    if os.fork() == 0:\n        time.sleep(60)\n"
    reply = load(worker, source)
    assert reply["type"] == "BlockingIOError"
    pids = processes.descendants(worker.pid)
    assert len(pids) <= 41
    worker.stop()
    assert wait_until_gone(pids)


def test_memory_spread_over_processes_is_bounded_too(server: ForkServer) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True, limits=Limits(memory=600 * MIB))
    source = "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n"
    source += "        held = bytearray(os.urandom(1) * (300 << 20))\n        time.sleep(60)\ntime.sleep(60)"
    with pytest.raises(ChannelClosed):
        load(worker, source)
    assert worker.exit_reason().kind == "memory"
    worker.stop()


def test_endless_output_keeps_only_its_tail(server: ForkServer) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True)
    reply = load(worker, "for _ in range(200):\n    print('x' * 100_000)\nprint('the end', flush=True)\n")
    assert reply["ok"] is False
    assert "the end" in worker.printed()
    assert len(worker.printed()) < 10_000
    worker.stop()


def test_an_endless_loop_is_a_timeout_and_can_be_stopped(server: ForkServer) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True)
    with pytest.raises(ChannelTimeout):
        load(worker, "while True: pass", timeout=0.3)
    worker.stop()
    assert wait_until_gone([worker.pid])


def test_a_message_that_answers_nothing_is_forged(server: ForkServer) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True)
    source = """
import socket, struct, json
line = socket.socket(fileno=3)
payload = json.dumps({"ok": True, "state": []}).encode()
line.setblocking(True)
line.sendall(struct.pack("<4sI", b"KWCH", len(payload)) + payload)
"""
    with pytest.raises(Forged):
        load(worker, source)
    worker.stop()


def test_a_paused_family_uses_no_time(server: ForkServer) -> None:
    worker = server.spawn(CANDIDATE, sandboxed=True)
    load(worker, "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()")
    before = worker.cpu_seconds()
    deadline = time.monotonic() + 20
    while worker.cpu_seconds() == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert worker.cpu_seconds() > before
    worker.pause()
    time.sleep(0.05)
    frozen = worker.cpu_seconds()
    time.sleep(0.1)
    assert worker.cpu_seconds() == frozen
    worker.resume()
    assert worker.request({"op": "forget"}, timeout=20)[0]["ok"]
    worker.stop()


def test_workers_can_be_spawned_from_several_threads(server: ForkServer) -> None:
    def one(_: int) -> bool:
        worker = server.spawn(CANDIDATE, sandboxed=True)
        try:
            return bool(worker.request({"op": "forget"}, timeout=30)[0]["ok"])
        finally:
            worker.stop()

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(one, range(6)))


def test_an_unknown_entry_is_an_error_and_the_template_lives_on(server: ForkServer) -> None:
    with pytest.raises(JudgeError):
        server.spawn("no_such_module:serve", sandboxed=False)
    server.spawn(CANDIDATE, sandboxed=True).stop()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_process_survives_its_parent(how: signal.Signals) -> None:
    code = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background starts with Ctrl-C ignored
from kernelwright.workers import processes as family
from kernelwright.judge.servers import CANDIDATE, judge_server
with judge_server(1) as server:
    workers = [server.spawn(CANDIDATE, sandboxed=True), server.spawn(CANDIDATE, sandboxed=False)]
    pids = [server._process.pid] + [w.pid for w in workers] + [p for w in workers for p in family.descendants(w.pid)]
    print(*pids, flush=True)
    time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 5
    assert all(alive(pid) for pid in pids)
    os.kill(parent.pid, how)
    parent.wait(20)
    assert wait_until_gone(pids)
