"""A store with runs, and the application on it as a browser finds it: its own header, its own host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from kernelwright.store import Store
from kernelwright.web.app import create_app
from tests.web import sample

OURS = {"X-Kernelwright": "1"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def app(store: Store, tmp_path: Path) -> FastAPI:
    sample.tuned_run(store)
    return create_app(
        store, place=str(tmp_path / "store"), folder=tmp_path / "jobs", reports=[tmp_path / "reports"], hosts=["testserver"]
    )


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, headers=OURS, raise_server_exceptions=False) as opened:
        app.state.here.queue.stop()  # tests of routes start no processes; those of the queue make their own
        yield opened
