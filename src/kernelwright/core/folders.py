"""Where Kernelwright keeps its files: one place decides, so that nothing is scattered over the disk."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(*parts: str) -> Path:
    """For what can be made again: under $XDG_CACHE_HOME (or ~/.cache); made on first use by whoever writes into it."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root).joinpath("kernelwright", *parts)


def data_folder(*parts: str) -> Path:
    """For what was paid for and must be kept, such as the store: under $XDG_DATA_HOME (or ~/.local/share)."""
    root = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(root).joinpath("kernelwright", *parts)
