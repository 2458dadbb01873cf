"""`kernelwright optimize model.py:Net`: a whole model, accepted only if it is faster end to end; report.md, report.json, a patch."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelwright.cli.options import AsJson


def optimize_command(
    spec: Annotated[str, typer.Argument(metavar="MODEL", help="model.py:Net, or a file with Model and get_inputs.")],
    inputs: Annotated[
        str, typer.Option(help='What it is called with: "f32[8,3,64,64], i64[8] < 100"; else get_inputs().')
    ] = "",
    init: Annotated[str, typer.Option(help='Constructor arguments: "64, bias=False"; else get_init_inputs().')] = "",
    out: Annotated[Path, typer.Option(help="Folder for the report and the patch.")] = Path("kernelwright-out"),
    budget: Annotated[float, typer.Option(min=1, help="Seconds for designs, builds and races of each graph.")] = 300.0,
    designs: Annotated[int, typer.Option(min=1, max=16, help="Designs of each piece that are raced.")] = 2,
    apply: Annotated[bool, typer.Option("--apply", help="Write a module that patches the class when it is imported.")] = False,
    as_json: AsJson = False,
) -> int:
    """Make a whole model faster. Exit code 0: it is, end to end; 1: it is left as it is."""
    from kernelwright.api.optimization import optimize
    from kernelwright.api.patch import write_patch
    from kernelwright.core import config
    from kernelwright.core.task.task import split_spec

    path, class_name = split_spec(spec)
    model, given = _loaded(path, class_name, inputs, init)
    made = optimize(
        model,
        given,
        budget=budget,
        designs=designs,
        store=config.load({}).settings.store,
        out=out,
        name=class_name,
    )
    patch = None
    if apply and made.accepted and made.outcome is not None:
        patch = write_patch(out, path, class_name, f"{made.outcome.gain:.2f}x end to end")
    if as_json:
        told = {key: value for key, value in made.data().items() if key != "graphs"}
        print(json.dumps({"report": str(out / "report.md"), "patch": str(patch) if patch else None, **told}))
    else:
        gain = f" ({made.outcome.gain:.2f}x [{made.outcome.low:.2f}, {made.outcome.high:.2f}])" if made.outcome else ""
        print(f"{class_name}: {made.why}{gain}")
        print(made.explanation)
        print(f"report: {out / 'report.md'}")
        if patch is not None:
            print(f"patch: {patch} (import it; undo with {patch.stem}.undo())")
    return 0 if made.accepted else 1


def _loaded(path: Path, class_name: str, inputs: str, init: str) -> tuple[Any, list[Any]]:
    """The model in evaluation mode, and what it is called with."""
    import torch

    from kernelwright.core.errors import ConfigError, TaskError
    from kernelwright.core.task.input_text import drawn
    from kernelwright.core.task.task import read_text

    read_text(path)
    known = importlib.util.spec_from_file_location(path.stem, path)
    if known is None or known.loader is None:
        raise TaskError(path, "this is no Python file")
    module = importlib.util.module_from_spec(known)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    torch.manual_seed(0)
    try:
        known.loader.exec_module(module)
        found = getattr(module, class_name, None)
        if found is None:
            raise TaskError(path, f"no class {class_name} is defined in it")
        values, named = _arguments(init)
        if not init and hasattr(module, "get_init_inputs"):
            values = list(module.get_init_inputs())
        model = found(*values, **named)
        given = drawn(inputs) if inputs else list(module.get_inputs()) if hasattr(module, "get_inputs") else None
    except (ConfigError, TaskError):
        raise
    except Exception as error:
        raise TaskError(path, f"it cannot be run: {type(error).__name__}: {str(error)[:200]}") from error
    if given is None:
        raise ConfigError(f'{path} has no get_inputs: say what {class_name} is called with, such as --inputs "f32[8,64]"')
    if not isinstance(model, torch.nn.Module):
        raise TaskError(path, f"{class_name} is no torch.nn.Module")
    model = model.eval()
    try:
        with torch.no_grad():
            model(*given)
    except Exception as error:
        raise TaskError(path, f"{class_name} refuses these inputs: {(str(error).splitlines() or [''])[0][:200]}") from error
    return model, given


def _arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    from kernelwright.core.errors import ConfigError

    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        return [ast.literal_eval(a) for a in call.args], {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise ConfigError(f'--init takes literal arguments, such as "64, bias=False"; not {text!r}') from None
