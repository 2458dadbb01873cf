"""Kernels on a device. None is attached here, so torch's module for the CPU stands for it: placing, cold calls, both clocks,
baselines and the
lock run as they do there; only events and the second-level cache are a stand-in of this file."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelwright.compiler.language import language
from kernelwright.judge import Judge, device, offdevice
from kernelwright.judge.offdevice import Setting
from kernelwright.judge.timing import device_stopwatch
from kernelwright.judge.timing.device_stopwatch import DeviceStopwatch, agreed
from kernelwright.target import Target, attached
from kernelwright.workers import fork_server, sandbox

GALLERY = Path(__file__).parents[1] / "gallery"
GPU = Target.load("t4")


class AtTheDevice(Judge):
    """A judge on a machine whose GPU is torch's CPU."""

    def _setting(self, dsl: str, target: str) -> Setting | None:
        return Setting(dsl, "device", "", (GPU,), "cpu")


@pytest.fixture(scope="module")
def judge() -> Any:
    with AtTheDevice(threads=1) as made:
        yield made


def test_a_kernel_is_judged_and_timed_on_the_device(judge: Judge) -> None:
    task, kernel = GALLERY / "tasks/relu.py", GALLERY / "honest/relu_cpp.py"
    verdict = judge.verify(task, kernel, compile_contender=False, budget_s=0.5)
    assert verdict.status == "correct", verdict.reason
    assert verdict.execution == "device"
    assert verdict.target == "t4"
    assert verdict.timing is not None
    assert verdict.timing.cache == "cold"


def test_a_wrong_kernel_is_wrong_there_too(judge: Judge) -> None:
    task, kernel = GALLERY / "tasks/relu_uniform.py", GALLERY / "cheats/05_identity_relu.py"
    assert judge.verify(task, kernel, compile_contender=False).status == "wrong_values"


class Events:
    """What torch's module of a device offers, with events that run at a tenth of the wall clock, as they would for a side stream."""

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            self.at = 0.0

        def record(self) -> None:
            self.at = time.perf_counter()

        def elapsed_time(self, other: Any) -> float:
            return (other.at - self.at) * 1e3 / 10

    def __init__(self) -> None:
        self.drained = 0

    def synchronize(self) -> None:
        self.drained += 1


def test_the_larger_of_both_clocks_counts_for_every_call() -> None:
    def slow(inputs: list[Any]) -> Any:
        time.sleep(0.003)
        return inputs[0] + 1

    watch = DeviceStopwatch(slow, "cpu")
    watch._module, watch._events = Events(), True
    watch._sets = [[torch.ones(4)] for _ in range(3)]
    total, first = watch.go()
    assert total >= 3 * 0.0025 * 1e9
    assert first < total
    assert watch._module.drained >= 6


def test_what_a_call_of_nothing_costs_is_not_the_kernels() -> None:
    assert agreed(wall=30_000, by_events=12_000, overhead=15_000) == 15_000, "a side stream shows on the wall clock"
    assert agreed(wall=30_000, by_events=29_000, overhead=15_000) == 29_000
    assert agreed(wall=10, by_events=0, overhead=15_000) == 1


def test_one_verdict_at_a_time_has_the_device() -> None:
    code = (
        "import sys, time; from kernelwright.judge.device import held; from kernelwright.target import Target\n"
        "started = time.monotonic()\n"
        "with held(Target.load('t4')): print(time.monotonic() - started)"
    )
    with device.held(GPU):
        other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(3)
    assert other.communicate(timeout=60)[0]


def tool(folder: Path, name: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / name).write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_gpu_that_torch_can_reach_is_where_its_languages_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "nvidia-smi", "NVIDIA A100-SXM4-80GB, 8.0, 81920, 1410, 1593", monkeypatch)
    monkeypatch.setattr(device.importlib.metadata, "version", lambda name: "2.13.0")
    found = offdevice.setting("triton")
    assert found is not None
    assert (found.execution, found.device, found.targets[0].name) == ("device", "cuda", "a100")
    assert offdevice.timed("triton")
    elsewhere = offdevice.setting("triton", "h100")
    assert elsewhere is not None
    assert not elsewhere.device, "a kernel for another GPU is interpreted and compiled"
    without = offdevice.setting("triton", "cpu")
    assert without is not None
    assert not without.device
    monkeypatch.setattr(device.importlib.metadata, "version", lambda name: "2.13.0+cpu")
    assert not offdevice.timed("triton"), "this torch has no CUDA"


def test_the_devices_state_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "nvidia-smi", "1410 MHz, 1593 MHz, 71.02 W, 35", monkeypatch)
    assert device.condition(GPU) == "1410 MHz, 1593 MHz, 71.02 W, 35"
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert device.condition(GPU) == ""


def test_an_amd_gpu_describes_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = """
*******
Agent 1
*******
  Name:                    AMD EPYC 9454
  Device Type:             CPU
*******
Agent 2
*******
  Name:                    gfx942
  Marketing Name:          AMD Instinct MI300X
  Device Type:             GPU
  Max Clock Freq. (MHz):   2100
  Compute Unit:            304
"""
    tool(tmp_path, "rocminfo", agents, monkeypatch)
    found = attached.attached()
    assert found is not None
    assert (found.kind, found.name, found.title) == ("rocm", "mi300x", "AMD Instinct MI300X")
    other = attached.described_by_rocm(agents.replace("gfx942", "gfx1201").replace("304", "64"))
    assert other is not None
    assert (other.arch, other.cores, other.origin) == ("gfx1201", 64, "estimated")


def test_an_npu_is_reached_through_torch_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = Target.load("ascend910b")
    assert device.torch_device(npu) == "", "torch_npu is not installed here"
    monkeypatch.setattr(device.importlib.metadata, "version", lambda name: {"torch": "2.7.1+cpu", "torch_npu": "2.7.1"}[name])
    assert device.torch_device(npu) == "npu", "torch's build for the CPU is the one that torch_npu extends"


def test_torch_npu_is_loaded_where_torch_has_not_done_so(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(device_stopwatch.importlib, "import_module", loaded.append)
    monkeypatch.setattr(device_stopwatch.torch, "get_device_module", lambda name: f"torch.{name}")
    assert device_stopwatch.device_module("npu") == "torch.npu"
    assert device_stopwatch.device_module("cuda") == "torch.cuda"
    assert loaded == ["torch_npu"]


def test_triton_launches_only_on_what_its_package_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert language("triton").devices == ("cuda", "rocm")  # type: ignore[attr-defined]
    monkeypatch.setattr("kernelwright.compiler.backends.triton.version", lambda name: "3.2.0")
    assert language("triton").devices == ("ascend",)  # type: ignore[attr-defined]


def test_where_cann_is_reaches_a_sandboxed_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_OPP_PATH", "/opt/cann/opp")
    assert sandbox.environment("/home/kernel")["ASCEND_OPP_PATH"] == "/opt/cann/opp"
    assert fork_server.ForkServer()._environment()["ASCEND_OPP_PATH"] == "/opt/cann/opp"
