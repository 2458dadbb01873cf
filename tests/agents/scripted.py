"""A scripted model behind a real loopback HTTP server that speaks the OpenAI dialect, with streaming. Test code only.

`Script` is a list of answers, given in order; each may be a text, or a function of the prompt. What was asked is kept in `asks`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Calls:
    """An answer that calls tools: (name, arguments) each."""

    calls: tuple[tuple[str, dict[str, str]], ...]


Text = str | Calls
Line = Text | Callable[[str], Text]


class Script:
    """Answers in order; when they are used up, the last one is given again. `url` names the model to Kernelwright."""

    def __init__(self, answers: Sequence[Line]) -> None:
        self.answers = list(answers)
        self.asks: list[str] = []
        self.offered: list[list[str]] = []
        self.url = ""
        self._lock = threading.Lock()

    def next(self, prompt: str) -> Text:
        with self._lock:
            number = len(self.asks)
            self.asks.append(prompt)
        line = self.answers[min(number, len(self.answers) - 1)]
        return line(prompt) if callable(line) else line


def tool_calls(answer: Text) -> list[dict[str, Any]]:
    """The calls in the dialect's words."""
    calls = answer.calls if isinstance(answer, Calls) else ()
    return [
        {"index": at, "id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for at, (name, given) in enumerate(calls)
    ]


@contextmanager
def serving(answers: Sequence[Line]) -> Iterator[Script]:
    """A server for one script."""
    script = Script(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = "\n".join(str(message["content"]) for message in body["messages"])
            script.offered.append([tool["function"]["name"] for tool in body.get("tools", ())])
            answer = script.next(prompt)
            text = answer if isinstance(answer, str) else ""
            usage = {
                "prompt_tokens": len(prompt) // 4,
                "completion_tokens": len(text) // 4,
                "total_tokens": (len(prompt) + len(text)) // 4,
            }
            common = {"id": "x", "created": 1, "model": body["model"]}
            if body.get("stream"):
                self._stream(text, usage, common, tool_calls(answer))
                return
            message = {"role": "assistant", "content": text or None}
            if called := tool_calls(answer):
                message["tool_calls"] = called
            choice = {"index": 0, "finish_reason": "tool_calls" if called else "stop", "message": message}
            data = json.dumps({**common, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, text: str, usage: dict[str, int], common: dict[str, Any], called: list[dict[str, Any]]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            pieces = [text[at : at + 400] for at in range(0, len(text), 400)] or [""]
            for piece in pieces:
                self._event(
                    {
                        **common,
                        "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}],
                    }
                )
            if called:
                self._event({**common, "choices": [{"index": 0, "delta": {"tool_calls": called}, "finish_reason": None}]})
            ended = "tool_calls" if called else "stop"
            self._event({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": ended}]})
            self._event({**common, "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def _event(self, data: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps({**data, 'object': 'chat.completion.chunk'})}\n\n".encode())

        def log_message(self, *_: object) -> None:
            """The test's output is not for the server."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    script.url = f"http://127.0.0.1:{server.server_port}/v1:scripted"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
