"""What cannot be lifted: the line of the CUDA source and the reason."""

from __future__ import annotations

from kernelwright.core.errors import CannotLift


class Refused(CannotLift):
    """A construct that is not read. `line` is that of the CUDA source (0: none in particular); `place` finds it in the author's file."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason, line=line)


def place(line: int, cuda: str, file: str) -> int:
    """The line of a file at which a line of the CUDA source in it stands, 0 if it stands nowhere (a text put together in Python):
    of all lines that say the same the one with the most neighbours that do."""
    inside, outside = ([text.strip() for text in whole.splitlines()] for whole in (cuda, file))
    at = line - 1
    if not 0 <= at < len(inside) or not inside[at]:
        return 0

    def alike(k: int) -> int:
        return sum(_run(inside, outside, at, k, step) for step in (1, -1))

    found = [k for k, text in enumerate(outside) if text == inside[at]]
    return max(found, key=alike) + 1 if found else 0


def _run(inside: list[str], outside: list[str], i: int, k: int, step: int) -> int:
    count = 0
    while 0 <= i < len(inside) and 0 <= k < len(outside) and inside[i] == outside[k]:
        i, k, count = i + step, k + step, count + 1
    return count
