"""Servers of both dialects, over a real connection: answers, streams, failures that pass and failures that do not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from scripted_server import Reply, Server, serve
from sources import an_ask

pytest.importorskip("pydantic_ai", reason="servers need pydantic-ai (pip install 'kernelwright[llm]')")

from kernelwright.agents.models import Limits, Model, ModelError, failures, open_model
from kernelwright.core.errors import BudgetReached, ConfigError

Opened = tuple[Model, Server]
Open = Callable[..., Opened]

WHERE = {
    "url": lambda server: (f"{server.openai}:qwen2.5:7b", None),
    "openai": lambda server: ("openai:gpt-4o-mini", server.openai),
    "anthropic": lambda server: ("anthropic:claude-sonnet-4-6", server.url),
}


@pytest.fixture(params=["openai", "anthropic"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(dialect: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a model on a server that follows a script, in each dialect."""
    monkeypatch.setattr(failures, "FIRST_WAIT", 0.01)
    with ExitStack() as stack:

        def opening(*script: Reply, **limits: Any) -> Opened:
            server = stack.enter_context(serve(*script))
            spec, base_url = WHERE[dialect](server)
            model = open_model(spec, store=None, limits=Limits(**limits), base_url=base_url)
            stack.callback(model.close)
            return model, server

        yield opening


@pytest.mark.parametrize("dialect", list(WHERE))
@pytest.mark.parametrize("watched", [True, False])
def test_an_answer_with_its_tokens_and_its_price(opened: Open, dialect: str, watched: bool) -> None:
    model, server = opened(Reply("class ModelNew: ...", tokens=(1000, 200)))
    pieces: list[str] = []
    answer = model.ask(an_ask("softmax", max_tokens=777, temperature=0.5), pieces.append if watched else None)
    assert (answer.text, answer.tokens_in, answer.tokens_out, answer.finish) == ("class ModelNew: ...", 1000, 200, "stop")
    assert "".join(pieces) == (answer.text if watched else "")
    assert len(pieces) > 1 or not watched
    prices = {"url": None, "openai": 1000 * 0.15e-6 + 200 * 0.6e-6, "anthropic": 1000 * 3e-6 + 200 * 15e-6}
    assert answer.cost_usd == (pytest.approx(prices[dialect]) if prices[dialect] else None)
    sent = server.requests[0]
    assert (sent["max_tokens"], sent["temperature"], bool(sent.get("stream"))) == (777, 0.5, watched)
    text = str(sent)
    assert "You write kernels." in text
    assert "softmax" in text


@pytest.mark.parametrize("watched", [True, False])
def test_an_answer_that_was_cut_off_is_told_apart(opened: Open, watched: bool) -> None:
    model, _ = opened(Reply("class Mod", length=True))
    answer = model.ask(an_ask(), print if watched else None)
    assert (answer.text, answer.finish) == ("class Mod", "length")


@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_failure_that_passes_is_tried_again(opened: Open, status: int) -> None:
    model, server = opened(Reply(status=status, body=b'{"error": {"message": "later"}}'), Reply("good"), retries=1)
    assert model.ask(an_ask()).text == "good"
    assert len(server.requests) == 2


def test_the_server_says_how_long_to_wait(opened: Open) -> None:
    model, server = opened(Reply(status=429, headers={"Retry-After": "1"}, body=b"{}"), Reply("good"))
    assert model.ask(an_ask()).text == "good"
    assert server.times[1] - server.times[0] >= 1.0


def test_a_wait_longer_than_the_time_out_is_not_waited_for(opened: Open) -> None:
    model, server = opened(Reply(status=429, headers={"Retry-After": "3600"}, body=b"{}"), timeout_s=60)
    with pytest.raises(ModelError, match="asks to wait 3600 s"):
        model.ask(an_ask())
    assert len(server.requests) == 1


def test_a_server_that_never_recovers_is_one_sentence(opened: Open) -> None:
    model, server = opened(Reply(status=500, body=b"<html>\n<h1>oops</h1>\n</html>"), retries=2)
    with pytest.raises(ModelError, match=r"the server answered 500: .*oops.*\(3 tries\)") as caught:
        model.ask(an_ask())
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "words"), [(401, "refused the key"), (404, "does not know this model"), (400, "answered 400: no such thing")]
)
def test_a_refusal_is_not_tried_again(opened: Open, status: int, words: str) -> None:
    model, server = opened(Reply(status=status, body=b'{"error": {"message": "no such thing", "type": "x"}}'), retries=3)
    with pytest.raises(ModelError, match=words):
        model.ask(an_ask())
    assert len(server.requests) == 1


@pytest.mark.parametrize("watched", [True, False])
def test_no_answer_in_time_is_one_sentence(opened: Open, watched: bool) -> None:
    model, _ = opened(Reply(hold=600), retries=1, timeout_s=0.4)
    with pytest.raises(ModelError, match=r"no answer within 0\.4 s \(2 tries\)"):
        model.ask(an_ask("p" * 3000), print if watched else None)
    assert model.ledger.spent.tokens >= 2 * 900


def test_a_connection_that_breaks_off_is_tried_again(opened: Open) -> None:
    model, _ = opened(Reply("half of an answer", break_off=True), Reply("the whole answer"))
    answer = model.ask(an_ask("p" * 3000), print)
    assert answer.text == "the whole answer"
    paid = answer.tokens_in + answer.tokens_out
    assert model.ledger.spent.tokens > paid + 900, "what broke off is booked too"
    assert model.ask(an_ask()).text == "the whole answer"


