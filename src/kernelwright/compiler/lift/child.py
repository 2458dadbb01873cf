"""The process that reads a foreign kernel file: a request on stdin, the sketch's text (or the refusal) on a pipe.

1. import everything that is needed, close the sandbox;
2. load the file, construct its module, draw its inputs;
3. call forward under the tracer and the language's context (the device redirect): launches are put down;
4. the language makes a sketch of what was seen.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernelwright.compiler.hardware import DEFAULT_TARGET
from kernelwright.compiler.lift.launches import Seen
from kernelwright.compiler.lift.tracing import MODULE, Tracer
from kernelwright.core.dtypes import DType
from kernelwright.core.errors import CannotLift, ConfigError, KernelwrightError
from kernelwright.core.task import Task
from kernelwright.core.task.input_text import drawn
from kernelwright.core.task.load import load_task, seed_everything
from kernelwright.sketch.print import to_source
from kernelwright.target import Target
from kernelwright.workers import sandbox


def main() -> None:
    """`python -m kernelwright.compiler.lift.child PIPE FOLDER < request`."""
    pipe, folder = int(sys.argv[1]), sys.argv[2]
    request = json.loads(sys.stdin.buffer.read())
    try:
        reply = _answer(request, folder)
    except CannotLift as error:
        reply = {"refused": error.reason, "line": error.line, "path": error.path}
    except KernelwrightError as error:
        reply = {"refused": str(error)}
    with os.fdopen(pipe, "w") as out:
        out.write(json.dumps(reply))
        out.flush()
    os._exit(0)


def _answer(request: dict[str, Any], folder: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    path = os.path.join(folder, "kernel.py")
    with open(path, "w") as file:
        file.write(request["source"])
    language: Any = importlib.import_module(request["module"])
    tracer = Tracer()
    tempfile.tempdir = folder
    language.install(tracer, asdict(Target.load(DEFAULT_TARGET)))
    _close(folder, tuple(request["reads"]))
    shown = request["path"]
    own = path if not request["original"] else ""  # lines of a file that only stands for another one help nobody
    with language.context(calling=False):
        module = _guarded(lambda: _load(path), own, shown, "loading it raised")
    call, arguments, called = _entry(module, request, tracer, own, language.context)
    state = {name: t.detach().clone() for name, t in call.state_dict().items()} if isinstance(call, torch.nn.Module) else {}
    given = pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, arguments)
    with torch.no_grad(), language.context(calling=True), tracer:
        try:
            returned = _guarded(lambda: call(*arguments), own, shown, "calling it raised")
        except CannotLift as error:
            told = tracer.refusal or error
            raise CannotLift(told.reason, path=shown, line=error.line or told.line) from None
        if tracer.refusal is not None:
            raise CannotLift(tracer.refusal.reason, path=shown, line=tracer.refusal.line)
        trace = tracer.trace(returned)
    name = os.path.splitext(os.path.basename(shown))[0]
    results = tuple(leaf for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor))
    seen = Seen(
        trace,
        name,
        f"Lifted from {os.path.basename(shown)}.",
        shown,
        request["original"] or request["source"],
        given,
        state,
        results,
        language.EXECUTES,
    )
    try:
        if request.get("explain"):
            return _explained(language, seen) | called
        lifted = language.lifted(seen)
    except KernelwrightError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        raise CannotLift(f"its program could not be read ({type(error).__name__} at {where}: {error})", path=shown) from error
    return {"sketch": to_source(lifted.sketch), "notes": list(lifted.notes), **called}


def _explained(language: Any, seen: Seen) -> dict[str, Any]:
    """Formulas; where only a sketch is to be had, that."""
    from kernelwright.compiler.lift.explain import explained

    return explained(seen, language.follower(seen))


def _close(folder: str, reads: tuple[str, ...]) -> None:
    """The judge's sandbox around this process, as far as one process can close itself in."""
    cell = sandbox.Cell(mode="landlock", root="", folder=folder, uid=os.getuid(), readable=reads)
    if os.geteuid() == 0:
        os.chmod(folder, 0o777)
    sandbox.seal(cell)


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def _guarded(work: Callable[[], Any], path: str, shown: str, what: str) -> Any:
    """Foreign code's failures as one sentence with the line of its file."""
    try:
        return work()
    except KernelwrightError as error:
        if isinstance(error, CannotLift) and not error.line:
            raise CannotLift(error.reason, path=shown, line=_line(error, path)) from None
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()
        said = f": {reason[0]}" if reason else ""
        raise CannotLift(f"{what} {type(error).__name__}{said}", path=shown, line=_line(error, path)) from None


def _line(error: BaseException, path: str) -> int:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return int(frames[-1].lineno or 0) if frames else 0


# ---------------------------------------------------------------- what to call


