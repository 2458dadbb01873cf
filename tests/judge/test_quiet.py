"""Noise together, measurements alone."""

from __future__ import annotations

import threading

from kernelwright.judge.quiet import Quiet

LONG = 60.0


def test_many_share_and_a_measurement_waits_for_them() -> None:
    quiet = Quiet()
    inside, leave, measured = threading.Barrier(3), threading.Event(), threading.Event()

    def share() -> None:
        with quiet.sharing():
            inside.wait(LONG)
            leave.wait(LONG)

    def measure() -> None:
        with quiet.alone():
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
    quiet = Quiet()
    shared = threading.Event()

    def share() -> None:
        with quiet.sharing():
            shared.set()

    with quiet.alone():
        with quiet.sharing():
            pass
        thread = threading.Thread(target=share)
        thread.start()
        assert not shared.wait(0.1), "noise began beside a measurement"
    assert shared.wait(LONG)
    thread.join(LONG)


def test_a_waiting_measurement_is_let_in_before_new_noise() -> None:
    quiet = Quiet()
    order: list[str] = []
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with quiet.sharing():
            entered.set()
            leave.wait(LONG)

    def measure() -> None:
        with quiet.alone():
            order.append("measurement")

    def later() -> None:
        with quiet.sharing():
            order.append("noise")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    entered.wait(LONG)
    threads.append(threading.Thread(target=measure))
    threads[1].start()
    while not quiet._waiting:
        pass
    threads.append(threading.Thread(target=later))
    threads[2].start()
    leave.set()
    for thread in threads:
        thread.join(LONG)
    assert order == ["measurement", "noise"]
