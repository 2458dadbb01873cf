"""What went wrong with a call, and what to do: try again (when?), or one sentence for the user. In: exceptions of pydantic-ai."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from typing import Any

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds. Doubles from try to try, with jitter, so that several callers do not come back together."""

LONGEST_BODY = 200
PASSING = {408, 409, 425, 429}
"""Status codes, beside 5xx, that another try may not meet."""


@dataclass(frozen=True)
class Failure:
    """`wait` is what the server asked for (Retry-After), in seconds; `adapt` names the setting that it does not accept."""

    sentence: str
    passing: bool = False
    wait: float = 0.0
    adapt: str = ""
    worked: bool = False
    """The server had begun to answer: what it wrote is paid for."""


def understand(error: Exception, timeout_s: float) -> Failure:
    """The failure behind an exception."""
    from pydantic_ai import exceptions as ai

    if isinstance(error, ai.ModelRequestTimeout | ai.ModelTimeoutError | asyncio.TimeoutError):
        return Failure(f"no answer within {timeout_s:g} s", passing=True, worked=True)
    if isinstance(error, ai.ModelQuotaExceededError):
        return Failure(f"the account's credit is used up: {_told(error)}")
    if isinstance(error, ai.ModelAuthenticationError):
        return Failure(
            f"the server refused the key (for a server that is not the provider's own, it is KERNELWRIGHT_API_KEY): {_told(error)}"
        )
    if isinstance(error, ai.ModelNotFoundError):
        return Failure(f"the server does not know this model or address: {_told(error)}")
    if isinstance(error, ai.ModelContextWindowExceededError):
        return Failure(f"the prompt is longer than the model can read: {_told(error)}")
    if isinstance(error, ai.ModelHTTPError):
        told = _told(error)
        passing = error.status_code in PASSING or error.status_code >= 500
        adapt = "" if passing else _unaccepted(told)
        return Failure(f"the server answered {error.status_code}: {told}", passing, error.retry_after or 0.0, adapt)
    if isinstance(error, ai.ModelConnectionError):
        return Failure(f"the server cannot be reached or broke off: {_short(str(error))}", passing=True)
    if isinstance(error, ai.ModelAPIError):
        return Failure(f"the call failed: {_told(error)}", passing=True, wait=error.retry_after or 0.0)
    return Failure(f"the answer makes no sense: {_short(str(error) or type(error).__name__)}", worked=True)


def pause(attempt: int, failure: Failure) -> float:
    """Seconds until the next try; never earlier than the server asked for."""
    backoff = min(LONGEST_WAIT, FIRST_WAIT * 2.0**attempt) * random.uniform(0.75, 1.25)
    return max(backoff, failure.wait)


def _unaccepted(told: str) -> str:
    """Servers disagree on the name of the limit of tokens, and some models on temperatures."""
    names = {"max_tokens": "max_tokens", "max_completion_tokens": "max_tokens", "temperature": "temperature", "tool": "tools"}
    return next((setting for name, setting in names.items() if name in told), "")


def _told(error: Any) -> str:
    """What the server itself said, without the wrapping of either dialect."""
    body = error.body
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and key in body:
            body = body[key]
    if isinstance(body, dict | list):
        body = json.dumps(body)
    return _short(str(body)) if body else _short(str(error))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_BODY else line[: LONGEST_BODY - 1] + "…"
