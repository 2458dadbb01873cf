"""Whatever comes in from outside (task files, kernel files, messages, tensor headers) ends in a value or one clean sentence.

Never a traceback, never a hang, never a lost descriptor: random bytes, and small damage to things that were right.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.kernel import Kernel
from kernelwright.core.task import Task
from kernelwright.judge import Judge, Status, Times, Verdict
from kernelwright.judge.honesty.gallery import locate
from kernelwright.workers import bundle
from kernelwright.workers.channel import HEADER, MAGIC, Channel, ChannelError, ChannelGarbage

TASK = (locate() / "tasks" / "pair.py").read_text()
KERNEL = (locate() / "honest" / "pair_cpp.py").read_text()
quietly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
seldom = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(times=Times(build=30.0, run=8.0)) as one:
        yield one


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with one to three small wounds: a cut, a repeated or moved piece, a foreign character, a swapped word."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text) - 1))
        end = min(len(text), start + draw(st.integers(1, 40)))
        piece = draw(
            st.sampled_from(
                ["", text[start:end] * 2, "\0", "é", "(", "  ", "\n", "None", "self", "[]", "1e999", "raise ValueError\n"]
            )
        )
        text = text[:start] + piece + text[end:]
        if not text:
            return "\n"
    return text


def one_sentence(error: KernelwrightError) -> None:
    said = str(error)
    assert said
    assert "\n" not in said
    assert "Traceback" not in said


def read_task(path: Path) -> Task | None:
    try:
        return Task.from_path(path)
    except KernelwrightError as error:
        one_sentence(error)
        return None


@quietly
@given(data=st.binary(max_size=400))
def test_random_bytes_as_a_task_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "task.py"
    path.write_bytes(data)
    read_task(path)


@quietly
@given(text=damaged(TASK))
def test_a_damaged_task_file_is_read_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "task.py"
    path.write_text(text)
    task = read_task(path)
    assert task is None or task.class_name == "Model"


@quietly
@given(data=st.binary(max_size=400))
def test_random_bytes_as_a_kernel_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "kernel.py"
    path.write_bytes(data)
    try:
        kernel = Kernel.from_path(path)
    except KernelwrightError as error:
        one_sentence(error)
    else:
        assert kernel.hash


@pytest.mark.parametrize(
    "spec", ["", ".", "/", "missing.py", "missing.py:Model", "a\0b.py", "x" * 5000, ":", ":Model", "task.py:1a"]
)
def test_odd_names_of_files_get_one_sentence(spec: str, judge: Judge) -> None:
    for call in (lambda: Task.from_path(spec), lambda: judge.verify(Task.from_source(TASK), spec, timing=False)):
        with pytest.raises(KernelwrightError) as caught:
            call()
        one_sentence(caught.value)


def verdict_of(judge: Judge, task: str, kernel: str) -> Verdict | None:
    try:
        found = judge.verify(Task.from_source(task), Kernel.from_source(kernel), timing=False, budget_s=0.5)
    except KernelwrightError as error:
        one_sentence(error)
        return None
    assert "Traceback" not in found.reason
    assert "\n" not in found.reason
    assert found == Verdict.model_validate_json(found.model_dump_json())
    return found


@pytest.mark.slow
@seldom
@given(text=damaged(TASK))
def test_judging_with_a_damaged_task(judge: Judge, text: str) -> None:
    verdict_of(judge, text, KERNEL)


@pytest.mark.slow
@seldom
@given(text=damaged(KERNEL))
def test_judging_a_damaged_kernel(judge: Judge, text: str) -> None:
    found = verdict_of(judge, TASK, text)
    assert found is None or found.status is not Status.unusable_task


MODULE = "import torch\nclass ModelNew(torch.nn.Module):\n    "
NO_OUTPUT = ("wrong_shape", "wrong_values", "cheating", "crashed")
NO_KERNEL = ("build_failed", "crashed")
STRANGE = {
    "empty": ("", NO_KERNEL),
    "half a word": ("def", NO_KERNEL),
    "a number for a class": ("ModelNew = 3", NO_KERNEL),
    "no module": ("class ModelNew: pass", NO_KERNEL),
    "interrupts when looked at": ("class ModelNew:\n    def __getattr__(self, name): raise KeyboardInterrupt", NO_KERNEL),
    "takes no inputs": (MODULE + "def forward(self): return 1", ("crashed",)),
    "gives nothing": (MODULE + "def forward(self, x): return None", NO_OUTPUT),
    "gives far too much": (MODULE + "def forward(self, x): return (x,) * 10000", NO_OUTPUT),
    "never ends": (MODULE + "def forward(self, x): return self.forward(x)", ("crashed",)),
    "contains itself": (MODULE + "def forward(self, x): y = []; y.append(y); return y", NO_OUTPUT),
    "an endless message": (MODULE + "def forward(self, x): raise Exception('\\n' * 100000)", ("crashed",)),
    "an error that cannot be shown": (
        "class Bad(Exception):\n    def __str__(self): raise Bad\n    __repr__ = __str__\nraise Bad",
        NO_KERNEL,
    ),
    "weights that are none": (
        MODULE + "def state_dict(self): return {1: object()}\n    def forward(self, x): return x",
        NO_OUTPUT + NO_KERNEL,
    ),
}


@pytest.mark.parametrize(("body", "statuses"), STRANGE.values(), ids=STRANGE)
def test_strange_kernels_get_a_verdict(judge: Judge, body: str, statuses: tuple[str, ...]) -> None:
    found = verdict_of(judge, TASK, body + "\n")
    assert found is not None
    assert found.status in statuses


def receive_all(sent: bytes, fds: list[int]) -> list[Any]:
    """What a channel makes of these bytes, up to its first complaint; descriptors that came along are closed."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    channel = Channel(near)
    got: list[Any] = []
    with contextlib.closing(channel), far:
        if fds:
            socket.send_fds(far, [sent or b"x"], fds)
        else:
            far.sendall(sent)
        far.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ChannelError):
            while True:
                message, received = channel.receive(5.0)
                assert isinstance(message, dict)
                got.append(message)
                for fd in received:
                    os.close(fd)
    return got


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@quietly
@given(data=st.binary(max_size=200), fds=st.integers(0, 3))
def test_random_bytes_on_the_channel(data: bytes, fds: int) -> None:
    before = open_files()
    given_fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(fds)]
    receive_all(data, given_fds)
    for fd in given_fds:
        os.close(fd)
    assert open_files() == before


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists).map(json.dumps).map(str.encode)


