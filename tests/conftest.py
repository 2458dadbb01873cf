"""Runs that tests begin are kept in a folder of their own, never in the user's store."""

from __future__ import annotations

import os
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is imported; each worker of a parallel run has its own, so that none waits for another's writes."""
    folder = tempfile.TemporaryDirectory(prefix="kernelwright-data-")
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_DATA_HOME"] = folder.name
