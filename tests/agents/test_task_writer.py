"""New tasks: cut out of existing code, or written by a model from prose; loaded, run and checked before they are used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kernelwright.agents.models import Answer, Ask, Ledger, Limits
from kernelwright.agents.task_from_code import draw, split_arguments, task_from
from kernelwright.agents.task_writer import TaskNotWritten, write_task
from kernelwright.cli.main import run
from kernelwright.core.errors import TaskError
from kernelwright.core.task import Task
from kernelwright.judge.servers import judge_server
from kernelwright.workers.fork_server import ForkServer

CODE = '''
import math
from torch.nn import functional as F
import torch
from torch import nn
from . import secrets

EPSILON = 1e-6
UNUSED = secrets.value


def scaled(x):
    return x * math.sqrt(2.0)


def rms_norm(x, weight, eps=EPSILON):
    """RMS norm over the last axis."""
    return scaled(x) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Gate(nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        return x * F.silu(self.linear(x))


def leaky(x):
    return secrets.leak(x)
'''


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(CODE)
    return tmp_path / "code.py"


def test_a_function_comes_with_what_it_needs_and_nothing_else(code: Path) -> None:
    text = task_from(f"{code}:rms_norm", "f32[8,64], f32[64]")
    assert "def scaled" in text
    assert "EPSILON = 1e-6" in text
    assert "import math" in text
    assert "secrets" not in text
    assert "Gate" not in text
    Task.from_source(text)


def test_a_class_is_the_model(code: Path) -> None:
    text = task_from(f"{code}:Gate", "f32[5,32]", "32, bias=False")
    assert "class Model(Gate)" in text
    assert "return [[32], {'bias': False}]" in text


def test_from_code_to_a_described_task(code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = code.parent / "gate.py"
    assert (
        run(["task", "new", "--from", f"{code}:Gate", "--inputs", "f32[5,32]", "--init", "32", "--out", str(out), "--json"])
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["outputs"] == "float32[5, 32]"
    assert told["flags"] == []
    assert out.exists()
    assert run(["task", "new", "--from", f"{code}:Gate", "--inputs", "f32[5,32]", "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "inputs", "words"),
    [
        ("rms_norm", "f32[8,64]", "takes 2 to 3 arguments, and --inputs gives 1"),
        ("nothing", "", "nothing named nothing"),
        ("EPSILON", "", "neither a function nor a class"),
        ("leaky", "f32[3]", "imported from its own package"),
        ("scaled", "f33[3]", "no dtype 'f33'"),
        ("scaled", "x + 1", "is no input"),
    ],
)
def test_what_cannot_be_taken_is_one_sentence(code: Path, spec: str, inputs: str, words: str) -> None:
    with pytest.raises(TaskError, match=words):
        task_from(f"{code}:{spec}", inputs)


@pytest.mark.parametrize(
    ("item", "python"),
    [
        ("f32[128, 512]", "torch.randn((128, 512))"),
        ("f32[7]", "torch.randn((7,))"),
        ("f32[]", "torch.randn(())"),
        ("bf16[2,3]", "torch.randn((2, 3)).to(torch.bfloat16)"),
        ("i64[8]<1000", "torch.randint(0, 1000, (8,), dtype=torch.int64)"),
        ("bool[4]", "torch.randint(0, 2, (4,)).bool()"),
        ("0.5", "0.5"),
        ("'same'", "'same'"),
    ],
)
def test_inputs_as_python(item: str, python: str) -> None:
    assert draw(item) == python


def test_commas_inside_brackets_and_strings_do_not_split() -> None:
    assert split_arguments("f32[1,2], (3, 4), 'a, b', 5") == ["f32[1,2]", "(3, 4)", "'a, b'", "5"]


@dataclass
class Scripted:
    """A model that says what it is told to say."""

    answers: list[str]
    name: str = "scripted"
    ledger: Ledger = field(default_factory=lambda: Ledger(Limits()))
    asks: list[Ask] = field(default_factory=list)

    def ask(self, ask: Ask, on_text: object = None) -> Answer:
        self.asks.append(ask)
        return Answer(self.answers[min(len(self.asks), len(self.answers)) - 1], 1, 1, None, 0.0)

    def close(self) -> None:
        """Nothing is held open."""


GOOD = """Here:
```python
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

def get_inputs():
    return [torch.randn(16, 48)]

def get_init_inputs():
    return [48]
```
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with judge_server() as server:
        yield server


def test_prose_becomes_a_task_after_its_errors_went_back(server: ForkServer, tmp_path: Path) -> None:
    hostile = GOOD.replace("return [48]", f"open({str(tmp_path / 'proof')!r}, 'w').write('x'); return [48]")
    model = Scripted(["I would rather not.", hostile, GOOD])
    written = write_task("RMS norm, 16 rows of 48", model, server)
    assert written.asked == 3
    assert written.description.facts["outputs"] == "float32[16, 48]"
    assert "RMS norm, 16 rows of 48" in model.asks[0].user
    assert "contains no code block" in model.asks[1].user
    assert not (tmp_path / "proof").exists(), "what a model wrote runs in the sandbox only"


def test_a_model_that_never_manages_is_one_sentence(server: ForkServer) -> None:
    with pytest.raises(TaskNotWritten, match="no usable task after 3 answers"):
        write_task("anything", Scripted(["no"]), server)


def test_prose_without_a_model_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["task", "new", "fused RMSNorm and RoPE"]) == 2
    assert "takes a model to read" in capsys.readouterr().err
