"""Servers of the OpenAI and Anthropic dialects, through pydantic-ai. In: an Ask. Out: an Answer, after retries, or ModelError.

All calls of one Remote run on one event loop in a thread of its own, so that connections are shared; `fetch` waits in the caller's
thread and hands pieces of text to the caller there. Retries are made here and not in the clients below: one place that honours
Retry-After and knows when to give up.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal
from urllib.parse import urlsplit

from kernelwright.agents.models.ask import Answer, Ask, Call, Tool
from kernelwright.agents.models.failures import Failure, pause, understand
from kernelwright.agents.models.limits import Limits, estimate
from kernelwright.agents.models.prices import PriceList
from kernelwright.agents.models.secrets import find_key
from kernelwright.core.errors import BudgetReached, ConfigError, ModelError, ToolMissing

URL_SPEC = re.compile(r"(https?://(?:\[[^\]]*\]|[^/:\[]+)(?::\d+)?+(?:/[^:]*)?):(.+)")
OWN_KEY = "KERNELWRIGHT_API_KEY"
"""The key for servers that are not a provider's own."""

NO_KEY = "no-key"
"""Sent where no key is set: local servers take anything, and the clients insist on something."""

Dialect = Literal["openai", "anthropic"]
Give = Callable[[str], None]


def open_remote(spec: str, limits: Limits, base_url: str | None) -> Remote:
    """The server that a spec names. Nothing is sent yet, but a missing key or package is said here."""
    if spec.startswith("http"):
        url, name = _split(spec)
        return Remote(spec, "openai", name, url, find_key(OWN_KEY), PriceList(name, url=url), limits)
    kind, _, name = spec.partition(":")
    dialect: Dialect = "anthropic" if kind == "anthropic" else "openai"
    variable = f"{dialect.upper()}_API_KEY"
    if base_url:
        _refuse_userinfo(base_url)
        key = find_key(OWN_KEY)  # never the provider's key: a configuration file must not be able to send it elsewhere
    else:
        key = find_key(variable)
        base_url = os.environ.get(f"{dialect.upper()}_BASE_URL")
        if not key:
            raise ModelError(f"{spec}: there is no key; set {variable} in the environment, or keep it in the keyring")
    title = f"{spec} at {base_url.rstrip('/')}" if base_url else spec
    return Remote(title, dialect, name, base_url, key, PriceList(name, provider=dialect), limits)


def _split(spec: str) -> tuple[str, str]:
    """URL and model of `http://host:8000/v1:NAME`; the name may itself have colons and slashes."""
    _refuse_userinfo(spec)
    found = URL_SPEC.fullmatch(spec)
    if not found:
        raise ConfigError(f"model {spec!r} names no model; write for example http://localhost:8000/v1:NAME")
    return found[1].rstrip("/"), found[2]


def _refuse_userinfo(url: str) -> None:
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(f"the URL of {parts.hostname} carries a user or a query; a key belongs into {OWN_KEY}")


class _TimeUp(Exception):
    """The run's own time is over, not the call's."""

    def __init__(self, received: int) -> None:
        super().__init__(received)
        self.received = received


