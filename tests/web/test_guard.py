"""Requests that are none of the page's: other hosts, other sites, bodies without end, paths of this machine. None is answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from kernelwright.store import Store
from kernelwright.web.app import create_app
from kernelwright.web.guard import MOST_BODY

JOB = {"task": {"suite": "core/relu"}}


def test_a_name_that_is_not_ours_is_not_answered(client: TestClient) -> None:
    for host in ("evil.example", "testserver.evil.example", "testserver@evil.example", "", "evil.example:80", "[::1", "\xff"):
        assert client.get("/api/runs", headers={"Host": host.encode("latin-1")}).status_code == 421, host
        assert client.get("/", headers={"Host": host.encode("latin-1")}).status_code == 421, host
    assert client.get("/api/runs", headers={"Host": "testserver:8765"}).status_code == 200


def test_other_sites_can_change_nothing_and_read_nothing(app: FastAPI) -> None:
    with TestClient(app) as bare:
        assert bare.post("/api/jobs", json=JOB).status_code == 403, "a form can send no header of ours"
        ours = {"X-Kernelwright": "1"}
        for origin in ("https://evil.example", "null", "http://testserver.evil.example", "http://localhost:1"):
            assert bare.post("/api/jobs", json=JOB, headers={**ours, "Origin": origin}).status_code == 403, origin
        for site in ("cross-site", "same-site"):
            assert bare.get("/api/runs", headers={"Sec-Fetch-Site": site}).status_code == 403
        kind = {"Content-Type": "text/plain"}
        assert (
            bare.post("/api/command", content='{"task": {"suite": "core/relu"}}', headers={**ours, **kind}).status_code == 415
        )
        same = {**ours, "Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
        assert bare.post("/api/command", json=JOB, headers=same).status_code == 200
        assert "access-control-allow-origin" not in bare.get("/api/runs", headers={"Origin": "https://evil.example"}).headers


def test_bodies_are_bounded_while_they_arrive(client: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range((MOST_BODY >> 16) + 8):
            yield b" " * (1 << 16)

    assert client.post("/api/jobs", content=b"x" * (MOST_BODY + 1)).status_code == 413
    assert client.post("/api/jobs", content=endless(), headers={"Content-Type": "application/json"}).status_code == 413
    assert client.post("/api/jobs", json={"task": {"source": "x" * 1_100_000}}).status_code == 422


@pytest.mark.parametrize(
    "path",
    ["/assets/../index.html", "/assets/..%2f..%2fapp.py", "/assets/%2e%2e/app.py", "/assets//etc/passwd", "/assets/.hidden", "/etc/passwd",
     "/..%2f..%2f..%2fetc%2fpasswd", "/api/../../etc/passwd", "/assets/%00", "/api/reports/../../../etc/passwd"],
)  # fmt: skip
def test_no_path_of_this_machine_is_read(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert "root:" not in answer.text
    assert "create_app" not in answer.text
    assert answer.status_code in (200, 404, 422)
    if answer.status_code == 200:
        assert answer.text.startswith("<!doctype html>")


@pytest.mark.parametrize(
    "task",
    [{"suite": "../etc"}, {"suite": "/etc/passwd"}, {"suite": "core/../../x"}, {"name": "../x", "source": "x"}, {"path": "/etc/passwd"},
     {"source": "x", "class_name": "a b"}, {"suite": "core/nobody_has_this"}, {"source": "syntax error here"}, {"source": ""},
     {"source": "\x00"}],
)  # fmt: skip
def test_no_task_by_a_path(client: TestClient, task: dict[str, str]) -> None:
    answer = client.post("/api/jobs", json={"task": task})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "model",
    ["mailbox:/tmp/x", "replay:/etc/passwd", "http://evil.example/v1:m", "https://evil.example:m", "openai:", "openai:../x", "openai:a b",
     "openai:x\nHost: y", "file:/etc/passwd", "anthropic:" + "x" * 100],
)  # fmt: skip
def test_no_model_by_an_address_or_a_folder(client: TestClient, model: str) -> None:
    assert client.post("/api/command", json={**JOB, "model": model}).status_code in (400, 422)


def test_what_is_answered_may_run_nothing_else(client: TestClient) -> None:
    for path in ("/", "/api/runs", "/nowhere", "/api/nowhere"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in client.get("/api/runs").headers


@pytest.fixture
def guarded(store: Store, tmp_path: Path) -> Iterator[TestClient]:
    made = create_app(store, folder=tmp_path / "jobs", hosts=["testserver"], token="0123456789abcdef0123")
    with TestClient(made, headers={"X-Kernelwright": "1"}) as opened:
        yield opened


def test_an_open_address_asks_for_its_token(guarded: TestClient) -> None:
    assert guarded.get("/api/runs").status_code == 401
    assert guarded.get("/api/live").status_code == 401
    assert guarded.get("/api/openapi.json").status_code == 401
    assert guarded.get("/").status_code in (200, 404), "the page itself is no secret: it asks for the token"
    assert guarded.post("/api/login", json={"token": "0123456789abcdef0124"}).status_code == 401
    assert guarded.post("/api/login", json={"token": "é" * 30}).status_code == 401
    assert guarded.get("/api/runs", headers={"Authorization": "Bearer 0123456789abcdef0123"}).status_code == 200
    answer = guarded.post("/api/login", json={"token": "0123456789abcdef0123"})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert guarded.get("/api/runs").status_code == 200
