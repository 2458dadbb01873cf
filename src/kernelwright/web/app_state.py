"""What the routes share: store, listing, queue, questions, reports. Made by `app.py`, found by `state_of`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Request

from kernelwright.store import Store
from kernelwright.web.listing import Listing

if TYPE_CHECKING:
    from kernelwright.web.questions import Questions
    from kernelwright.web.queue import Queue
    from kernelwright.web.reports import Reports


@dataclass
class State:
    store: Store
    listing: Listing
    queue: Queue
    questions: Questions
    reports: Reports
    place: str = ""
    """The store, as a setting."""
    model: str = "builtin"
    """Who thinks by the configuration: the one model that may be a server, a folder or a recording."""
    token: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


def state_of(request: Request) -> State:
    found: State = request.app.state.here
    return found
