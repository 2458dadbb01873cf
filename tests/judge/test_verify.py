"""The judge end to end: one small task, kernels of every fate, and the verdict each of them gets. Timing is another matter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelwright.core.errors import KernelFileError, TaskError
from kernelwright.core.task import Task
from kernelwright.judge import Judge, Status, Times, Verdict
from kernelwright.judge.session import candidate_limits

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.relu(x) * self.scale

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return [32]
"""

HEAD = """
import torch, os, sys, time, ctypes, subprocess
CODE = r'''
extern "C" void f(const float* x, const float* s, float* y, long rows, long width) {
    for (long i = 0; i < rows; ++i)
        for (long j = 0; j < width; ++j) { float v = x[i * width + j]; y[i * width + j] = (v > 0 || v != v ? v : 0.0f) * s[j]; }
}
'''
def build(code=CODE):
    open("k.cpp", "w").write(code)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "k.cpp", "-o", "k.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./k.so")

class Base(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))
        self.library = build()

    def right(self, x, y=None):
        x = x.contiguous()
        y = torch.empty_like(x) if y is None else y
        p = lambda t: ctypes.c_void_p(t.data_ptr())
        self.library.f(p(x), p(self.scale), p(y), ctypes.c_long(x.shape[0]), ctypes.c_long(x.shape[1]))
        return y
"""


def kernel(body: str, before: str = "") -> str:
    lines = "\n".join("        " + line for line in body.splitlines())
    return f"{HEAD}\n{before}\nclass ModelNew(Base):\n    def forward(self, x):\n{lines}\n"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(threads=1, times=Times(build=60, run=3, slower=10)) as made:
        yield made


@pytest.fixture(scope="module")
def task() -> Task:
    return Task.from_source(TASK, path="scaled_relu.py")


def verdict(judge: Judge, task: Task, source: str, **options: object) -> Verdict:
    return judge.verify(task, source, timing=False, **options)  # type: ignore[arg-type]


def test_an_honest_kernel_is_correct_and_the_verdict_says_what_was_run(judge: Judge, task: Task) -> None:
    answer = verdict(judge, task, kernel("return self.right(x)"))
    assert answer.status is Status.correct, answer.reason
    assert list(answer.phases) == ["open", "build", "trials", "track and task", "end"]
    assert sum(answer.phases.values()) == pytest.approx(answer.seconds, abs=0.5)
    assert answer.trials.seeds >= 3
    assert len(answer.trials.distributions) >= 2
    assert answer.dsl == "cpp"
    assert answer.library_calls == ()
    assert answer.timing is None
    assert answer.task_hash == task.hash
    if os.geteuid() == 0:
        assert answer.sandbox == "namespaces+landlock+seccomp"


IGNORES_SCALE = """
old, self.scale.data = self.scale.data, torch.ones_like(self.scale)
try: return self.right(x)
finally: self.scale.data = old
"""
STATIC_BUFFER = "y = BUFFER.setdefault(x.shape, torch.empty(x.shape))\nreturn self.right(x, y)"
COUNTER = "COUNT.append(1)\nreturn self.right(x) if len(COUNT) < 12 else torch.zeros_like(x)"

FATES = {
    "syntax": ("class ModelNew(:\n", Status.build_failed, "invalid syntax|loaded"),
    "no class": ("x = 1\n", Status.build_failed, "no class ModelNew"),
    "raises at import": ("import nothing_like_this\n", Status.build_failed, "nothing_like_this"),
    "compiler": (HEAD + "\nbuild('int f( {')\nModelNew = Base\n", Status.build_failed, "error:"),
    "raises": (kernel("raise ValueError('oh')"), Status.crashed, "ValueError at line .*oh"),
    "exits": (kernel("os._exit(0)"), Status.crashed, "exited with code 0"),
    "segfault": (kernel("ctypes.string_at(0)"), Status.crashed, "SIGSEGV"),
    "abort": (kernel("os.abort()"), Status.crashed, "SIGABRT"),
    "memory": (kernel("return torch.empty(1 << 42)"), Status.out_of_memory, "memory"),
    "loop": (kernel("while True: pass"), Status.timed_out, "time limit"),
    "zeros": (kernel("return torch.zeros_like(x)"), Status.wrong_values, "wrong"),
    "ignores the weight": (kernel(IGNORES_SCALE), Status.wrong_values, "wrong"),
    "shape": (kernel("return self.right(x)[:8]"), Status.wrong_shape, "shape"),
    "dtype": (kernel("return self.right(x).double()"), Status.wrong_dtype, "float64|double"),
    "mutates": (kernel("y = self.right(x)\nx.zero_()\nreturn y"), Status.cheating, "input"),
    "static buffer": (kernel(STATIC_BUFFER, "BUFFER = {}"), Status.cheating, "overwritten by a later call"),
    "torch": (kernel("return torch.relu(x) * self.scale"), Status.cheating, "aten::relu"),
    "subclass": (kernel("return self.right(x).as_subclass(Sub)", "class Sub(torch.Tensor): pass"), Status.cheating, "Sub"),
    "call counter": (kernel(COUNTER, "COUNT = []"), Status.wrong_values, "wrong"),
    "forged": (kernel("import socket\nsocket.socket(fileno=os.dup(3)).send(b'x' * 40)\nreturn self.right(x)"), Status.cheating, "channel"),
}  # fmt: skip