@quietly
@given(length=st.none() | st.integers(0, 2**32 - 1), body=st.binary(max_size=80) | JSON, tail=st.binary(max_size=20))
def test_frames_with_wrong_lengths_and_contents(length: int | None, body: bytes, tail: bytes) -> None:
    for message in receive_all(HEADER.pack(MAGIC, len(body) if length is None else length) + body + tail, []):
        assert isinstance(message, dict)


def test_a_frame_of_deep_nesting_is_garbage_and_no_recursion_error() -> None:
    body = b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"  # what the socket takes at once
    assert receive_all(HEADER.pack(MAGIC, len(body)) + body, []) == []


LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)


@st.composite
def damaged_header(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """A real bundle's header with one of its values replaced by something else."""
    packed = bundle.pack([torch.arange(12.0).view(3, 4), {"a": torch.zeros(2, dtype=torch.int64)}, 3, "text"])
    paths: list[list[Any]] = []

    def walk(node: Any, path: list[Any]) -> None:
        paths.append(path)
        children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else []
        for key, child in children:
            walk(child, [*path, key])

    header = json.loads(json.dumps(packed.header))
    walk(header, [])
    path = draw(st.sampled_from(paths[1:]))
    node = header
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = draw(
        st.one_of(LEAVES, st.lists(LEAVES, max_size=4), st.dictionaries(st.text(max_size=4), LEAVES, max_size=3))
    )
    return header, packed.fd


@quietly
@given(made=damaged_header())
def test_a_damaged_header_of_tensors_is_garbage_or_inside_its_file(made: tuple[dict[str, Any], int]) -> None:
    header, fd = made
    try:
        tree = bundle.unpack(header, fd)
    except ChannelGarbage:
        return
    finally:
        os.close(fd)
    for tensor in bundle.tensors(tree):
        tensor.clone()  # reads every byte that the header promised: past the end it would be a bus error


def test_a_header_may_not_reach_past_its_file() -> None:
    packed = bundle.pack([torch.zeros(4)])
    text = json.dumps(packed.header)
    for wrong in ("[5]", "[4000000000]", "[-1]", "[2, 2, 2]"):
        damaged_text = text.replace("[4]", wrong, 1)
        assert damaged_text != text
        with pytest.raises(ChannelGarbage):
            bundle.unpack(json.loads(damaged_text), packed.fd)
    packed.close()
