"""A real HTTP server on the loopback that speaks both dialects from a script: what the tests of models talk to.

Each request takes the next Reply (the last one stays). Requests are kept for the tests to look at.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """`body` replaces the dialect's own; `hold` keeps the connection open for so long, or until the server is stopped."""

    text: str = "hello"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    hold: float = 0.0
    length: bool = False
    tokens: tuple[int, int] | None = (10, 5)
    break_off: bool = False
    never_streams: bool = False


@dataclass
class Server:
    """What a test sees."""

    url: str
    script: list[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    open_now: int = 0
    open_most: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def openai(self) -> str:
        return f"{self.url}/v1"

    def next(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self.lock:
            reply = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append(request)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            return reply


@contextmanager
def serve(*script: Reply) -> Iterator[Server]:
    """A server for as long as the block lasts."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(server := Server("", list(script or (Reply(),)))))
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def _handler_of(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = server.next(request, {name.lower(): value for name, value in self.headers.items()})
            with server.lock:
                server.open_now += 1
                server.open_most = max(server.open_most, server.open_now)
            try:
                server.stopping.wait(reply.hold)
                self._send(request, reply, anthropic=self.path.endswith("/messages"))
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                with server.lock:
                    server.open_now -= 1

        def _send(self, request: dict[str, Any], reply: Reply, *, anthropic: bool) -> None:
            streams = request.get("stream") and not reply.never_streams and reply.body is None and reply.status == 200
            if streams:
                pieces = _anthropic_events(reply) if anthropic else _openai_events(reply)
                body = b"".join(pieces[: len(pieces) // 2] if reply.break_off else pieces)
                kind = "text/event-stream"
            else:
                body = reply.body if reply.body is not None else json.dumps(_whole(reply, anthropic)).encode()
                kind = "application/json"
            self.send_response(reply.status)
            self.send_header("content-type", kind)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body) + (100 if reply.break_off else 0)))
            self.end_headers()
            for start in range(0, len(body), 64):  # in small pieces, as it comes over a network
                self.wfile.write(body[start : start + 64])
                self.wfile.flush()
            if reply.break_off:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Exclusive."""

    return Handler


def _whole(reply: Reply, anthropic: bool) -> dict[str, Any]:
    tokens_in, tokens_out = reply.tokens or (0, 0)
    if anthropic:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [{"type": "text", "text": reply.text}],
            "stop_reason": "max_tokens" if reply.length else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out},
        }
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.text},
        "finish_reason": "length" if reply.length else "stop",
    }
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]}
    return {**answer, "usage": usage} if reply.tokens else answer


def _openai_events(reply: Reply) -> list[bytes]:
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    chunks: list[dict[str, Any]] = [
        {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}]}
        for piece in _pieces(reply.text)
    ]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "length" if reply.length else "stop"}]})
    if reply.tokens:
        usage = {"prompt_tokens": reply.tokens[0], "completion_tokens": reply.tokens[1], "total_tokens": sum(reply.tokens)}
        chunks.append({**base, "choices": [], "usage": usage})
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]


def _anthropic_events(reply: Reply) -> list[bytes]:
    tokens_in, tokens_out = reply.tokens or (0, 0)
    start = {
        **_whole(reply, True),
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": tokens_in, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in _pieces(reply.text)
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens" if reply.length else "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": tokens_out},
        },
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def _pieces(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]
