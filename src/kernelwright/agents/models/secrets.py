"""Keys: where they come from, and how they are kept out of every text that leaves the process or reaches the disk.

A key comes from the environment, or from the system's keyring where the `keyring` package is installed
(`keyring set kernelwright OPENAI_API_KEY`). It lives only inside the client that sends it. Whatever a server, a file or a task
says passes a `Redactor`, which knows every secret of the environment and every key that was read.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable

SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
SHORTEST_SECRET = 8
"""Letters. Shorter values are flags and numbers; to blank those out would damage ordinary text."""

MARK = "[secret]"

_read: set[str] = set()
"""Keys that came from elsewhere than the environment, so that a Redactor knows them too."""


def find_key(*names: str) -> str | None:
    """The first of these keys that the environment, else the keyring, has."""
    for name in names:
        if value := os.environ.get(name, "").strip():
            return _remember(value)
    for name in names:
        if stored := _from_keyring(name):
            return _remember(stored)
    return None


def _remember(value: str) -> str:
    _read.add(value)
    return value


def _from_keyring(name: str) -> str | None:
    try:
        keyring = importlib.import_module("keyring")
        value = keyring.get_password("kernelwright", name)
    except Exception:  # not installed, locked, no desktop: each backend has errors of its own, and none is ours to solve
        return None
    return value.strip() or None if isinstance(value, str) else None


class Redactor:
    """Takes secrets out of text. Made for each call, because the environment may change."""

    def __init__(self) -> None:
        named = {value.strip() for name, value in os.environ.items() if SECRET_NAME.search(name)}
        secrets = sorted((value for value in named | _read if len(value) >= SHORTEST_SECRET), key=len, reverse=True)
        self._secrets = secrets
        self._pattern = re.compile("|".join(map(re.escape, secrets))) if secrets else None

    def __repr__(self) -> str:
        return "<redactor>"

    def clean(self, text: str) -> str:
        """The text with a mark in place of each secret."""
        return self._pattern.sub(MARK, text) if self._pattern else text

    def unsafe(self, text: str) -> int:
        """How many letters at the end of a text could be the beginning of a secret."""
        beginnings = (
            length
            for secret in self._secrets
            for length in range(min(len(secret) - 1, len(text)), 0, -1)
            if secret.startswith(text[-length:])
        )
        return max(beginnings, default=0)

    def stream(self, on_text: Callable[[str], None]) -> Stream:
        """The same for text that arrives in pieces."""
        return Stream(self, on_text)


class Stream:
    """Passes text on, holding back as much as could be the beginning of a secret."""

    def __init__(self, redactor: Redactor, on_text: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._on_text = on_text
        self._held = ""

    def feed(self, text: str) -> None:
        self._held = self._redactor.clean(self._held + text)
        ready = len(self._held) - self._redactor.unsafe(self._held)
        if ready:
            text, self._held = self._held[:ready], self._held[ready:]
            self._on_text(text)

    def end(self) -> None:
        if self._held:
            self._on_text(self._held)
            self._held = ""
