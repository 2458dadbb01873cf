"""What stands before every route: whose request it is, how large it may be, and what the browser is allowed to do with the answer.

- DNS rebinding: the Host header must name this server as it was started, or a name that its owner allowed.
- CSRF: what changes something needs a header that no form and no foreign script can send, and an Origin that is ours.
- For addresses other than loopback: a token, by cookie (HttpOnly, SameSite=Strict) or as a bearer.
- Bodies are bounded while they arrive. Answers carry a content policy that allows our own files only.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

MOST_BODY = 8 << 20
"""Bytes of a request: a task, a kernel or a report."""
COOKIE = "kernelwright"
OUR_HEADER = b"x-kernelwright"
SAFE_METHODS = ("GET", "HEAD")
LOGIN = "/api/login"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Bounded:
    """A request's body, until more of it has come than may."""

    def __init__(self, receive: Any, most: int) -> None:
        self._receive, self._most, self._seen = receive, most, 0
        self.refusal = Refused(413, f"a request may have {most >> 20} MiB")

    @property
    def over(self) -> bool:
        return self._seen > self._most

    async def receive(self) -> Any:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self.over:
            raise self.refusal
        return message


class Guard:
    """ASGI middleware. `hosts` are the names (without port) by which this server may be called; `token` is "" where none is needed."""

    def __init__(self, app: Any, *, hosts: Iterable[str], token: str = "", most_body: int = MOST_BODY) -> None:
        self._app, self._hosts, self._token, self._most = app, frozenset(hosts), token, most_body

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False
        body = Bounded(receive, self._most)

        async def answer(message: Any) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": _with_ours(message.get("headers", ()), scope["path"])}
            await send(message)

        async def unless_too_large(message: Any) -> None:
            if not body.over:  # whoever reads a body makes an error of his own of ours
                await answer(message)

        try:
            self._check(scope)
            await self._app(scope, body.receive, unless_too_large)
            if body.over and not begun:
                raise body.refusal
        except Refused as refused:
            if not begun:
                await _refuse(answer, refused)

    def _check(self, scope: Any) -> None:
        headers = {bytes(name).lower(): bytes(value) for name, value in scope["headers"]}
        host = _host(headers.get(b"host", b""))
        if host not in self._hosts:
            raise Refused(421, "this server is not called by that name; see --allow-host of kernelwright serve")
        path = scope["path"]
        if not path.startswith("/api/"):
            return
        if headers.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none"):
            raise Refused(403, "requests from other sites are not answered")
        if scope["method"] not in SAFE_METHODS:
            origin = headers.get(b"origin")
            if (
                origin is not None
                and urlsplit(origin.decode("latin-1")).netloc.lower() != headers[b"host"].decode("latin-1").lower()
            ):
                raise Refused(403, "requests from other sites are not answered")
            if OUR_HEADER not in headers:
                raise Refused(403, "the header X-Kernelwright is missing")
            kind = headers.get(b"content-type", b"application/json").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise Refused(415, "bodies are JSON")
        sent = headers.get(b"content-length", b"0")
        if not sent.isdigit() or int(sent) > self._most:
            raise Refused(413, f"a request may have {self._most >> 20} MiB")
        if self._token and path != LOGIN and not self._known(headers):
            raise Refused(401, "the token is missing or wrong; open the address that kernelwright serve printed")

    def _known(self, headers: dict[bytes, bytes]) -> bool:
        given = headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
        if not given:
            try:
                cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
            except CookieError:
                cookie = None
            given = cookie.value if cookie else ""
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())


def _host(header: bytes) -> str:
    """The name in a Host header, without the port; "" for what is no such header."""
    try:
        return (urlsplit(f"//{header.decode('ascii')}").hostname or "").lower()
    except (UnicodeDecodeError, ValueError):
        return ""


def _with_ours(headers: Iterable[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    given = {bytes(name).lower() for name, _ in headers}
    ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    if path.startswith("/api/") and b"cache-control" not in given:
        ours.append((b"cache-control", b"no-store"))
    return [*headers, *ours]


async def _refuse(send: Any, refused: Refused) -> None:
    body = json.dumps({"error": refused.sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
