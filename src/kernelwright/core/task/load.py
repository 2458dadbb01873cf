"""Runs a task's text: a Task in, its reference class with a way to construct it and to draw its inputs out.

Only for trusted workers and the designer: the file is executed here. Everything that can be wrong with a file becomes a
TaskError of one sentence, with the line of the user's file where there is one. `footprint.py` owns the memory count,
`tree.py` the shape of inputs and outputs.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import random
import re
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch

from kernelwright.core.errors import TaskError
from kernelwright.core.task import footprint, tree
from kernelwright.core.task.task import DEFAULT_CLASS, Task

_serial = itertools.count()
_loaded: dict[tuple[str, str], LoadedTask] = {}


@dataclass(frozen=True)
class LoadedTask:
    """A task whose file has been run. It may be constructed and drawn from as often as one likes."""

    task: Task
    model_class: type
    init_args: tuple[Any, ...]
    init_kwargs: dict[str, Any]
    inputs_function: Callable[[], Any] | None
    shapes_function: Callable[[], Any] | None
    inputs_name: str
    dynamic_function: Callable[[], Any] | None = None

    def construct(self, seed: int) -> Any:
        """The reference module under a seed: in eval mode (dropout off), without gradients."""
        seed_everything(seed)
        with guarded(self.task, f"constructing {self.task.class_name} raised"), torch.no_grad():
            model = self.model_class(*copy.deepcopy(self.init_args), **copy.deepcopy(self.init_kwargs))
        if not isinstance(model, torch.nn.Module):
            raise TaskError(self.task.path, f"{self.task.class_name} is not a torch.nn.Module")
        return model.eval().requires_grad_(False)

    def draw(self, seed: int) -> list[list[Any]]:
        """The inputs of every workload (the main one first, then the shapes of get_inputs_dyn_list) under a seed."""
        workloads: list[list[Any]] = []
        seed_everything(seed)
        if self.inputs_function is not None:
            with guarded(self.task, f"{self.inputs_name} raised"), torch.no_grad():
                drawn = self.inputs_function()
            workloads.append(self._checked(drawn, self.inputs_name))
        if self.shapes_function is not None:
            with guarded(self.task, "get_inputs_dyn_list raised"), torch.no_grad():
                drawn = self.shapes_function()
            if not isinstance(drawn, list | tuple) or not drawn:
                raise TaskError(self.task.path, "get_inputs_dyn_list must return a list of lists of inputs")
            workloads += [self._checked(item, "every entry of get_inputs_dyn_list") for item in drawn]
        return workloads

    def forward(self, model: Any, inputs: list[Any]) -> Any:
        """One call of the reference, without gradients; a failure is the task's fault and said so."""
        with guarded(self.task, "its inputs do not fit forward, which raised"), torch.no_grad():
            return model(*inputs)

    def require_memory(self, limit: int | None = None, known: footprint.Footprint | None = None) -> footprint.Footprint:
        """Refuse a task that cannot fit, before it is run. Uses a namespace of its own, so no fake tensor stays behind. What it needs may
        be `known` already."""
        needed = known
        if needed is None:
            other = fresh_task(self.task)
            needed = footprint.measure(lambda: _run_once(other))
        limit = footprint.available_bytes() if limit is None else limit
        if needed.judged > limit:
            raise TaskError(
                self.task.path,
                f"the task is too large for memory: one run holds {_gigabytes(needed.peak)}, judging it takes "
                f"{_gigabytes(needed.judged)}, and {_gigabytes(limit)} are available",
            )
        return needed

    def _checked(self, drawn: Any, what: str) -> list[Any]:
        if not isinstance(drawn, list | tuple):
            raise TaskError(self.task.path, f"{what} must return a list of inputs, not {_a(drawn)}")
        for _, leaf in tree.leaves(list(drawn), "input"):
            if isinstance(leaf, torch.Tensor):
                if leaf.device.type != "cpu" or leaf.layout is not torch.strided:
                    raise TaskError(
                        self.task.path, f"{what} gives a {leaf.layout} tensor on {leaf.device}; inputs are dense and on the CPU"
                    )
            elif leaf is not None and not isinstance(leaf, bool | int | float | str):
                raise TaskError(self.task.path, f"{what} gives {_a(leaf)}, which is neither a tensor nor a number")
        return [tree.transform(item, lambda tensor: tensor.detach()) for item in drawn]


def load_task(task: Task) -> LoadedTask:
    """The task's file, executed once in a process: whoever asks for the same task again gets the same classes and functions."""
    key = (task.hash, task.path)
    if key not in _loaded:
        _loaded[key] = fresh_task(task)
    return _loaded[key]


