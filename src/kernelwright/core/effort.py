"""Effort presets: the single source of defaults for how hard a job tries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelwright.core.errors import ConfigError

EffortName = Literal["quick", "standard", "thorough"]


@dataclass(frozen=True)
class Effort:
    """`sketches` is how many the built-in Designer may make (none is begun after `sketch_seconds`), `drafts` how many of them are
    lowered, `measured` how many correct ones are timed before one is named, `judge_seconds` what the judge may spend on trials and on
    rounds of the clock, each (beyond what it always does). With a model: `designs` it may offer, `repairs` of each, `patches` before
    a rewrite, `improvements` in a row of a kernel that is correct, renewed by a gain at most `renewals` times for a design.
    `tool_calls` is how often a model may call tools before one answer.
    `designs_abreast` are asked for at once at the beginning.
    `tune_seconds` is what the search for a faster variant may take; none at quick."""

    name: str
    sketches: int
    sketch_seconds: float
    drafts: int
    measured: int
    judge_seconds: float
    designs: int = 1
    repairs: int = 2
    patches: int = 2
    improvements: int = 1
    tune_seconds: float = 0.0
    renewals: int = 3
    tool_calls: int = 6
    designs_abreast: int = 1


PRESETS = {
    "quick": Effort("quick", sketches=3, sketch_seconds=1.0, drafts=3, measured=1, judge_seconds=2.0),
    "standard": Effort(
        "standard",
        sketches=10,
        sketch_seconds=5.0,
        drafts=6,
        measured=3,
        judge_seconds=4.0,
        designs=3,
        repairs=3,
        improvements=2,
        tune_seconds=60,
        renewals=5,
        tool_calls=10,
    ),
    "thorough": Effort(
        "thorough",
        sketches=12,
        sketch_seconds=30.0,
        drafts=12,
        measured=8,
        judge_seconds=5.0,
        designs=8,
        repairs=4,
        patches=3,
        improvements=3,
        tune_seconds=300,
        renewals=8,
        tool_calls=20,
        designs_abreast=3,
    ),
}


def preset(name: str) -> Effort:
    """The preset of this name, or one sentence that lists them."""
    if name not in PRESETS:
        raise ConfigError(f"effort {name!r} is unknown; choose one of {', '.join(PRESETS)}")
    return PRESETS[name]


UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """`90`, `60s`, `5m`, `1h` as seconds."""
    number, unit = (text[:-1], text[-1]) if text and text[-1] in UNITS else (text, "s")
    try:
        value = float(number) * UNITS[unit]
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ConfigError(f"budget {text!r} is not a duration; write for example 60s, 5m or 1h")
    return value
