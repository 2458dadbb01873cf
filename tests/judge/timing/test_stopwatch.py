"""The stopwatch and fresh data, in one process: what a block does, and what every timed call gets to see."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

from kernelwright.judge.timing.stopwatch import Stopwatch, still_working
from kernelwright.workers import bundle
from kernelwright.workers.channel import ChannelGarbage, close_all


def prepared(call: Any, sets: list[Any], align: int = 7) -> Stopwatch:
    stopwatch = Stopwatch(call)
    packed = bundle.pack(sets)
    reply, _ = stopwatch.handle({"op": "time_prepare", "header": packed.header, "align": align}, [packed.fd])
    assert reply == {"ok": True, "calls": len(sets)}
    os.close(packed.fd)
    return stopwatch


def test_a_block_calls_once_for_each_set_and_keeps_every_output() -> None:
    sets = [[torch.full((3, 4), float(i)), i] for i in range(5)]
    stopwatch = prepared(lambda inputs: inputs[0] + inputs[1], sets)
    reply, _ = stopwatch.handle({"op": "time_go"}, [])
    assert reply["calls"] == 5
    assert reply["ns"] > 0
    for call in range(5):
        reply, fds = stopwatch.handle({"op": "time_outputs", "call": call}, [])
        assert torch.equal(bundle.unpack(reply["header"], fds[0]), torch.full((3, 4), 2.0 * call))
        assert reply["plain"]
        assert not still_working(bundle.unpack(reply["probe_header"], fds[1]))
        close_all(fds)


def test_pointers_are_aligned_fresh_and_vary_within_the_page() -> None:
    seen: list[int] = []
    for align in range(20):
        stopwatch = prepared(lambda inputs: seen.append(inputs[0].data_ptr()) or inputs[0], [[torch.rand(100)]], align)
        stopwatch.go()
    assert all(pointer % 64 == 0 for pointer in seen)
    assert len({pointer % 4096 for pointer in seen}) > 5


@pytest.mark.parametrize(
    "tensor",
    [torch.rand(4, 5).t(), torch.rand(6).expand(3, 6), torch.rand(8, 8)[::2, 1::3], torch.zeros(0, 3), torch.tensor(2.5)],
    ids=["transposed", "expanded", "sliced", "empty", "scalar"],
)
def test_values_and_strides_survive_the_way_into_a_block(tensor: torch.Tensor) -> None:
    stopwatch = prepared(lambda inputs: inputs[0], [[tensor, {"k": (tensor, None)}]])
    inputs = stopwatch._sets[0]
    for got in (inputs[0], inputs[1]["k"][0]):
        assert torch.equal(got, tensor)
        assert got.stride() == tensor.stride()


def test_an_output_that_changes_after_the_call_is_seen() -> None:
    out = torch.zeros(1000)
    stopwatch = prepared(lambda inputs: out, [[torch.rand(1)]])
    stopwatch.go()
    out += 1
    reply, fds = stopwatch.outputs(0)
    assert still_working(bundle.unpack(reply["probe_header"], fds[1]))
    close_all(fds)


def test_nan_that_stays_nan_is_no_change() -> None:
    stopwatch = prepared(lambda inputs: torch.full((10,), float("nan")), [[torch.rand(1)]])
    stopwatch.go()
    reply, fds = stopwatch.outputs(0)
    assert not still_working(bundle.unpack(reply["probe_header"], fds[1]))
    close_all(fds)


def test_a_subclass_is_not_a_plain_tensor() -> None:
    class Lazy(torch.Tensor):
        pass

    stopwatch = prepared(lambda inputs: inputs[0].as_subclass(Lazy), [[torch.rand(3)]])
    stopwatch.go()
    reply, fds = stopwatch.outputs(0)
    assert reply["plain"] is False
    close_all(fds)


def test_an_unknown_request_is_refused() -> None:
    with pytest.raises(ChannelGarbage):
        Stopwatch(lambda inputs: None).handle({"op": "time_travel"}, [])


def test_gradients_are_off_in_a_block_by_a_switch_that_no_kernel_can_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ran between the judge's message and the clock would be free: `torch.no_grad` is a class that anybody can patch."""
    entered: list[str] = []
    monkeypatch.setattr(torch.no_grad, "__enter__", lambda self: entered.append("no_grad"))
    seen: list[bool] = []

    def call(inputs: list[Any]) -> Any:
        seen.append(torch.is_grad_enabled())
        return inputs[0]

    prepared(call, [[torch.ones(3)], [torch.ones(3)]]).go()
    assert seen == [False, False]
    assert torch.is_grad_enabled()
    assert entered == []