class Remote:
    """A Source that is a server."""

    def __init__(
        self, title: str, dialect: Dialect, model: str, url: str | None, key: str | None, price: PriceList, limits: Limits
    ) -> None:
        self.name = title
        self.price = price
        self.tools = limits.tools
        self._limits = limits
        self._old_field = dialect == "openai" and url is not None
        """OpenAI renamed max_tokens to max_completion_tokens; most servers that follow its dialect know the old name only."""
        self._refused: set[str] = set()
        """Settings that this server was found not to accept."""
        self._streams = True
        self._closed = threading.Event()
        self._client, self._http = _client(dialect, model, url, key or NO_KEY, self._see)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name=f"model {model}", daemon=True).start()

    def __repr__(self) -> str:
        return f"<server {self.name}>"

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def fetch(self, ask: Ask, cap: int, on_text: Give | None, book: Callable[[Answer], None]) -> Answer:
        self._check_open()
        started = time.monotonic()
        failure = Failure("it was not asked")
        attempt = 0
        while attempt <= self._limits.retries:
            if attempt:
                self._sleep(pause(attempt - 1, failure))
            call = self._call(ask, cap, on_text, book)
            left = None if ask.seconds is None else ask.seconds - (time.monotonic() - started)
            try:
                response, received, error = self._wait(call, on_text, left)
            except _TimeUp as stopped:
                book(self._estimate(ask, stopped.received))
                raise BudgetReached(f"the run's time was used up while the {ask.role} was being asked") from None
            if error is None:
                return self._answer(ask, response, time.monotonic() - started, book)
            failure = understand(error, self._limits.timeout_s)
            if received or failure.worked:
                book(self._estimate(ask, received))
            if failure.adapt and failure.adapt not in self._refused:
                self._refused.add(failure.adapt)  # this try does not count: nothing was thought about yet
                continue
            attempt += 1
            if not failure.passing:
                raise ModelError(f"{self.name}: {failure.sentence}")
            if failure.wait > self._limits.timeout_s:
                break
        tries = f" ({attempt} tries)" if attempt > 1 else ""
        later = f"; it asks to wait {failure.wait:.0f} s" if failure.wait > self._limits.timeout_s else ""
        raise ModelError(f"{self.name}: {failure.sentence}{later}{tries}")

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop)

    async def _shut(self) -> None:
        for task in asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}:
            task.cancel()
        await self._http.aclose()
        self._loop.stop()

    def _wait(self, call: Callable[[Give], Any], on_text: Give | None, left: float | None) -> tuple[Any, int, Exception | None]:
        """Run a coroutine on the loop; pass its text on in this thread; let go when the program ends. Its result, how many letters
        of text came, and its error: what the caller's own `on_text` raises is the caller's, and passes through."""
        pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        future: Future[Any] = asyncio.run_coroutine_threadsafe(call(pieces.put), self._loop)
        future.add_done_callback(lambda done: pieces.put(None))
        received = 0
        end = None if left is None else time.monotonic() + max(left, 0.0)
        try:
            while True:
                if end is not None and time.monotonic() >= end:
                    raise _TimeUp(received)
                try:
                    piece = pieces.get(timeout=0.5 if end is None else min(0.5, max(0.01, end - time.monotonic())))
                except queue.Empty:
                    self._check_open()
                    continue
                if piece is None:
                    break
                received += len(piece)
                if on_text:
                    on_text(piece)
            if future.cancelled():
                raise ModelError(f"{self.name} was closed before it answered")
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            return (None, received, error) if error else (future.result(), received, None)
        finally:
            future.cancel()

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._closed.wait(min(left, 0.5))
            self._check_open()

    def _check_open(self) -> None:
        # The main thread is gone when the program ends by Ctrl-C: a waiting worker must not keep it alive.
        if self._closed.is_set() or not threading.main_thread().is_alive():
            raise ModelError(f"{self.name} was closed before it answered")

    def _call(self, ask: Ask, cap: int, on_text: Give | None, book: Callable[[Answer], None]) -> Callable[[Give], Any]:
        """The coroutine of one attempt, still to be given where its text goes."""
        from pydantic_ai.direct import model_request, model_request_stream

        messages = _messages(ask)
        settings = self._settings(ask, cap)
        offered = _offered(ask) if "tools" not in self._refused else None

        async def whole(give: Give) -> Any:
            async with asyncio.timeout(self._limits.timeout_s):
                return await model_request(self._client, messages, model_settings=settings, model_request_parameters=offered)

        async def streamed(give: Give) -> Any:
            async with (
                asyncio.timeout(self._limits.timeout_s),
                model_request_stream(
                    self._client, messages, model_settings=settings, model_request_parameters=offered
                ) as stream,
            ):
                async for event in stream:
                    if text := _text(event):
                        give(text)
                return stream.get()

        async def either(give: Give) -> Any:
            if on_text and self._streams:
                try:
                    response = await streamed(give)
                except Exception:
                    if self._streams:
                        raise
                else:
                    if response.finish_reason is None:
                        # Broken off, or a server that does not say how it ended: only a whole answer can be trusted.
                        self._streams = False
                        if response.text or response.tool_calls:
                            book(self._counted(ask, response, response.text or "", 0.0))
                    if self._streams:
                        return response
            response = await whole(give)
            if response.text:
                give(response.text)
            return response

        return either

    def _settings(self, ask: Ask, cap: int) -> Any:
        settings: dict[str, Any] = {"max_retries": 0}
        if self._old_field != ("max_tokens" in self._refused):
            settings["extra_body"] = {"max_tokens": cap}
        else:
            settings["max_tokens"] = cap  # under the name that the dialect has for it today
        if ask.temperature is not None and "temperature" not in self._refused:
            settings["temperature"] = ask.temperature
        return settings

    async def _see(self, response: Any) -> None:
        """Some servers answer a request for a stream with one whole answer; the clients would read nothing from it."""
        asked = b'"stream":true' in response.request.content.replace(b" ", b"")
        if asked and response.status_code == 200 and "application/json" in response.headers.get("content-type", ""):
            self._streams = False

    def _answer(self, ask: Ask, response: Any, seconds: float, book: Callable[[Answer], None]) -> Answer:
        answer = self._counted(ask, response, response.text or "", seconds)
        declined = response.finish_reason in ("content_filter", "error")
        if (answer.text.strip() or answer.calls) and not declined:
            return answer
        book(answer)
        if declined:
            raise ModelError(f"{self.name}: the model declined to answer ({response.finish_reason})")
        why = " before its thoughts came to an end" if answer.finish == "length" else ""
        raise ModelError(f"{self.name}: the answer is empty{why}")

    def _estimate(self, ask: Ask, letters: int) -> Answer:
        """What a try that broke off has cost, as far as can be told: its prompt, and the text that had come."""
        tokens_in, tokens_out = estimate(ask.letters), estimate(letters)
        return Answer("", tokens_in, tokens_out, self.price(tokens_in, tokens_out), 0.0)

    def _counted(self, ask: Ask, response: Any, text: str, seconds: float) -> Answer:
        finish: Literal["stop", "length"] = "length" if response.finish_reason == "length" else "stop"
        usage = response.usage
        tokens_in = usage.input_tokens or estimate(ask.letters)
        tokens_out = usage.output_tokens or estimate(len(text))
        told = usage.input_tokens and usage.output_tokens
        cost = self.price.of(usage) if told else self.price(tokens_in, tokens_out)
        return Answer(text, tokens_in, tokens_out, cost, seconds, finish, calls=_calls(response))


