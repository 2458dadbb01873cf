"""Server-sent events: which runs changed, as soon as the store has it. In: a Listing. Out: a stream for each browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from kernelwright.web.listing import TICK, Listing

MOST_ROWS = 200
"""Of one message; where more changed at once, the browser asks for its page again."""


async def changes(listing: Listing, ended: asyncio.Event) -> AsyncIterator[dict[str, str]]:
    """Each change from now on. The first message tells where the listing stands, so that a browser that was away asks anew."""
    version, _ = listing.changed(listing.version)
    yield {"event": "hello", "data": json.dumps({"version": version})}
    trouble = ""
    while not ended.is_set():
        now, rows = listing.changed(version)
        if now != version:
            told = {"version": now, "rows": rows[:MOST_ROWS], "all": len(rows) <= MOST_ROWS}
            version = now
            yield {"event": "runs", "data": json.dumps(told)}
        if listing.trouble != trouble:
            trouble = listing.trouble
            yield {"event": "trouble", "data": json.dumps({"error": trouble})}
        await asyncio.sleep(TICK)