def fresh_task(task: Task) -> LoadedTask:
    """Execute the file in a namespace of its own and find the class and its functions: for those who leave fake tensors behind."""
    module = _execute(task)
    model_class = getattr(module, task.class_name, None)
    if model_class is None:
        raise TaskError(task.path, f"no class {task.class_name} is defined in it")
    if not isinstance(model_class, type) or not issubclass(model_class, torch.nn.Module):
        raise TaskError(task.path, f"{task.class_name} is not a torch.nn.Module class")
    inputs_name, inputs = _find(module, task.class_name, "inputs")
    init_name, init = _find(module, task.class_name, "init_inputs")
    shapes = _callable(module, "get_inputs_dyn_list") if inputs_name in ("", "get_inputs") else None
    if inputs is None and shapes is None:
        names = "get_inputs" if task.class_name == DEFAULT_CLASS else f"get_{task.class_name.lower()}_inputs or get_inputs"
        raise TaskError(task.path, f"no function {names} gives the inputs of {task.class_name}")
    args, kwargs = _init_arguments(task, model_class, init_name, init)
    return LoadedTask(task, model_class, args, kwargs, inputs, shapes, inputs_name, _callable(module, "get_dynamic"))


def open_task(task: Task, seed: int) -> tuple[LoadedTask, Any, list[list[Any]]]:
    """Load, check the memory, construct, draw: all that must work before a task can be judged or designed for."""
    loaded = load_task(task)
    loaded.require_memory()
    return loaded, loaded.construct(seed), loaded.draw(seed)


def require_outputs(task: Task, output: Any) -> list[tuple[str, Any]]:
    """The named output tensors of the reference; TaskError when it returns something else."""
    named = tree.leaves(output, "output")
    for name, leaf in named:
        if not isinstance(leaf, torch.Tensor | None | bool | int | float):
            raise TaskError(task.path, f"forward returns {_a(leaf)} ({name}), where a tensor is expected")
    found = [(name, leaf) for name, leaf in named if isinstance(leaf, torch.Tensor)]
    if not found:
        raise TaskError(task.path, f"forward returns no tensor but {_a(output)}")
    return found


def seed_everything(seed: int) -> None:
    """One seed for all generators a task file may use."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % (1 << 32))


class guarded:
    """Turns what the user's code raises into a TaskError with the last line of their file that was on the stack."""

    def __init__(self, task: Task, what: str) -> None:
        self._task = task
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, TaskError | KeyboardInterrupt | GeneratorExit):
            return
        frames = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == self._task.path]
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            reason = "the task is too large for memory"
        else:
            first = (str(error).strip().splitlines() or [""])[0][:300]
            reason = f"{self._what} {type(error).__name__}" + (f": {first}" if first else "")
        raise TaskError(self._task.path, reason, line=frames[-1] if frames else None) from error


def _execute(task: Task) -> types.ModuleType:
    module = types.ModuleType(f"kernelwright_task_{next(_serial)}")
    module.__file__ = task.path
    sys.modules[module.__name__] = module  # dataclasses and pickle look a class's module up by its name
    folder = str(Path(task.path).resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # at the end: a sibling named torch.py must not shadow torch
    with guarded(task, "running the file raised"):
        exec(compile(task.source, task.path, "exec", dont_inherit=True), module.__dict__)
    return module


def _find(module: types.ModuleType, class_name: str, what: str) -> tuple[str, Callable[[], Any] | None]:
    """`get_<class>_<what>` (lower or snake case) comes before the file's general `get_<what>`."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()
    for name in (f"get_{class_name.lower()}_{what}", f"get_{snake}_{what}", f"get_{what}"):
        function = _callable(module, name)
        if function is not None:
            return name, function
    return "", None


def _callable(module: types.ModuleType, name: str) -> Callable[[], Any] | None:
    found = getattr(module, name, None)
    return found if callable(found) else None


def _init_arguments(
    task: Task, model_class: type, name: str, function: Callable[[], Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Constructor arguments from what get_init_inputs gave: a list, a list with one dictionary of keywords, a list and a
    dictionary, or a dictionary. The reading that fits the constructor's signature wins."""
    if function is None:
        return (), {}
    seed_everything(0)
    with guarded(task, f"{name} raised"), torch.no_grad():
        given = function()
    if isinstance(given, Mapping):
        return (), dict(given)
    if not isinstance(given, list | tuple):
        raise TaskError(task.path, f"{name} must return a list or a dictionary, not {_a(given)}")
    readings: list[tuple[tuple[Any, ...], dict[str, Any]]] = [(tuple(given), {})]
    if len(given) == 1 and isinstance(given[0], Mapping):
        readings.insert(0, ((), dict(given[0])))
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], Mapping):
        named = set(given[1]) <= set(inspect.signature(model_class).parameters)
        readings.insert(0 if named else 1, (tuple(given[0]), dict(given[1])))
    for args, kwargs in readings:
        try:
            inspect.signature(model_class).bind(*args, **kwargs)
        except (TypeError, ValueError):
            continue
        return args, kwargs
    wanted = inspect.signature(model_class)
    raise TaskError(task.path, f"{name} gives {len(given)} values, which do not fit {task.class_name}{wanted}"[:300])


def _run_once(loaded: LoadedTask) -> Any:
    model = loaded.construct(0)
    results = []
    for inputs in loaded.draw(0):
        with torch.no_grad():
            results.append((inputs, model(*inputs)))
    return model, results


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def _a(value: Any) -> str:
    return f"a {type(value).__name__}"
