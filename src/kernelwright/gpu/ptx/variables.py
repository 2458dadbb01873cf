"""Declarations of variables, at the top of a module or inside a function."""

from __future__ import annotations

from kernelwright.gpu.ptx.nodes import Variable
from kernelwright.gpu.ptx.stream import Stream
from kernelwright.gpu.ptx.types import TYPE_BYTES

SPACES = {".global", ".const", ".shared", ".local", ".param"}


def variables(s: Stream, space: str, *, external: bool = False) -> list[Variable]:
    """The variables of one declaration, up to its semicolon; `space` was read already."""
    align, kind, vector = 0, "", 1
    while s.peek().startswith("."):
        word = s.next()[1:]
        if word == "align":
            align = int(s.next())
        elif word in ("v2", "v4"):
            vector = int(word[1])
        elif word in TYPE_BYTES:
            kind = word
        elif word == "attribute":
            s.skip_parentheses()
        else:
            raise s.error(f"'.{word}' is not a type of PTX")
    if not kind:
        raise s.error("a variable without a type")
    found = []
    while True:
        name = s.next()
        names, count = [name], 1
        if s.peek() == "<":
            s.next()
            names = [f"{name}{i}" for i in range(int(s.next()))]
            s.expect(">")
        given = extent(s)
        count = vector * (1 if given is None else given)
        values = s.initialiser() if s.take("=") else ()
        if given == 0 and values:
            count = len(values)
        size = TYPE_BYTES[kind] * vector
        found += [Variable(n, space[1:], kind, count, align or size, values, external) for n in names]
        if not s.take(","):
            break
    s.expect(";")
    return found


def extent(s: Stream) -> int | None:
    """The product of `[a][b]`; 0 where a size is left out; None where there are no brackets."""
    if s.peek() != "[":
        return None
    count = 1
    while s.take("["):
        count *= 0 if s.peek() == "]" else int(s.next(), 0)
        s.expect("]")
    return count
