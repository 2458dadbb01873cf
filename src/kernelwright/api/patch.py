"""A class of the user's runs on our kernels, with a line to undo it: what the module that `optimize --apply` writes does.

In: a class with `forward`. Out: a function that puts its own `forward` back. Calls that need gradients keep the old one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelwright.core.errors import ConfigError

_TEXT = '''"""{name} of {path} runs on Kernelwright's kernels where they were found to be faster ({gain}).

Import this module once in your program, anywhere before the model is called. Nothing of your source is changed.
To undo: remove the import, or call `{stem}.undo()`.
"""

from kernelwright.api.patch import patch

from {module} import {name}

undo = patch({name})
'''


def patch(cls: type) -> Callable[[], None]:
    """Puts the torch.compile backend before the class's `forward`; calls the returned function to undo that."""
    import torch

    own = cls.__dict__.get("forward")
    if own is None:
        raise ConfigError(f"{cls.__name__} has no forward of its own to patch")
    compiled = torch.compile(own, backend="kernelwright")

    def forward(self: Any, *args: Any, **named: Any) -> Any:
        run = own if torch.is_grad_enabled() else compiled
        return run(self, *args, **named)

    forward.__wrapped__ = own  # type: ignore[attr-defined]
    cls.forward = forward  # type: ignore[attr-defined]

    def undo() -> None:
        if cls.__dict__.get("forward") is forward:
            cls.forward = own  # type: ignore[attr-defined]

    return undo


def write_patch(folder: Path, source: Path, class_name: str, gain: str) -> Path:
    """The module that patches a class when it is imported."""
    stem = f"fast_{source.stem}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{stem}.py"
    file.write_text(_TEXT.format(name=class_name, path=source.name, module=source.stem, stem=stem, gain=gain))
    return file