@pytest.mark.parametrize(
    "garbage", [b"<html>hello</html>", b"{}", b'{"choices": []}', b'{"choices": 7, "content": 7}', b"\xff\x00", b"null"]
)
@pytest.mark.parametrize("watched", [True, False])
def test_garbage_is_a_model_error(opened: Open, garbage: bytes, watched: bool) -> None:
    model, _ = opened(Reply(body=garbage), retries=1)
    with pytest.raises(ModelError) as caught:
        model.ask(an_ask(), print if watched else None)
    assert "\n" not in str(caught.value)


def test_an_empty_answer_is_a_model_error_and_is_paid_for(opened: Open) -> None:
    model, _ = opened(Reply("  \n", tokens=(1000, 200)))
    with pytest.raises(ModelError, match="the answer is empty"):
        model.ask(an_ask())
    assert model.ledger.spent.tokens == 1200


def test_a_server_that_does_not_stream_is_asked_for_whole_answers(opened: Open) -> None:
    model, server = opened(Reply("whole", never_streams=True))
    pieces: list[str] = []
    assert model.ask(an_ask("a"), pieces.append).text == "whole"
    assert model.ask(an_ask("b"), pieces.append).text == "whole"
    assert "".join(pieces) == "wholewhole"
    assert [bool(sent.get("stream")) for sent in server.requests] == [True, False, False]


def test_a_server_that_does_not_count_tokens_gets_an_estimate(opened: Open) -> None:
    model, _ = opened(Reply("x" * 300, tokens=None))
    answer = model.ask(an_ask("y" * 3000))
    assert answer.tokens_in >= 700
    assert answer.tokens_out >= 70


def test_many_threads_ask_one_model(opened: Open) -> None:
    model, server = opened(Reply("good", hold=0.05), concurrency=3)
    with ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(lambda number: model.ask(an_ask(str(number)), lambda text: None).text, range(9)))
    assert answers == ["good"] * 9
    assert server.open_most <= 3


def test_what_the_callers_own_view_raises_is_the_callers(opened: Open) -> None:
    def broken(text: str) -> None:
        raise ZeroDivisionError

    model, server = opened(Reply("good"))
    with pytest.raises(ZeroDivisionError):
        model.ask(an_ask(), broken)
    assert len(server.requests) == 1


def test_closing_ends_what_waits(opened: Open) -> None:
    model, server = opened(Reply(hold=600))
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(model.ask, an_ask())
        while not server.requests:
            time.sleep(0.01)
        model.close()
        model.close()
        with pytest.raises(ModelError, match="was closed before it answered"):
            waiting.result(120)
    with pytest.raises(ModelError, match="was closed before it answered"):
        model.ask(an_ask())


@pytest.mark.parametrize("dialect", ["url"])
def test_the_limit_of_tokens_is_named_as_the_server_likes_it(opened: Open) -> None:
    refusal = b'{"error": {"message": "Unsupported parameter: max_tokens. Use max_completion_tokens instead."}}'
    model, server = opened(Reply(status=400, body=refusal), Reply("good"), retries=0)
    assert model.ask(an_ask("a")).text == "good"
    assert model.ask(an_ask("b")).text == "good"
    assert ["max_tokens" in sent for sent in server.requests] == [True, False, False]
    assert ["max_completion_tokens" in sent for sent in server.requests] == [False, True, True]


@pytest.mark.parametrize("dialect", ["openai"])
def test_a_temperature_that_is_not_accepted_is_left_out(opened: Open) -> None:
    model, server = opened(Reply(status=400, body=b'{"error": {"message": "temperature is fixed"}}'), Reply("good"), retries=0)
    assert model.ask(an_ask(temperature=0.3)).text == "good"
    assert ["temperature" in sent for sent in server.requests] == [True, False]


def test_nobody_there_is_one_sentence() -> None:
    model = open_model("http://127.0.0.1:9/v1:x", store=None, limits=Limits(retries=0))
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9/v1:x: the server cannot be reached"):
        model.ask(an_ask())
    model.close()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("http://localhost:8000", "names no model"),
        ("http://localhost:8000/v1", "names no model"),
        ("http://[::1]:8000/v1", "names no model"),
        ("https://me:secret-key@host/v1:x", "a key belongs into KERNELWRIGHT_API_KEY"),
        ("https://host/v1?key=secret-key:x", "a key belongs into KERNELWRIGHT_API_KEY"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_sentence(spec: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        open_model(spec, store=None, limits=Limits())
    assert "secret-key" not in str(caught.value)


def test_without_a_key_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        with pytest.raises(ModelError, match=f"there is no key; set {name}"):
            open_model(f"{name.split('_')[0].lower()}:some-model", store=None, limits=Limits())


def test_a_call_ends_when_the_runs_time_does_and_what_it_cost_is_counted(opened: Open) -> None:
    model, _ = opened(Reply("never", hold=60.0), retries=2, timeout_s=60.0)
    began = time.monotonic()
    with pytest.raises(BudgetReached, match="time was used up while the coder was being asked"):
        model.ask(an_ask(seconds=0.5))
    assert time.monotonic() - began < 30
    assert model.ledger.spent.calls == 1
    assert model.ledger.spent.tokens_in > 0
