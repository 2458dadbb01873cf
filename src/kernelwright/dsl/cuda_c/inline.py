"""`torch.utils.cpp_extension.load_inline` for CUDA sources, answered by the emulator."""

from __future__ import annotations


def install() -> None:
    """Nothing yet."""
