"""Fresh names for what a sketch declares: a stem in, an identifier that the language takes and that nothing else has out."""

from __future__ import annotations

import keyword
from dataclasses import dataclass, field

from kernelwright.sketch.check.declarations import RESERVED


def identifier(stem: str) -> str:
    """A name that a sketch may use: what is no letter, digit or underscore is replaced, and keywords and dtypes get a prefix."""
    name = "".join(ch if ch.isascii() and ch.isalnum() else "_" for ch in stem)
    if not name or name[0].isdigit() or keyword.iskeyword(name) or name in RESERVED:
        name = f"_{name}" if name.startswith("_") else f"t_{name}"
    return name


@dataclass
class Names:
    """Fresh names for one sketch, so that parts made by different families never collide."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, stem: str) -> str:
        """`stem` itself if it is free, else stem_1, stem_2 …; the name is taken from now on."""
        stem = identifier(stem)
        name, count = stem, 0
        while name in self.taken:
            count += 1
            name = f"{stem}_{count}"
        self.taken.add(name)
        return name
