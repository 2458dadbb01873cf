"""Noise together, measurements alone."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernelwright.workers import exclusive as quietness
from kernelwright.workers.exclusive import Exclusive, turn

LONG = 60.0


def test_many_share_and_a_measurement_waits_for_them() -> None:
    exclusive = Exclusive()
    inside, leave, measured = threading.Barrier(3), threading.Event(), threading.Event()

    def share() -> None:
        with exclusive.sharing():
            inside.wait(LONG)
            leave.wait(LONG)

    def measure() -> None:
        with exclusive.alone():
            measured.set()

    threads = [threading.Thread(target=share) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(LONG)  # both are in at once
    threads.append(threading.Thread(target=measure))
    threads[-1].start()
    assert not measured.wait(0.1), "a measurement began beside noise"
    leave.set()
    assert measured.wait(LONG)
    for thread in threads:
        thread.join(LONG)


def test_who_is_alone_may_share_and_others_wait() -> None:
    exclusive = Exclusive()
    shared = threading.Event()

    def share() -> None:
        with exclusive.sharing():
            shared.set()

    with exclusive.alone():
        with exclusive.sharing():
            pass
        thread = threading.Thread(target=share)
        thread.start()
        assert not shared.wait(0.1), "noise began beside a measurement"
    assert shared.wait(LONG)
    thread.join(LONG)


def test_a_waiting_measurement_is_let_in_before_new_noise() -> None:
    exclusive = Exclusive()
    order: list[str] = []
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with exclusive.sharing():
            entered.set()
            leave.wait(LONG)

    def measure() -> None:
        with exclusive.alone():
            order.append("measurement")

    def later() -> None:
        with exclusive.sharing():
            order.append("noise")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    entered.wait(LONG)
    threads.append(threading.Thread(target=measure))
    threads[1].start()
    while not exclusive._waiting:
        pass
    threads.append(threading.Thread(target=later))
    threads[2].start()
    leave.set()
    for thread in threads:
        thread.join(LONG)
    assert order == ["measurement", "noise"]


HOLDER = """
import sys
from kernelwright.workers import exclusive
exclusive.LOCK = sys.argv[1]
with exclusive.turn():
    print("mine", flush=True)
    sys.stdin.readline()
"""


def test_judges_of_two_processes_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quietness, "LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(quietness, "PATIENCE_SECONDS", LONG)
    had = threading.Event()

    def measure() -> None:
        with turn():
            had.set()

    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        thread = threading.Thread(target=measure)
        thread.start()
        assert not had.wait(0.2)
        other.stdin.write("\n")
        other.stdin.flush()
        assert had.wait(LONG)
        thread.join(LONG)


def test_nobody_waits_for_ever_and_no_lock_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quietness, "LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(quietness, "PATIENCE_SECONDS", 0.05)
    with turn(), turn():
        pass
    monkeypatch.setattr(quietness, "LOCK", str(tmp_path / "nowhere" / "lock"))
    with turn():
        pass