def _entry(
    module: Any, request: dict[str, Any], tracer: Tracer, path: str, context: Callable[..., Any]
) -> tuple[Callable[..., Any], list[Any], dict[str, str]]:
    """The thing to call, and its arguments, whose memory the tracer knows; its name and what it was constructed with."""
    shown = request["path"]
    found = _chosen(module, request)
    state: dict[str, Any] | None = None
    given: list[Any] | None = None
    init: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
    if request["task"]:
        loaded = load_task(Task.from_source(**request["task"]))
        given = loaded.draw(1)[0]
        state = dict(loaded.construct(0).state_dict().items())
        init = (loaded.init_args, loaded.init_kwargs)
    elif request["init"] or hasattr(module, "get_init_inputs"):
        values = ast.literal_eval(request["init"]) if request["init"] else module.get_init_inputs()
        if isinstance(values, list) and len(values) == 2 and isinstance(values[0], list) and isinstance(values[1], dict):
            values, named = values
            init = (tuple(values), named)
        else:
            init = (tuple(values), {}) if isinstance(values, list | tuple) else ((), dict(values or {}))
    if request["inputs"]:
        given = _from_text(request["inputs"])
    elif given is None:
        if not hasattr(module, "get_inputs"):
            raise CannotLift("it says no inputs: give --task, or --inputs such as 'f32[128,512], f32[512]'", path=shown)
        seed_everything(1)
        given = list(_guarded(module.get_inputs, path, shown, "get_inputs raised"))
    call = found
    if isinstance(found, type):
        seed_everything(0)
        with context(calling=False), torch.no_grad():
            model = _constructed(found, init, path, shown)
        model = model.eval() if isinstance(model, torch.nn.Module) else model
        call = model
        _own_state(model, state, tracer, shown)
    _own_inputs(call, given, tracer)
    return (
        call,
        given,
        {"entry": str(getattr(found, "__name__", "")), "init": repr([list(init[0]), init[1]] if init[1] else list(init[0]))},
    )


def _constructed(found: Any, init: tuple[tuple[Any, ...], dict[str, Any]], path: str, shown: str) -> Any:
    try:
        return _guarded(lambda: found(*init[0], **init[1]), path, shown, "constructing it raised")
    except CannotLift as error:
        if "required positional argument" in error.reason and not any(init):
            missing = error.reason.rpartition("argument")[2].lstrip("s: ")
            raise CannotLift(
                f"{found.__name__} is constructed with {missing}: give a task, --init, or define get_init_inputs", path=shown
            ) from None
        raise


def _chosen(module: Any, request: dict[str, Any]) -> Any:
    shown = request["path"]
    if request["entry"]:
        if not hasattr(module, request["entry"]):
            raise CannotLift(f"there is no {request['entry']} in it", path=shown)
        return getattr(module, request["entry"])
    for name in ("ModelNew", "Model"):
        if hasattr(module, name):
            return getattr(module, name)
    tree = ast.parse(request["source"])
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    called = {
        n.func.id
        for f in functions
        for n in ast.walk(f)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id != f.name
    }
    skipped = ("get_inputs", "get_init_inputs", "main")
    launching = [
        f.name
        for f in functions
        if f.name not in called and f.name not in skipped and not f.name.startswith("test") and _launches(f)
    ]
    if not launching:
        launching = [f.name for f in functions if f.name not in skipped and not f.name.startswith("test") and _launches(f)]
    if not launching:
        raise CannotLift("it defines no ModelNew, and no function that launches a kernel", path=shown)
    if len(launching) > 1:
        raise CannotLift(f"several functions launch kernels ({', '.join(launching)}): say which one", path=shown)
    return getattr(module, launching[0])


def _launches(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(n, ast.Call)
        and (isinstance(n.func, ast.Subscript) or (isinstance(n.func, ast.Attribute) and n.func.attr in ("apply", "run")))
        for n in ast.walk(function)
    )


def _own_state(model: Any, state: dict[str, Any] | None, tracer: Tracer, path: str) -> None:
    """Parameters and buffers by their names in the state_dict; with a task they have to be those of its reference."""
    if not isinstance(model, torch.nn.Module):
        return
    own = dict(model.state_dict(keep_vars=True))
    for name, tensor in own.items():
        if not tensor.numel():
            continue
        if state is not None and (name not in state or tuple(state[name].shape) != tuple(tensor.shape)):
            raise CannotLift(f"its parameter {name} {list(tensor.shape)} is not one of the task's reference", path=path)
        tracer.own(tensor.detach(), "param", "p_" + re.sub(r"\W", "_", name), source=name)


def _own_inputs(call: Any, given: list[Any], tracer: Tracer) -> None:
    """Inputs by forward's names for them."""
    import inspect

    target = call.forward if isinstance(call, torch.nn.Module) else call
    try:
        names = [p.name for p in inspect.signature(target).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        names = []
    position = 0
    taken = set(tracer.buffers)
    for number, item in enumerate(given):
        leaves = pytree.tree_leaves(item)
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                base = names[number] if number < len(names) else f"x{number}"
                base = re.sub(r"\W", "_", base if len(leaves) == 1 else f"{base}{k}")
                name = (
                    base
                    if base not in taken and base not in {d.value for d in DType} and base not in ("inf", "nan")
                    else f"in_{base}"
                )
                taken.add(name)
                tracer.own(leaf, "input", name, source=str(position))
            else:
                tracer.notes.append(f"argument {position} is the number {leaf!r}: the sketch is for this value")
            position += 1


def _from_text(text: str) -> list[Any]:
    try:
        return drawn(text)
    except ConfigError as error:
        raise CannotLift(str(error)) from None


if __name__ == "__main__":
    main()
