"""A sketch's text in, its faults with their lines out: in a worker, because a text may be made to take for ever."""

from __future__ import annotations

from typing import Any

from kernelwright.core.errors import SketchError
from kernelwright.workers.channel import Channel

MOST_FAULTS = 50


def serve(channel: Channel) -> None:
    """The worker: answers one request."""
    message, _ = channel.receive(None)
    channel.send({"ok": True, **checked(str(message["sketch"]))})


def checked(text: str) -> dict[str, Any]:
    """The faults, and the text as the printer writes it where there are none."""
    from kernelwright.sketch.check.rules import check
    from kernelwright.sketch.parse import parse
    from kernelwright.sketch.print import to_source

    try:
        sketch = parse(text)
        found = check(sketch)
    except SketchError as error:
        found, sketch = [error], None
    except (RecursionError, OverflowError, MemoryError, ValueError) as error:
        found, sketch = [SketchError(f"it cannot be read: {type(error).__name__}: {error}"[:300])], None
    faults = [{"line": fault.line, "reason": fault.reason, "hint": fault.hint} for fault in found[:MOST_FAULTS]]
    return {"faults": faults, "sketch": to_source(sketch) if sketch is not None and not found else ""}
