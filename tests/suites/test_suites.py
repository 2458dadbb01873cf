"""Every task of every suite loads, runs, and yields finite tensors that depend on its inputs; suites can be written."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
import torch

from kernelwright import suites
from kernelwright.core.errors import KernelwrightError
from kernelwright.core.task import Task
from kernelwright.core.task.dynamic_probe import dynamic_of
from kernelwright.core.task.load import load_task
from kernelwright.jobs.bench.collect import collect

TASKS = [(suite, task) for suite in suites.NAMES for task in suites.load(suite)]
AT_LEAST = {"core": 100, "fused": 100, "modern": 40, "shapes": 70}


def tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    assert isinstance(value, (list, tuple)), f"a task gives tensors, not {type(value).__name__}"
    return [tensor for part in value for tensor in tensors(part)]


@pytest.mark.parametrize("suite", suites.NAMES)
def test_a_suite_is_as_large_as_promised_and_names_are_unique(suite: str) -> None:
    tasks = suites.load(suite)
    assert len(tasks) >= AT_LEAST[suite]
    assert [name for name, count in Counter(task.name for task in tasks).items() if count > 1] == []
    assert len({task.source for task in tasks}) == len(tasks)
    assert all(task.name.isidentifier() for task in tasks)


@pytest.mark.parametrize("suite", suites.NAMES)
def test_a_part_of_a_suite_has_several_shapes(suite: str) -> None:
    several = [task for task in suites.load(suite) if "get_inputs_dyn_list" in task.source]
    assert several, f"no task of {suite} has several shapes"


@pytest.mark.parametrize(("suite", "task"), TASKS, ids=[f"{suite}-{task.name}" for suite, task in TASKS])
def test_a_task_runs_and_its_output_tells_something(suite: str, task: suites.SuiteTask) -> None:
    module: dict[str, object] = {"__name__": task.name}
    exec(compile(task.source, task.name, "exec"), module)
    torch.manual_seed(7)
    with torch.no_grad():
        model = module["Model"](*module["get_init_inputs"]()).eval()
        draws = [module["get_inputs"](), *module.get("get_inputs_dyn_list", list)()]
        for inputs in draws:
            outputs = tensors(model(*inputs))
            assert outputs
            for output in outputs:
                assert torch.isfinite(output.float()).all()
        first = tensors(model(*draws[0]))[0].float()
        fresh = tensors(model(*module["get_inputs"]()))[0].float()
    # an output that no input can change would let a constant pass
    assert not torch.equal(first, fresh)


def test_files_are_written_one_for_each_task(tmp_path: object) -> None:
    paths = suites.write("modern", tmp_path)
    assert [path.stem for path in paths] == [task.name for task in suites.load("modern")]
    for path in paths:
        names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        assert {"Model", "get_inputs", "get_init_inputs"} <= names


def test_an_unknown_suite_is_told_with_the_known_ones() -> None:
    with pytest.raises(KernelwrightError, match="core, fused, modern"):
        suites.load("level1")


def test_every_verb_takes_a_task_of_a_suite_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relu = next(task for task in suites.load("core") if task.name == "relu")
    assert suites.task("core/relu").source == relu.source
    assert [entry.key for entry in collect(["core/relu"])] == ["core/relu"]
    with pytest.raises(KernelwrightError, match="no task 'rellu' in the suite core; did you mean relu"):
        suites.task("core/rellu")


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "relu").write_text("class Model: pass\n")
    assert suites.task("core/relu").source == "class Model: pass\n"


def test_every_task_of_shapes_has_four_to_eight_sizes() -> None:
    for task in suites.load("shapes"):
        module: dict[str, object] = {"__name__": task.name}
        exec(compile(task.source, task.name, "exec"), module)
        assert 4 <= len(module["get_inputs_dyn_list"]()) <= 8, task.name


@pytest.mark.slow
@pytest.mark.parametrize("task", suites.load("shapes"), ids=lambda task: task.name)
def test_what_differs_in_the_sizes_of_shapes_may_vary(task: suites.SuiteTask) -> None:
    dynamic = dynamic_of(load_task(Task.from_source(task.source)), "listed")
    assert dynamic is not None
    module: dict[str, object] = {"__name__": task.name}
    exec(compile(task.source, task.name, "exec"), module)
    for inputs in module["get_inputs_dyn_list"]():
        sizes = dynamic.read([tensor.shape for tensor in inputs])
        assert all(symbol.admits(sizes[symbol.name]) for symbol in dynamic.symbols)
        assert dynamic.shapes([tensor.shape for tensor in inputs], sizes) == [tuple(tensor.shape) for tensor in inputs]
