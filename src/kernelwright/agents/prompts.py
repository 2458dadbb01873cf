"""Prompts are files: prompts/*.md with {{placeholders}}; here they are filled in, and foreign text is fenced as data.

In: a template's name and the text for each of its placeholders. Out: the rendered text. A placeholder without text, or text without
a placeholder, is an error of ours, found by the golden tests. Filled-in text is never looked through for placeholders again.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("prompts")
PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")
NOTHING = "(none)"
MAY_BE_EMPTY = ("again", "approach")
"""Placeholders that stand for nothing at all when there is nothing to say; the others say "(none)"."""
LONGEST_DATA = 60_000
"""Characters of one fenced text; a longer one is cut in its middle and says so."""


def render(name: str, **values: str) -> str:
    """The template of this name with its placeholders filled in."""
    text = template(name)
    wanted = set(PLACEHOLDER.findall(text))
    if wanted != set(values):
        raise ValueError(f"prompt {name}: missing {sorted(wanted - set(values))}, unknown {sorted(set(values) - wanted)}")

    def filled(found: re.Match[str]) -> str:
        return values[found[1]].strip("\n") or ("" if found[1] in MAY_BE_EMPTY else NOTHING)

    return PLACEHOLDER.sub(filled, text).rstrip() + "\n"


@cache
def template(name: str) -> str:
    """The text of a template."""
    return (FOLDER / f"{name}.md").read_text()


def templates() -> tuple[str, ...]:
    """The names of all templates."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.md")))


def fence(text: str, label: str, info: str = "") -> str:
    """Foreign text as data: a label, and a fence that is longer than any run of backticks inside, so that it cannot be closed
    from within."""
    text = _shortened(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(4, longest + 1)
    return f"{label}, data:\n\n{ticks}{info}\n{text.strip(chr(10))}\n{ticks}"


def numbered(text: str) -> str:
    """The text with a number before each line."""
    return "\n".join(f"{number:4d}  {line}".rstrip() for number, line in enumerate(text.splitlines(), start=1))


def _shortened(text: str) -> str:
    text = "".join(c for c in text if c in "\n\t" or c.isprintable())
    if len(text) <= LONGEST_DATA:
        return text
    half = LONGEST_DATA // 2
    return f"{text[:half]}\n… ({len(text) - LONGEST_DATA:,} characters left out) …\n{text[-half:]}"
