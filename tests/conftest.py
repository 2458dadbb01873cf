"""Runs that tests begin are kept in a folder of their own, never in the user's store."""

from __future__ import annotations

import os
import sys
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is imported; each worker of a parallel run has its own, so that none waits for another's writes."""
    folder = tempfile.TemporaryDirectory(prefix="kernelwright-data-")
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_DATA_HOME"] = folder.name


@pytest.fixture(autouse=True)
def _places_of_this_cache() -> None:
    """Where libraries lie is remembered for a process's life, since sandboxed code cannot look; some tests have a cache of their own."""
    from kernelwright.core.folders import cache_folder

    global _cache
    if (now := str(cache_folder())) != _cache:
        _cache = now
        for name, functions in _PLACES.items():
            if module := sys.modules.get(name):
                for function in functions:
                    getattr(module, function).cache_clear()


_cache = ""
_PLACES = {
    "kernelwright.gpu.build": ("runtime_folder",),
    "kernelwright.gpu.host.library": ("runtime_library",),
    "kernelwright.compiler.offdevice.cuda_build": ("cudart",),
}
