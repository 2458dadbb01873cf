"""Who is used when the machine is busy: nobody whose races disagree; and what was found then is found out again later."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from kernelwright.api import machine_load as load
from kernelwright.api import race, trial
from kernelwright.api.race import Outcome
from kernelwright.api.trial import Trial


def outcome(gain: float, quiet: bool, noise: float = 0.0) -> Outcome:
    return Outcome(1e-3, 1e-3 / gain, gain, gain - 0.02, gain + 0.02, noise, quiet)


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def will_be(*outcomes: Outcome) -> None:
        ahead = iter(outcomes)
        monkeypatch.setattr(race, "_race", lambda *_: next(ahead))

    return will_be


def test_a_quiet_race_decides_and_noise_counts(results: Callable[..., None]) -> None:
    results(outcome(1.2, True))
    assert race.race(int, int).won
    results(outcome(1.2, True, noise=0.3))
    assert not race.race(int, int).won


def test_busy_races_must_agree(results: Callable[..., None]) -> None:
    results(outcome(1.5, False), outcome(1.3, False), outcome(1.4, False))
    found = race.race(int, int)
    assert (found.won, found.quiet, found.gain) == (True, False, 1.4)
    results(outcome(1.5, False), outcome(0.9, False))
    assert not race.race(int, int).won
    results(outcome(1.5, False), outcome(0.9, True))
    found = race.race(int, int)
    assert found.quiet
    assert not found.won


@pytest.fixture
def busy() -> Iterator[None]:
    """More work than cores, and no more on this core than us."""
    code = "while True: pass"
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    yield
    for other in others:
        other.kill()
        other.wait()


def test_work_of_others_is_seen(busy: None) -> None:
    watch = load.Watch()
    x = torch.randn(256, 256)
    for _ in range(200):
        x = torch.tanh(x @ x)
    assert not watch.quiet


def test_what_was_found_on_a_busy_machine_is_raced_again(monkeypatch: pytest.MonkeyPatch, results: Callable[..., None]) -> None:
    graph = torch.fx.symbolic_trace(lambda x: torch.ops.aten.relu.default(x) + 1.25)
    x = torch.randn(7, 5)
    found: list[bool] = []
    with ThreadPoolExecutor(1) as pool:
        for calm, races in ((False, [outcome(0.8, False)] * 3), (False, []), (True, [outcome(1.7, True)]), (True, [])):
            monkeypatch.setattr(trial, "quiet_now", lambda calm=calm: calm)
            results(*races)
            one = Trial.of(graph, [x], [None])
            if one.finding is None:
                one.begin([x], pool)
                one.judge([x])
            assert one.finding is not None
            found.append(one.finding.used)
    assert found == [False, False, True, True]
