"""A key goes to the server it is for, and nowhere else: not to disk, not into an error, a traceback or a view."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripted_server import Reply, serve
from sources import an_ask

from kernelwright.agents.models import Limits, open_model, secrets
from kernelwright.core.errors import ModelError

KEY = "sk-test-0123456789-abcdefghij"


def test_a_key_that_the_server_echoes_appears_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pydantic_ai", reason="servers need pydantic-ai (pip install 'kernelwright[llm]')")
    pytest.importorskip("sqlalchemy", reason="memory needs the store (pip install 'kernelwright[store]')")
    from kernelwright.store import Store

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    refusal = f'{{"error": {{"message": "wrong key {KEY} in {{}}"}}}}'.encode()
    with serve(Reply(f"here is {KEY}!"), Reply(status=401, body=refusal), Reply(status=500, body=refusal)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai)
        with Store.open(tmp_path / "store") as store:
            model = open_model("openai:gpt-4o", store=store, limits=Limits(retries=0), record=tmp_path / "record.jsonl")
            pieces: list[str] = []
            answer = model.ask(an_ask(f"the user wrote {KEY} into the task"), pieces.append)
            told = [answer.text, "".join(pieces), repr(model), repr(store), repr(answer)]
            for user in ("unauthorised", "broken"):
                with pytest.raises(ModelError) as caught:
                    model.ask(an_ask(user))
                error = caught.value
                told.append(str(error))
                assert error.__traceback__ is not None
                beyond_this_test = error.__traceback__.tb_next
                told += traceback.TracebackException(ModelError, error, beyond_this_test, capture_locals=True).format()
                assert error.__cause__ is None
                assert error.__context__ is None
            model.close()
        assert all(headers["authorization"] == f"Bearer {KEY}" for headers in server.headers)
        assert KEY not in str(server.requests)
    said = capfd.readouterr()
    assert answer.text == "here is [secret]!" == "".join(pieces)
    assert KEY not in "".join([*told, said.out, said.err])
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) >= 3
    for path in kept:
        assert KEY.encode() not in path.read_bytes(), path


def test_a_providers_key_is_not_sent_to_a_server_that_a_configuration_names(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pydantic_ai", reason="servers need pydantic-ai (pip install 'kernelwright[llm]')")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("KERNELWRIGHT_API_KEY", "the-key-for-this-server")
    with serve(Reply("good")) as server:
        for spec, base_url in (("openai:x", server.openai), (f"{server.openai}:x", None)):
            model = open_model(spec, store=None, limits=Limits(), base_url=base_url)
            model.ask(an_ask())
            model.close()
        assert [headers["authorization"] for headers in server.headers] == ["Bearer the-key-for-this-server"] * 2


def test_every_secret_of_the_environment_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok-abcdefgh")
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2hunter2")
    monkeypatch.setenv("SHORT_KEY", "1")
    assert secrets.Redactor().clean("tok-abcdefgh and hunter2hunter2, 11") == "[secret] and [secret], 11"


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_in_a_stream_no_piece_of_a_key_comes_through(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    text = f"before {KEY} between {KEY}{KEY[:9]} after"
    heard: list[str] = []
    stream = secrets.Redactor().stream(heard.append)
    for start in range(0, len(text), size):
        stream.feed(text[start : start + size])
    stream.end()
    assert "".join(heard) == f"before [secret] between [secret]{KEY[:9]} after"


def test_a_key_may_come_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    kept = {("kernelwright", "OPENAI_API_KEY"): "from-the-keyring"}
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda *name: kept.get(name)))
    assert secrets.find_key("OPENAI_API_KEY") == "from-the-keyring"
    assert secrets.Redactor().clean("it is from-the-keyring") == "it is [secret]"
    assert secrets.find_key("NOBODY_HAS_THIS_KEY") is None
    secrets._read.discard("from-the-keyring")


def test_a_keyring_that_fails_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*name: str) -> str:
        raise RuntimeError("locked")

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=locked))
    assert secrets.find_key("OPENAI_API_KEY") is None