def _messages(ask: Ask) -> list[Any]:
    """The question, and what was said and called since, as the clients want it."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart

    instructions = ask.system or None
    messages: list[Any] = [ModelRequest.user_text_prompt(ask.user, instructions=instructions)]
    for one in ask.exchanges:
        said: list[Any] = [TextPart(one.text)] if one.text.strip() else []
        said += [ToolCallPart(call.tool, call.given, call.id) for call in one.calls]
        messages.append(ModelResponse(said))
        results = [ToolReturnPart(call.tool, result, call.id) for call, result in zip(one.calls, one.results, strict=True)]
        messages.append(ModelRequest(results, instructions=instructions))
    return messages


def _offered(ask: Ask) -> Any:
    """The tools of a question as the clients want them; None where there are none."""
    if not ask.tools:
        return None
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    def schema(tool: Tool) -> dict[str, Any]:
        properties = {name: {"type": "string", "description": about} for name, about in tool.parameters}
        return {"type": "object", "properties": properties, "required": list(properties)}

    made = [ToolDefinition(name=tool.name, description=tool.about, parameters_json_schema=schema(tool)) for tool in ask.tools]
    return ModelRequestParameters(function_tools=made)


def _calls(response: Any) -> tuple[Call, ...]:
    """The calls of a response. Arguments that are no object of texts arrive as what they are: the tool says what is missing."""
    calls = []
    for part in response.tool_calls:
        try:
            given = part.args_as_dict()
        except (ValueError, AssertionError):
            given = {}
        pairs = tuple((str(name), value if isinstance(value, str) else json.dumps(value)) for name, value in given.items())
        calls.append(Call(part.tool_call_id, part.tool_name, pairs))
    return tuple(calls)


def _text(event: Any) -> str:
    """The new text of a stream's event, if it has any; thoughts are not part of an answer."""
    if event.event_kind == "part_start":
        part = event.part
        return part.content if part.part_kind == "text" else ""
    if event.event_kind == "part_delta" and event.delta.part_delta_kind == "text":
        return str(event.delta.content_delta)
    return ""


def _client(dialect: Dialect, model: str, url: str | None, key: str, see: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The client of pydantic-ai and the connection pool below it."""
    try:
        from pydantic_ai.exceptions import CostCalculationFailedWarning, CostNotFoundWarning, UnsupportedSettingWarning
        from pydantic_ai.models import create_async_httpx2_client

        if dialect == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider
        else:
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai import OpenAIProvider
    except ImportError:
        raise ToolMissing("pydantic-ai", "language models", "pip install 'kernelwright[llm]'") from None
    for noise in (CostCalculationFailedWarning, CostNotFoundWarning, UnsupportedSettingWarning):
        warnings.simplefilter("ignore", noise)  # a setting that a model ignores, or has no price, is dealt with here
    http = create_async_httpx2_client()
    http.event_hooks = {"response": [see]}
    if dialect == "anthropic":
        return AnthropicModel(model, provider=AnthropicProvider(api_key=key, base_url=url, http_client=http)), http
    return OpenAIChatModel(model, provider=OpenAIProvider(api_key=key, base_url=url, http_client=http)), http