@pytest.mark.parametrize("name", FATES)
def test_every_fate_has_its_status_and_its_sentence(judge: Judge, task: Task, name: str) -> None:
    import re

    source, status, words = FATES[name]
    answer = verdict(judge, task, source)
    assert answer.status is status, answer.reason
    assert re.search(words, answer.reason), answer.reason


def test_a_build_failure_shows_the_first_error_and_its_lines(judge: Judge, task: Task) -> None:
    answer = verdict(judge, task, FATES["compiler"][0])
    assert answer.build is not None
    assert "k.cpp:1" in answer.build.message
    assert "int f( {" in answer.build.excerpt


def test_a_mismatch_says_where(judge: Judge, task: Task) -> None:
    answer = verdict(judge, task, kernel("y = self.right(x)\ny[:, -7:] += 1\nreturn y"))
    assert answer.status is Status.wrong_values or "aten" in answer.reason
    assert answer.mismatch is not None
    assert answer.mismatch.wrong > 0


def test_what_it_printed_is_kept_at_the_end_of_the_verdict(judge: Judge, task: Task) -> None:
    answer = verdict(judge, task, kernel("print('hello from inside', flush=True)\nreturn self.right(x)"))
    assert answer.status is Status.correct
    assert "hello from inside" in answer.stderr_tail


def test_one_judge_serves_several_threads(judge: Judge, task: Task) -> None:
    sources = [kernel("return self.right(x)"), kernel("return torch.zeros_like(x)")] * 2
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda source: verdict(judge, task, source).status, sources))
    assert answers == [Status.correct, Status.wrong_values] * 2


def test_a_bad_task_is_the_users_error(judge: Judge) -> None:
    broken = Task.from_source(TASK.replace("torch.randn(16, 32)", "torch.randn(16, 31)"), path="broken.py")
    with pytest.raises(TaskError, match=r"broken\.py"):
        verdict(judge, broken, kernel("return self.right(x)"))


def test_files_that_cannot_be_read_are_the_users_error(judge: Judge, task: Task, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.py"):
        with pytest.raises(KernelFileError):
            judge.verify(task, path, timing=False)


def test_hybrid_allows_a_library_product_and_lists_it(judge: Judge) -> None:
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, a, b):\n        return a @ b\n"
    source += "def get_inputs():\n    return [torch.randn(8, 16), torch.randn(16, 4)]\n"
    product = Task.from_source(source, path="product.py")
    by_library = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n        return torch.mm(a, b)\n"
    assert verdict(judge, product, by_library, track="pure").status is Status.cheating
    answer = verdict(judge, product, by_library, track="hybrid")
    assert answer.status is Status.correct
    assert answer.library_calls == ("aten::mm",)


def test_of_a_large_output_a_digest_is_held(judge: Judge, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever does not fit beside the rest is still compared with what the kernel hands over later."""
    monkeypatch.setattr("kernelwright.judge.session.HELD_BYTES", 16)
    assert verdict(judge, task, kernel("return self.right(x)")).status is Status.correct
    answer = verdict(judge, task, kernel(STATIC_BUFFER, "BUFFER = {}"))
    assert answer.status is Status.cheating, answer.reason
    assert "an output changed after it was returned" in answer.reason


def test_a_kernel_may_hand_over_outputs_of_any_size() -> None:
    """The sandbox's limit on files holds for the memory files by which outputs travel, too: 1 GiB was too little."""
    size = 5 << 30
    assert candidate_limits({"output_bytes": size}).file_bytes > size
    assert candidate_limits({"input_bytes": size}).file_bytes > 2 * size, "inputs with gaps between their rows"
