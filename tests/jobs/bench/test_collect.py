"""What counts as a task: suites, checkouts, folders, single files, other projects' formats, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.jobs.bench.collect import collect, select
from kernelwright.jobs.bench.family import family_of
from kernelwright.jobs.bench.kernels import Kernels

RELU = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(8, 16)]
def get_init_inputs():
    return []
"""


def write(path: Path, text: str | bytes = RELU) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_suite_by_its_name() -> None:
    entries = collect(["core"])
    assert len(entries) > 100
    assert entries[0].key == f"core/{entries[0].name}"
    assert {entry.family for entry in entries} >= {"gemm", "conv", "norm"}


def test_a_checkout_of_kernelbench_in_its_own_order(tmp_path: Path) -> None:
    for place in ("level1/10_b", "level1/2_a", "level2/1_c"):
        write(tmp_path / "repo" / "KernelBench" / f"{place}.py")
    write(tmp_path / "repo" / "scripts" / "run.py", "print(1)")
    keys = [entry.key for entry in collect([str(tmp_path / "repo")])]
    assert keys == ["repo/level1/2_a", "repo/level1/10_b", "repo/level2/1_c"]
    assert [entry.level for entry in collect([str(tmp_path / "repo" / "KernelBench" / "level2")])] == ["level2"]


def test_a_folder_keeps_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / "good.py")
    write(tmp_path / "sub" / "binary.py", b"\0\1\2")
    write(tmp_path / "__pycache__" / "old.py")
    write(tmp_path / ".hidden" / "no.py")
    found = {entry.name: entry for entry in collect([str(tmp_path)])}
    assert set(found) == {"good", "binary"}
    assert found["binary"].source is None
    assert "binary" in found["binary"].problem
    assert found["binary"].level == "sub"


def test_one_file_and_one_class(tmp_path: Path) -> None:
    path = write(tmp_path / "one.py", RELU.replace("class Model", "class Other"))
    (entry,) = collect([f"{path}:Other"])
    assert (entry.name, entry.class_name) == ("one:Other", "Other")


def test_equal_names_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py")
    assert [entry.name for entry in collect([str(path), str(path)])] == ["a", "a~2"]


def test_what_is_nothing_is_said() -> None:
    with pytest.raises(KernelwrightError, match="no such suite"):
        collect(["nowhere"])


def test_selection_is_by_text_number_and_share() -> None:
    entries = collect(["core"])
    assert all("relu" in entry.key for entry in select(entries, text="relu"))
    assert len(select(entries, limit=7)) == 7
    parts = [select(entries, shard=f"{index}/4") for index in range(1, 5)]
    assert sorted(entry.key for part in parts for entry in part) == sorted(entry.key for entry in entries)
    with pytest.raises(KernelwrightError, match="I/N"):
        select(entries, shard="5/4")


ROBUST = """import torch
from torch import nn
def forward_fn(x):
    return torch.relu(x)
class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
    def forward(self, x, fn=forward_fn):
        return fn(x)
def get_inputs(rows, columns):
    return (torch.randn(rows, columns),)
"""


def test_robust_kbench_folders(tmp_path: Path) -> None:
    write(tmp_path / "tasks" / "relu" / "func_forward.py", ROBUST)
    config = {
        "single_input_configs": [{"rows": 4}],
        "multi_input_configs": [{"rows": 4}, {"rows": 9}],
        "single_init_configs": [{}],
        "single_shared_configs": [{"columns": 3}],
    }
    write(tmp_path / "tasks" / "relu" / "config_forward.json", json.dumps(config))
    (entry,) = collect([str(tmp_path / "tasks")])
    assert entry.name == "relu"
    assert entry.source
    loaded = load_task(Task.from_source(entry.source))
    drawn = loaded.draw(0)
    assert [tuple(inputs[0].shape) for inputs in drawn] == [(4, 3), (4, 3), (9, 3)]
    assert loaded.forward(loaded.construct(0), drawn[0]).shape == (4, 3)


def test_flashinfer_traces(tmp_path: Path) -> None:
    definition = {
        "name": "scale_n16",
        "op_type": "pointwise",
        "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 16}},
        "inputs": {"x": {"shape": ["M", "N"], "dtype": "float32"}, "factor": {"shape": None, "dtype": "float32"}},
        "outputs": {"y": {"shape": ["M", "N"], "dtype": "float32"}},
        "reference": "import torch\n\ndef run(x, factor):\n    return x * factor\n",
    }
    write(tmp_path / "definitions" / "p" / "scale_n16.json", json.dumps(definition))
    loads = [{"workload": {"axes": {"M": rows}, "inputs": {"factor": {"type": "scalar", "value": 2.5}}}} for rows in (3, 5)]
    write(tmp_path / "workloads" / "p" / "scale_n16.jsonl", "\n".join(map(json.dumps, loads)))
    write(tmp_path / "definitions" / "p" / "broken.json", "{")
    broken, good = collect([str(tmp_path)])
    assert broken.source is None
    assert "expected form" in broken.problem
    assert good.family == "pointwise"
    assert good.source
    loaded = load_task(Task.from_source(good.source))
    drawn = loaded.draw(0)
    assert [tuple(inputs[0].shape) for inputs in drawn] == [(3, 16), (3, 16), (5, 16)]
    assert drawn[0][1] == 2.5


def test_kernels_are_found_by_name_level_and_problem_number(tmp_path: Path) -> None:
    for place in ("KernelBench/level1/1_a", "KernelBench/level2/1_a", "KernelBench/level2/7_b", "KernelBench/level2/8_c"):
        write(tmp_path / f"{place}.py")
    entries = {entry.key.split("/", 1)[1]: entry for entry in collect([str(tmp_path)])}
    theirs = tmp_path / "kernels"
    for name in ("level1/1_a.py", "level2/1_a.py", "7_b/kernel.py", "level_2_problem_8_sample_0_kernel.py"):
        write(theirs / name, "class ModelNew: ...")
    kernels = Kernels(theirs)
    found = {key: str(path.relative_to(theirs)) if (path := kernels.find(entry)) else None for key, entry in entries.items()}
    assert found == {
        "level1/1_a": "level1/1_a.py",
        "level2/1_a": "level2/1_a.py",
        "level2/7_b": "7_b/kernel.py",
        "level2/8_c": "level_2_problem_8_sample_0_kernel.py",
    }


@pytest.mark.parametrize(
    ("body", "family"),
    [
        ("return torch.matmul(a, b)", "gemm"),
        ("return a @ b", "gemm"),
        ("return torch.relu(self.conv(x))", "conv_chain"),
        ("return torch.softmax(x, 1)", "activation"),
        ("return torch.cumsum(x, 1)", "scan"),
        ("return x + 1", "other"),
    ],
)
def test_families_by_what_is_called(body: str, family: str) -> None:
    layers = "        self.conv = nn.Conv2d(3, 4, 3)\n" if "conv" in body else "        pass\n"
    text = f"class Model(nn.Module):\n    def __init__(self):\n{layers}    def forward(self, x, a, b):\n        {body}\n"
    assert family_of(text) == family
