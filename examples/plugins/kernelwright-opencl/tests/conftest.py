"""These tests need the plug-in installed (pip install --no-deps -e .), pyopencl, and a driver (PoCL makes one of the CPU)."""

from __future__ import annotations

import pytest

from kernelwright.compiler.language import installed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = _missing()
    for item in items:
        if missing:
            item.add_marker(pytest.mark.skip(reason=missing))


def _missing() -> str:
    if "opencl" not in installed():
        return "the plug-in is not installed: pip install --no-deps -e examples/plugins/kernelwright-opencl"
    try:
        import pyopencl
    except ImportError:
        return "pyopencl is not installed: pip install pyopencl"
    try:
        return "" if pyopencl.get_platforms() else "there is no OpenCL driver: apt install pocl-opencl-icd"
    except pyopencl.Error:
        return "there is no OpenCL driver: apt install pocl-opencl-icd"
