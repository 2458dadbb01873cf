"""The candidate's side in this process: what is plain, how failures are told apart, that one path calls the kernel."""

from __future__ import annotations

import collections
import subprocess
from typing import Any

import pytest
import torch

from kernelwright.judge import candidate
from kernelwright.workers import bundle


class Sub(torch.Tensor):
    pass


class LazyList(list):  # type: ignore[type-arg]
    pass


Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    "tree",
    [
        torch.ones(2),
        (torch.ones(2), [torch.ones(1), None]),
        {"a": torch.ones(1), "b": 3},
        torch.ones(3).max(0),
        Pair(torch.ones(1), torch.ones(1)),
        collections.OrderedDict(a=torch.ones(1)),
    ],
)
def test_plain_outputs_are_plain(tree: Any) -> None:
    assert candidate.oddity(tree) == ""


@pytest.mark.parametrize(
    "tree",
    [
        torch.ones(2).as_subclass(Sub),
        torch.nn.Parameter(torch.ones(2)),
        [torch.ones(2).as_subclass(Sub)],
        LazyList([torch.ones(1)]),
        torch.ones(2, device="meta"),
        torch.ones(3).to_sparse(),
        object(),
        lambda: torch.ones(1),
    ],
)
def test_what_may_compute_later_is_odd(tree: Any) -> None:
    assert candidate.oddity(tree)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SyntaxError("bad"), "build"),
        (ModuleNotFoundError("No module named 'cutlass'"), "build"),
        (subprocess.CalledProcessError(1, ["g++"], stderr=b"x.cpp:3:1: error: boom"), "build"),
        (RuntimeError("Error building extension 'k'"), "build"),
        (OSError("k.so: undefined symbol: f"), "build"),
        (candidate.NoSuchClass("no class"), "build"),
        (MemoryError(), "memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: not enough memory: you tried"), "memory"),
        (SystemExit(0), "exit"),
        (ZeroDivisionError("division by zero"), "crash"),
    ],
)
def test_failures_are_told_apart(error: BaseException, kind: str) -> None:
    described = candidate.describe_failure(error)
    assert described["kind"] == kind
    assert described["ok"] is False


def test_the_compilers_words_travel() -> None:
    error = subprocess.CalledProcessError(1, ["g++"], stderr="x.cpp:3:1: error: boom")
    assert "x.cpp:3:1: error: boom" in candidate.describe_failure(error)["error"]


def started(model: Any, *inputs: Any) -> candidate.Contender:
    contender = candidate.Contender()
    contender.model = model
    packed = bundle.pack([list(inputs)])
    contender.answer({"op": "time_prepare", "header": packed.header, "align": 1}, [packed.fd])
    packed.close()
    contender.answer({"op": "time_go"}, [])
    return contender


def test_outputs_that_are_inputs_change_once_they_are_handed_over() -> None:
    contender = started(lambda x: x, torch.full((4,), 5.0))
    reply, fds = contender.answer({"op": "collect", "call": 0, "hold": True}, [])
    first = bundle.unpack(reply["outputs"], fds[0])
    again, more = contender.answer({"op": "held", "index": 0}, [])
    assert torch.equal(first, torch.full((4,), 5.0))
    assert not bundle.same(reply["outputs"], fds[0], again["held"], more[0])


def test_fresh_outputs_stay_what_they_were() -> None:
    contender = started(lambda x: x + 1, torch.full((4,), 5.0))
    reply, fds = contender.answer({"op": "collect", "call": 0, "hold": True}, [])
    again, more = contender.answer({"op": "held", "index": 0}, [])
    assert bundle.same(reply["outputs"], fds[0], again["held"], more[0])


def test_inputs_are_shown_as_the_call_left_them() -> None:
    contender = started(lambda x: x.zero_().clone(), torch.ones(4))
    reply, fds = contender.answer({"op": "collect", "call": 0, "hold": False}, [])
    assert torch.equal(bundle.unpack(reply["inputs_after"], fds[1])[0], torch.zeros(4))


def test_a_trace_lists_what_the_call_used_and_nothing_of_ours() -> None:
    contender = candidate.Contender()
    contender.model = lambda x: x.t().contiguous().relu()
    packed = bundle.pack([[torch.randn(8, 8)]])
    contender.answer({"op": "trace_on"}, [])
    contender.answer({"op": "time_prepare", "header": packed.header, "align": 1}, [packed.fd])
    contender.answer({"op": "time_go"}, [])
    reply, _ = contender.answer({"op": "trace_off"}, [])
    packed.close()
    assert "aten::relu" in reply["operators"]
    assert "aten::take" not in reply["operators"]
    assert reply["copied"] >= 8 * 8 * 4
