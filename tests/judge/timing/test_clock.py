"""The clock against real processes: honest contenders get a timing, each way of fooling it gets a finding."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from racers import ForkedWorker, racer, referee, running

from kernelwright.judge.timing import stopwatch
from kernelwright.judge.timing.clock import FEWEST_ROUNDS, MAX_CALLS, PROCESSES, Measurement, measure, plan_blocks
from kernelwright.target import Target

SHEET = Target(
    name="test",
    kind="cpu",
    title="a generous machine",
    cores=1,
    bandwidth=1e12,
    level_bandwidth={"L1d": 1e13},
    last_level_cache=32 << 20,
    peak_flops={"float32": 1e15},
)
INPUTS = [torch.rand(256, 300) + 0.1]
FACTS = {"eager_seconds": 4e-4, "input_bytes": INPUTS[0].nbytes, "output_bytes": INPUTS[0].nbytes, "dtype": "float32"}


def reference(inputs: list[Any]) -> Any:
    return torch.cumsum(torch.softmax(torch.cumsum(torch.softmax(inputs[0], -1), -1), -1), -1)


def judge(call: Callable[[list[Any]], Any], *, sheet: Target = SHEET, compiled: ForkedWorker | None = None) -> Measurement:
    workers = [racer(call), racer(reference), referee(reference, INPUTS)]
    with running(*workers, *([compiled] if compiled else [])):
        return measure(workers[0], workers[1], compiled, workers[2], facts=FACTS, target=sheet, threads=1, budget_s=0.5)


def test_an_honest_kernel_gets_a_timing_with_its_interval() -> None:
    result = judge(reference, compiled=racer(reference))
    assert result.finding is None
    timing = result.timing
    assert timing is not None
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert timing.rounds >= 7
    assert timing.compile_ms is not None
    assert timing.speedup_vs_compile is not None
    assert timing.noise >= 0
    assert timing.roofline_fraction is not None


def test_memory_of_a_call_counts_temporaries_and_what_is_kept() -> None:
    kept: list[Any] = []

    def wasteful(inputs: list[Any]) -> Any:
        torch.ones(64 << 18)  # 64 MiB, freed at once
        if not kept:
            kept.append(torch.ones(32 << 18))
        return reference(inputs)

    frugal, greedy = judge(reference).timing, judge(wasteful).timing
    assert frugal is not None
    assert greedy is not None
    assert frugal.kernel_mb is not None
    assert frugal.eager_mb is not None
    assert greedy.kernel_mb is not None
    least = 2 * INPUTS[0].nbytes / 1e6
    assert least < frugal.kernel_mb < least + 20
    assert least < frugal.eager_mb < least + 20
    assert 95 < greedy.kernel_mb - frugal.kernel_mb < 130


def test_further_contenders_run_in_the_same_race_and_may_fall_out() -> None:
    def broken(inputs: list[Any]) -> Any:
        raise RuntimeError("not today")

    workers = [racer(reference), racer(reference), referee(reference, INPUTS), racer(reference), racer(broken)]
    with running(*workers):
        others = {"twin": workers[3], "broken": workers[4]}
        result = measure(
            workers[0], workers[1], None, workers[2], others=others, facts=FACTS, target=SHEET, threads=1, budget_s=0.5
        )
    assert result.finding is None
    assert result.timing is not None
    assert [rival.name for rival in result.timing.rivals] == ["twin"]
    assert result.timing.rivals[0].speedup > 0
    assert result.timing.compile_ms is None
    assert any("broken was not timed" in warning for warning in result.warnings)


def test_the_rounds_are_shared_by_fresh_processes() -> None:
    first = [racer(reference), racer(reference), referee(reference, INPUTS)]
    later: list[Any] = []

    def again() -> Any:
        later.extend([racer(reference), racer(reference)])
        return later[-2:]

    try:
        with running(*first):
            result = measure(
                first[0],
                first[1],
                None,
                first[2],
                facts=FACTS,
                target=SHEET,
                threads=1,
                budget_s=0.6,
                again=again,
                reload_seconds=0.01,
            )
    finally:
        for worker in later:
            worker.stop()
    assert result.timing is not None
    assert len(later) == 2 * (PROCESSES - 1)
    assert result.timing.rounds >= FEWEST_ROUNDS * PROCESSES


def test_a_kernel_that_answers_from_memory_is_wrong_on_fresh_data() -> None:
    memory: dict[Any, Any] = {}

    def replay(inputs: list[Any]) -> Any:
        return memory.setdefault(tuple(inputs[0].shape), reference(inputs) if not memory else None)

    assert_cheating(judge(replay), "timed calls are wrong")


def test_an_output_that_is_finished_after_the_clock_stopped() -> None:
    def deferred(inputs: list[Any]) -> Any:
        out = torch.zeros_like(inputs[0])

        def work() -> None:
            time.sleep(0.002)
            out.copy_(reference(inputs))

        threading.Thread(target=work).start()
        return out

    assert_cheating(judge(deferred), "still changing|timed calls are wrong")


def test_a_thread_that_computes_between_calls() -> None:
    started: list[threading.Thread] = []

    def with_background_work(inputs: list[Any]) -> Any:
        if not started:
            started.append(threading.Thread(target=_spin, daemon=True))
            started[0].start()
        return reference(inputs)

    assert_cheating(judge(with_background_work), "background work")


def _spin() -> None:
    data = torch.rand(200, 200)
    while True:
        data = torch.tanh(data)


def test_a_stopwatch_that_was_tampered_with_disagrees_with_the_wall() -> None:
    real = stopwatch._now
    base = real()

    def slow(inputs: list[Any]) -> Any:
        stopwatch._now = lambda: base + 10**12 + (real() - base) // 50
        time.sleep(0.002)
        return reference(inputs)

    assert_cheating(judge(slow), "wall clock")


def test_work_done_while_inputs_are_received() -> None:
    real = stopwatch._copy

    def patched(inputs: list[Any]) -> Any:
        def copy(to: Any, source: Any) -> Any:
            reference(inputs)
            return real(to, source)

        stopwatch._copy = copy
        return reference(inputs)

    assert_cheating(judge(patched), "outside the timed calls")


def test_one_call_that_does_the_work_of_the_others() -> None:
    answers: dict[int, Any] = {}
    watch: list[Any] = []

    def batched(inputs: list[Any]) -> Any:
        if not watch:  # once: a walk over all objects in every block would make it a slow kernel with blocks of one call
            watch.extend(thing for thing in gc.get_objects() if type(thing) is stopwatch.Stopwatch)
        if inputs[0].data_ptr() not in answers:
            answers.clear()
            for (tensor,) in (sets for owner in watch for sets in owner._sets):
                answers[tensor.data_ptr()] = reference([tensor])
        return answers.pop(inputs[0].data_ptr())

    assert_cheating(judge(batched), "moved between timed calls")


def test_outputs_computed_when_they_are_asked_for() -> None:
    honest_outputs = stopwatch.Stopwatch.outputs

    def wait(self: Any) -> tuple[int, int]:
        start = time.perf_counter_ns()
        while time.perf_counter_ns() - start < 100_000 * len(self._sets):
            pass
        self._outputs = [torch.zeros(1)] * len(self._sets)
        return time.perf_counter_ns() - start, 100_000

    def compute(self: Any, index: int, *, whole: bool = False) -> Any:
        self._outputs = [reference(inputs) for inputs in self._sets]
        self._read_out(self._outputs[-1])
        return honest_outputs(self, index, whole=whole)

    def lazy(inputs: list[Any]) -> Any:  # the class is patched in the forked racer, not here
        stopwatch.Stopwatch.go, stopwatch.Stopwatch.outputs = wait, compute  # type: ignore[method-assign]
        return reference(inputs)

    assert_cheating(judge(lazy), "computed after the timed calls")


def test_faster_than_the_hardware_allows() -> None:
    crawling = Target(**{**SHEET.__dict__, "bandwidth": 1e6, "level_bandwidth": {"L1d": 1e6}})
    assert_cheating(judge(reference, sheet=crawling), "hardware allows")


def test_a_failing_call_is_a_crash_and_not_an_error_of_the_judge() -> None:
    def fails(inputs: list[Any]) -> Any:
        raise ValueError("no")

    finding = judge(fails).finding
    assert finding is not None
    assert finding["status"] == "crashed"
    assert "ValueError: no" in finding["reason"]


def test_torch_compile_failing_costs_only_its_own_figures() -> None:
    def fails(inputs: list[Any]) -> Any:
        raise RuntimeError("no compiler")

    result = judge(reference, compiled=racer(fails))
    assert result.timing is not None
    assert result.timing.compile_ms is None
    assert "torch.compile was not timed" in result.warnings[0]


def assert_cheating(result: Measurement, words: str) -> None:
    assert result.timing is None
    assert result.finding is not None
    assert result.finding["status"] == "cheating"
    assert any(word in result.finding["reason"] for word in words.split("|")), result.finding


@pytest.mark.parametrize(
    ("eager", "size", "calls"),
    [(10.0, 1 << 20, 1), (1e-9, 1 << 10, MAX_CALLS), (1e-4, 8 << 20, 2), (1e-4, 1 << 30, 1), (1e-3, 0, 6)],
)
def test_a_block_is_sized_by_eager_and_by_the_cache(eager: float, size: int, calls: int) -> None:
    assert plan_blocks(eager, size, 32 << 20).calls == calls


def test_a_kernel_far_slower_than_eager_is_timed_in_short_blocks() -> None:
    def slow(inputs: list[Any]) -> Any:
        time.sleep(0.3)
        return reference(inputs)

    timing = judge(slow).timing
    assert timing is not None
    assert timing.speedup_high < 1
    assert timing.rounds >= 7


def test_slow_tasks_get_fewer_rounds_and_no_second_eager() -> None:
    assert plan_blocks(5.0, 1, 1).rounds < plan_blocks(0.1, 1, 1).rounds
    assert not plan_blocks(5.0, 1, 1).pair_eager
