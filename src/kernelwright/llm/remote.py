"""Servers of the OpenAI and Anthropic dialects."""

from __future__ import annotations

from kernelwright.errors import ModelError
from kernelwright.llm.limits import Limits
from kernelwright.llm.source import Source


def open_remote(spec: str, limits: Limits, base_url: str | None) -> Source:
    """The server that a spec names."""
    raise ModelError(f"{spec}: servers cannot be asked yet; use mailbox:DIR or replay:FILE")
