"""`kernelwright task new`: a starter file; a task from a function or class that exists (`--from`); a task from prose (`--model`).

What was made is loaded, run and checked against null candidates before it is written, and shown. A file is never overwritten.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelwright.judge.describe import Description

STARTER = '''"""What to compute, in PyTorch: `Model` is the reference, `get_inputs` draws what it is called with."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(1024, 512)]


def get_init_inputs() -> list[int]:
    """The arguments of Model's constructor."""
    return [512]
'''


def new_task(
    subject: str | None, *, model: str | None, source: str | None, inputs: str, init: str, out: Path | None, as_json: bool
) -> int:
    """Which of the three it is, by what was given."""
    from kernelwright.core import config
    from kernelwright.core.errors import ConfigError

    if source is not None:
        place = out or (Path(subject) if subject else Path(f"{_slug(source.rpartition(':')[2])}_task.py"))
        return _from_code(source, inputs, init, _free(place), as_json)
    assert subject is not None
    if subject.endswith(".py") and model is None:
        return _starter(_free(out or Path(subject)), as_json)
    spec = config.load({"model": model}).settings.model
    if spec == "builtin":
        raise ConfigError(
            f"{subject[:40]!r} is prose, which takes a model to read (--model); without one, name a FILE.py or use --from"
        )
    return _from_prose(subject, spec, _free(out or Path(f"{_slug(subject)}.py")), as_json)


def _starter(path: Path, as_json: bool) -> int:
    _write(path, STARTER)
    print(json.dumps({"written": str(path)}) if as_json else f"{path} written; look at it with: kernelwright task {path}")
    return 0


def _from_code(spec: str, inputs: str, init: str, path: Path, as_json: bool) -> int:
    from kernelwright.agents.task_from_code import task_from
    from kernelwright.core.task import Task
    from kernelwright.judge.describe import describe

    text = task_from(spec, inputs, init)
    description = describe(Task.from_source(text, path=str(path)))
    return _show(path, text, description, as_json)


def _from_prose(prose: str, spec: str, path: Path, as_json: bool) -> int:
    from contextlib import ExitStack

    from kernelwright.agents.models import Limits, open_model
    from kernelwright.agents.task_writer import write_task
    from kernelwright.cli.progress import watching
    from kernelwright.core import config
    from kernelwright.judge.servers import judge_server
    from kernelwright.store import Store

    settings = config.load().settings
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(settings.store or None))
        model = open_model(spec, store=store, limits=Limits.of(settings), base_url=settings.base_url or None)
        stack.callback(model.close)
        server = stack.enter_context(judge_server())
        observer = stack.enter_context(watching(path.stem))
        observer.say(f"asking {model.name} for a task")
        written = write_task(prose, model, server, observer.text)
    return _show(path, written.source, written.description, as_json)


def _show(path: Path, text: str, description: Description, as_json: bool) -> int:
    """Write the file and show it with what the judge knows of it."""
    _write(path, text)
    if as_json:
        print(json.dumps({"written": str(path), **description.as_json()}))
        return 0
    from rich.console import Console
    from rich.syntax import Syntax

    from kernelwright.cli.task import task_panel

    console = Console()
    console.print(Syntax(text, "python", word_wrap=True, background_color="default"))
    console.print(task_panel(path.stem, description))
    console.print(f"{path} written", highlight=False, markup=False)
    return 0


def _slug(text: str) -> str:
    return "_".join(re.findall(r"[a-z0-9]+", text.lower())[:6]) or "task"


def _free(path: Path) -> Path:
    from kernelwright.core.errors import ConfigError

    if path.exists():
        raise ConfigError(f"{path} exists already and is not overwritten")
    return path


def _write(path: Path, text: str) -> None:
    from kernelwright.core.errors import ConfigError

    try:
        path.write_text(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
