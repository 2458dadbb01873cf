"""Memory beside the race: figures of now, and no verdict is lost without them."""

from __future__ import annotations

import os
import signal

import pytest

from kernelwright.core.errors import ToolMissing
from kernelwright.judge.timing import bandwidth
from kernelwright.judge.timing.bandwidth import Rates, Streams
from kernelwright.target import Target

SHEET = Target(
    name="cpu", kind="cpu", title="a processor", cores=1, bandwidth=1.0, last_level_cache=1 << 20, peak_flops={"float32": 1.0}
)  # fmt: skip


@pytest.fixture
def memory() -> Streams:
    return Streams(SHEET, threads=1)


def test_every_pass_counts_and_the_sheet_has_their_medians(memory: Streams) -> None:
    rates = Rates()
    for _ in range(3):
        memory.flow(rates)
    memory.close()
    assert len(rates.read) == len(rates.write) == len(rates.copy) == 3
    now = rates.sheet(SHEET)
    assert now.read_bandwidth == sorted(rates.read)[1]
    assert 1e8 < now.write_bandwidth <= now.bandwidth < 1e13
    assert now.peak_flops == SHEET.peak_flops


def test_the_process_ends_with_its_judge(memory: Streams) -> None:
    memory.flow(Rates())
    assert memory._process is not None
    pid = memory._process.pid
    memory.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_lost_process_costs_the_figures_only(memory: Streams) -> None:
    rates = Rates()
    memory.flow(rates)
    assert memory._process is not None
    os.kill(memory._process.pid, signal.SIGKILL)
    memory._process.wait()
    memory.flow(rates)
    memory.flow(rates)
    assert len(rates.copy) == 1


def test_a_process_that_stands_still_is_not_waited_for(memory: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = Rates()
    memory.flow(rates)
    assert memory._process is not None
    os.kill(memory._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(bandwidth, "PATIENCE", 0.1)
    memory.flow(rates)
    assert len(rates.copy) == 1
    assert memory._process is None


def test_without_a_compiler_the_sheet_stays(memory: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> object:
        raise ToolMissing("g++", "measuring the CPU", "apt-get install g++")

    monkeypatch.setattr(bandwidth, "program", none)
    rates = Rates()
    memory.flow(rates)
    assert rates.sheet(SHEET) == SHEET
