"""Requests made from our own OpenAPI description, wrong ones among them, to a real server: no answer is an internal error, or one that
the description lacks."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from kernelwright.store import Store
from kernelwright.web.app import create_app
from tests.web import sample
from tests.web.conftest import OURS

STREAM = "/api/live"  # it never ends


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("served")
    with Store.open(place / "store") as store:
        sample.tuned_run(store)
        app = create_app(store, place=str(place / "store"), folder=place / "jobs", reports=[place])
        app.state.here.queue.start = lambda: None  # nothing that is asked for here begins
        bound = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{bound.getsockname()[1]}/api/openapi.json")
        server.should_exit = True
        thread.join(timeout=20)


def test_every_answer_is_a_described_one(described: Any) -> None:
    seen = set()
    for found in described.exclude(path=STREAM).get_all_operations():
        operation = found.ok()
        seen.add(operation.label)

        @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def asked(case: schemathesis.Case) -> None:
            # a text that fits the schema need not be Python
            case.call_and_validate(headers=OURS, excluded_checks=[positive_data_acceptance])

        asked()
    assert {"GET /api/runs", "POST /api/jobs", "POST /api/questions/{kind}"} & seen, seen
