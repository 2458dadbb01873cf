"""Kernelwright: PyTorch in; a verified, faster kernel out."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_OFFERED = {
    **dict.fromkeys(("explain", "export", "optimize", "record_shapes", "use", "wait"), "kernelwright.api"),
    "simulated": "kernelwright.compiler.backends.triton.simulated",
}
"""What the package offers to a program, and where it is; imported when first used."""


def __getattr__(name: str) -> Any:
    if name in _OFFERED:
        import importlib

        return getattr(importlib.import_module(_OFFERED[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
