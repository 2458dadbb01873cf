"""`mailbox:DIR`: each ask is a file, each answer is a file. For air-gapped machines, chat windows and coding agents.

An ask becomes `NNNN.prompt.md`; the run waits until `NNNN.answer.md` is there. The prompt's first lines carry the ask's key: the
same ask has the same number after a restart, in another process too, and an answer that is there already is taken at once. Both
files appear under their names only when they are complete: ours by link, the answer best by rename; a half-written answer is
told by its growing.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kernelwright.agents.models.ask import Answer, Ask, Form
from kernelwright.agents.models.limits import estimate
from kernelwright.core.errors import BudgetReached, ModelError

POLL = 0.2
SETTLED = 0.6
"""Seconds. Looked at every POLL; an answer whose file was not touched for SETTLED is complete."""

PROMPT = re.compile(r"(\d{4,})\.prompt\.md")

WANTED: dict[Form, str] = {
    "sketch": "one sketch, in one ```python block",
    "kernel": "one complete kernel file that defines ModelNew, in one ```python block",
    "patch": "search/replace blocks, as described below",
    "task": "one complete task file, in one ```python block",
    "advice": "a few sentences",
}


class Mailbox:
    """A Source that is a folder. Several asks may wait at once."""

    tools = False

    def __init__(self, folder: Path) -> None:
        self.name = f"mailbox:{folder}"
        self._folder = folder
        self._closed = threading.Event()
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ModelError(f"{folder}: the mailbox cannot be made: {error.strerror or error}") from error

    def fetch(self, ask: Ask, cap: int, on_text: Callable[[str], None] | None, book: Callable[[Answer], None]) -> Answer:
        started = time.monotonic()
        with self._lock:
            number = self._number(ask)
        text = self._wait(self._folder / f"{number}.answer.md", ask)
        if not text.strip():
            raise ModelError(
                f"{self._folder / number}.answer.md is empty; write the answer, or delete the file to be asked again"
            )
        if on_text:
            on_text(text)
        # Nobody is paid by the token here; how many there were is estimated, so that a run's figures and limits mean something.
        return Answer(text, estimate(ask.letters), estimate(len(text)), 0.0, time.monotonic() - started)

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        return 0.0

    def close(self) -> None:
        """Waiting asks end; their prompts stay, for the next run."""
        self._closed.set()

    def _number(self, ask: Ask) -> str:
        """The ask's number: the one it has, or the next free one (others may be taking numbers at the same time)."""
        key = ask.key("mailbox")
        highest = 0
        try:
            for path in sorted(self._folder.iterdir()):
                if found := PROMPT.fullmatch(path.name):
                    if _key(path) == key:
                        return found[1]
                    highest = max(highest, int(found[1]))
            return self._post(ask, key, highest + 1)
        except OSError as error:
            raise ModelError(f"{self._folder}: the prompt cannot be written: {error.strerror or error}") from error

    def _post(self, ask: Ask, key: str, number: int) -> str:
        descriptor, part = tempfile.mkstemp(prefix=".prompt-", dir=self._folder)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(render(ask, key))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(part, 0o644)
            while True:
                name = f"{number:04d}"
                try:
                    os.link(part, self._folder / f"{name}.prompt.md")  # unlike a rename, fails when the number is taken
                    return name
                except FileExistsError:
                    number += 1
        finally:
            os.unlink(part)

    def _wait(self, path: Path, ask: Ask) -> str:
        """The answer, once its file has not changed for a while: by its own date, or by watching it (clocks of servers differ)."""
        last: tuple[int, int] | None = None
        since = began = time.monotonic()
        while True:
            try:
                found = path.stat()
                if (found.st_size, found.st_mtime_ns) != last:
                    last, since = (found.st_size, found.st_mtime_ns), time.monotonic()
                if max(time.time() - found.st_mtime, time.monotonic() - since) > SETTLED:
                    return path.read_text(encoding="utf-8")
            except FileNotFoundError:
                pass
            except (OSError, UnicodeDecodeError) as error:
                raise ModelError(f"{path}: this answer cannot be read: {error}") from error
            # The main thread is gone when the program ends by Ctrl-C: a waiting worker must not keep it alive.
            if ask.seconds is not None and time.monotonic() - began > ask.seconds:
                raise BudgetReached(f"the run's time was used up while {path.name} was waited for")
            if self._closed.wait(POLL) or not threading.main_thread().is_alive():
                raise ModelError(f"{self.name} was closed before {path.name} was there; it is asked for again by the next run")


def render(ask: Ask, key: str) -> str:
    """The prompt file: a few lines on what to do, then the two parts of the prompt."""
    return (
        f"---\nkey: {key}\nrole: {ask.role}\nform: {ask.form}\nattempt: {ask.attempt}\nmax_tokens: {ask.max_tokens}\n---\n"
        f"Write {WANTED[ask.form]} into the file of the same number that ends in `.answer.md`"
        " (write it under another name and rename it, so that it is complete when it appears).\n\n"
        f"# System\n\n{ask.system}\n\n# User\n\n{ask.user}\n"
    )


def _key(prompt: Path) -> str:
    """The key in a prompt's first lines; "" for a file of somebody else."""
    with prompt.open(encoding="utf-8", errors="replace") as file:
        head = [file.readline(200) for _ in range(2)]
    return head[1].removeprefix("key: ").strip() if head[0] == "---\n" else ""
