"""Where Kernelwright keeps what it can make again: one place decides, so that nothing is scattered over the disk."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(*parts: str) -> Path:
    """A folder under $XDG_CACHE_HOME (or ~/.cache); made on first use by whoever writes into it."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root).joinpath("kernelwright", *parts)
