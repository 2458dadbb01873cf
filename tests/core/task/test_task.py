"""The Task noun and every way in which a file can be bad, each as one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.core.errors import TaskError
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task, open_task, require_outputs

GOOD = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.linear = nn.Linear(width, 4, bias=bias)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.linear(x))

def get_inputs():
    return [torch.randn(3, 8)]

def get_init_inputs():
    return [8]
"""


def write(folder: Path, text: str, name: str = "task.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_task_is_its_text_and_class(tmp_path: Path) -> None:
    one = Task.from_path(write(tmp_path, GOOD))
    other = Task.from_path(write(tmp_path, GOOD, "elsewhere.py"))
    assert (one.name, one.class_name, one.source) == ("task", "Model", GOOD)
    assert one.hash == other.hash
    assert Task.from_source(GOOD + "\n").hash != one.hash


def test_reading_a_task_imports_no_torch(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    code = f"import sys; from kernelwright.core.task import Task; Task.from_path({path!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_is_constructed_in_eval_mode_under_a_seed() -> None:
    import torch

    loaded, model, workloads = open_task(Task.from_source(GOOD), seed=3)
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert torch.equal(model(*workloads[0]), model(*workloads[0])), "dropout is off"
    again = loaded.construct(3)
    assert torch.equal(again.linear.weight, model.linear.weight)
    assert not torch.equal(loaded.construct(4).linear.weight, model.linear.weight)
    assert torch.equal(loaded.draw(5)[0][0], loaded.draw(5)[0][0])


@pytest.mark.parametrize(
    ("given", "bias"),
    [
        ("[8]", True),
        ("[8, False]", False),
        ("[{'width': 8, 'bias': False}]", False),
        ("{'width': 8}", True),
        ("[[8], {}]", True),
    ],
)
def test_constructor_arguments_in_all_their_forms(given: str, bias: bool) -> None:
    loaded = load_task(Task.from_source(GOOD.replace("return [8]", f"return {given}")))
    assert (loaded.construct(0).linear.bias is not None) is bias


def test_another_class_of_a_module_with_its_own_inputs(tmp_path: Path) -> None:
    text = GOOD + (
        "\nclass TwoSums(nn.Module):\n    def forward(self, x, k):\n        return x.sum(0) * k, {'rows': x.sum(1)}\n"
        "def get_two_sums_inputs():\n    return (torch.ones(2, 3), 2)\ndef get_two_sums_init_inputs():\n    return []\n"
    )
    task = Task.from_path(write(tmp_path, text) + ":TwoSums")
    loaded, model, workloads = open_task(task, 0)
    outputs = require_outputs(task, loaded.forward(model, workloads[0]))
    assert task.name == "task:TwoSums"
    assert [name for name, _ in outputs] == ["output[0]", "output[1]['rows']"]


def test_several_shapes_come_after_the_main_one() -> None:
    text = GOOD + "\ndef get_inputs_dyn_list():\n    return [[torch.randn(n, 8)] for n in (1, 5)]\n"
    assert [inputs[0].shape[0] for inputs in load_task(Task.from_source(text)).draw(0)] == [3, 1, 5]
    only = text.replace("def get_inputs():", "def unused():")
    assert [inputs[0].shape[0] for inputs in load_task(Task.from_source(only)).draw(0)] == [1, 5]


def test_a_sibling_module_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "sibling_of_task.py").write_text("WIDTH = 8\n")
    text = "from sibling_of_task import WIDTH\n" + GOOD.replace("return [8]", "return [WIDTH]")
    assert open_task(Task.from_path(write(tmp_path, text)), 0)


BAD = {
    "missing": (None, "no such file"),
    "empty": ("\n", "empty"),
    "syntax": ("import torch\ndef broken(:\n", r"task.py:2: syntax error"),
    "no model": ("import torch\n", "no class Model"),
    "not a module": ("class Model:\n    pass\ndef get_inputs():\n    return []\n", "not a torch.nn.Module"),
    "raises at import": (GOOD + "\n1 / 0\n", r"task.py:\d+: running the file raised ZeroDivisionError"),
    "exits": (GOOD + "\nimport sys\nsys.exit(0)\n", "running the file raised SystemExit"),
    "no inputs": (GOOD.replace("get_inputs", "get_nothing"), "no function get_inputs"),
    "inputs raise": (GOOD.replace("torch.randn(3, 8)", "torch.nothing"), r"task.py:\d+: get_inputs raised AttributeError"),
    "inputs no list": (GOOD.replace("[torch.randn(3, 8)]", "torch.randn(3, 8)"), "must return a list of inputs, not a Tensor"),
    "inputs no tensor": (GOOD.replace("[torch.randn(3, 8)]", "[object()]"), "neither a tensor nor a number"),
    "inputs do not fit": (GOOD.replace("randn(3, 8)", "randn(3, 9)"), r"task.py:\d+: its inputs do not fit forward"),
    "arguments do not fit": (GOOD.replace("return [8]", "return [8, 1, 2]"), "do not fit Model"),
    "no tensor out": (GOOD.replace("return self.drop(self.linear(x))", "return 'x'"), "forward returns a str"),
    "too large": (GOOD.replace("randn(3, 8)", "randn(10**10, 8)"), "too large for memory"),
}


def use(path: str) -> None:
    task = Task.from_path(path)
    loaded, model, workloads = open_task(task, 0)
    require_outputs(task, loaded.forward(model, workloads[0]))


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gets_one_sentence(name: str, tmp_path: Path) -> None:
    text, sentence = BAD[name]
    path = write(tmp_path, text) if text is not None else str(tmp_path / "task.py")
    with pytest.raises(TaskError, match=sentence) as caught:
        use(path)
    assert "\n" not in str(caught.value)


def test_a_folder_and_a_binary_file(tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\x7fELF\0\1")
    for spec, sentence in (
        (tmp_path, "folder"),
        (tmp_path / "binary.py", "binary"),
        (f"{tmp_path}/x.py:1y", "name of a class"),
    ):
        with pytest.raises(TaskError, match=sentence):
            Task.from_path(spec)


def test_memory_is_counted_before_it_is_taken() -> None:
    loaded = load_task(Task.from_source(GOOD.replace("randn(3, 8)", "randn(1000, 8)")))
    needed = loaded.require_memory(limit=1 << 30)
    assert needed.peak >= 1000 * 12 * 4
    with pytest.raises(TaskError, match="too large for memory"):
        loaded.require_memory(limit=needed.peak)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_recurrent_layers_are_counted_by_one_step(kind: str) -> None:
    """Torch unrolls them on fake tensors: 20 s for 6 layers of 512 steps. One step tells the shapes and the memory."""
    source = f"""
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.{kind}(16, 32, 2, batch_first=True, bidirectional=True)
    def forward(self, x):
        assert x.shape[1] == 2000
        out = self.layer(x)[0]
        assert out.shape == (4, 2000, 64), out.shape
        return out.repeat(1, 1, 100)
def get_inputs():
    return [torch.rand(4, 2000, 16)]
"""
    needed = load_task(Task.from_source(source)).require_memory()
    assert needed.peak >= 4 * 2000 * 6400 * 4, "what comes after the layer was counted too"
