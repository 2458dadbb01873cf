"""Headless Chromium by Playwright, for tests of pages: a page in a size and a colour scheme, which collects what it complains of.

Chromium comes from the system (Debian: chromium), Playwright from PyPI; where either is missing, these tests are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PROGRAM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
DRIVER = importlib.util.find_spec("playwright") is not None
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
]  # fmt: skip

browser = pytest.mark.skipif(
    not (PROGRAM and DRIVER), reason="needs Chromium and Playwright: apt-get install chromium; pip install playwright"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; its pages are opened with `opened`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        try:
            yield running
        finally:
            running.close()


@contextmanager
def opened(running: Any, *, width: int = 1400, height: int = 1000, dark: bool = False) -> Iterator[Any]:
    """A page of its own; errors, warnings and requests to other hosts are in its `complaints`."""
    context = running.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.complaints = complaints
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning", "assert") else None)
    local = ("file:", "data:", "about:", "blob:", "http://127.0.0.1:", "http://localhost:")
    page.on("request", lambda asked: None if asked.url.startswith(local) else complaints.append(f"asked for {asked.url}"))
    try:
        yield page
    finally:
        context.close()
