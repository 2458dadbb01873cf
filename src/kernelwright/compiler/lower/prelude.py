"""The prelude of a C-like kernel: only the functions that its source uses.

In: a header cut into sections by lines `// == name`, and source. Out: the sections that the source names, each after those it needs
itself. Each language owns its headers and what FUNCTION stands for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def sections_of(header: str) -> dict[str, str]:
    """Name of each section → its text."""
    found = {}
    for part in header.split("// == ")[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = body.rstrip() + "\n"
    return found


def needed(source: str, known: Mapping[str, str], function: str) -> str:
    """All sections that `source` needs; `function` defines the word that they are declared with."""
    order: list[str] = []

    def need(text: str, within: str = "") -> None:
        for name in dict.fromkeys(re.findall(r"\b\w+\b", text)):
            if name in known and name != within and name not in order:
                need(known[name], name)
                order.append(name)

    need(source)
    text = "".join(known[name] for name in order)
    return function + text if "FUNCTION" in text else text
