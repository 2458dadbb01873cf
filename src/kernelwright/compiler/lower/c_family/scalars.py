"""C expressions in a loop nest: each made once, and written where the loop begins that it depends on.

In: `Scalar`s, a small graph of C texts that knows how deep in the nest each part belongs. Out: lines of C, sorted by loop. A load that
may leave its tensor carries its conditions, so that a loop can be split into an interior, where they all hold, and borders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwright.compiler.lower.c_types import COMPUTED
from kernelwright.compiler.lower.tile_graph import RESERVED
from kernelwright.sketch.index import Poly
from kernelwright.sketch.nodes import DType


@dataclass(eq=False)
class Scalar:
    """A C text with holes for other scalars. `level` is the depth of the innermost loop it depends on."""

    template: str
    args: tuple[Scalar, ...]
    dtype: DType
    level: int
    hint: str = ""
    guards: tuple[Scalar, ...] = ()
    always: tuple[Scalar, ...] = ()  # guards that no interior makes true (run-time indices)
    pad: str | Scalar = ""  # the value where a guard fails
    place: Poly | None = None  # for an element in memory: its offset
    uses: int = 0
    named: bool = False


class Lines:
    """Writes scalars as C lines, sorted by loop level. Each line is written once per level and variant."""

    def __init__(self, depth: int, taken: set[str]) -> None:
        self.depth = depth
        self.taken = set(taken)
        self.lines: list[list[str]] = [[] for _ in range(depth + 1)]
        self.names: dict[Scalar, str] = {}
        self.asks_outer = False  # in an interior, the guards that do not change in the innermost loop are asked all the same

    def count(self, roots: list[Scalar]) -> None:
        """Counts uses, so that what is used once stays inside its consumer."""
        stack = list(roots)
        for root in roots:
            root.uses += 1
        seen: set[Scalar] = set()
        while stack:
            scalar = stack.pop()
            if scalar in seen:
                continue
            seen.add(scalar)
            other = (scalar.pad,) if isinstance(scalar.pad, Scalar) else ()
            for arg in (*scalar.args, *scalar.guards, *scalar.always, *other):
                arg.uses += 1
                stack.append(arg)

    def write(self, scalar: Scalar, at: int, interior: bool) -> str:
        """The C text of a scalar for a consumer at level `at`; writes the lines it needs."""
        if scalar in self.names:
            return self.names[scalar]
        text = self._body(scalar, interior)
        simple = re.fullmatch(r"[\w.]+|-?[\d.]+f?|-INFINITY", text) is not None
        line = scalar.named or (not simple and (scalar.uses > 1 or scalar.level < at or len(text) > 90 or bool(scalar.hint)))
        if not line:
            return text
        name = self._fresh(scalar.hint)
        self.names[scalar] = name
        self.lines[scalar.level].append(f"const {COMPUTED[scalar.dtype]} {name} = {text};")
        return name

    def forget_inner(self) -> list[str]:
        """Hands out the lines of the innermost level and forgets their names, for another variant of the same body."""
        inner, self.lines[self.depth] = self.lines[self.depth], []
        self.names = {s: n for s, n in self.names.items() if s.level < self.depth}
        return inner

    def _body(self, scalar: Scalar, interior: bool) -> str:
        texts = [self.write(arg, scalar.level, interior) for arg in scalar.args]
        text = fill(scalar.template, texts)
        guards = [*scalar.always, *self.asked(scalar, interior)]
        if guards:
            # `&`, not `&&`: a loop without branches vectorises, and the load itself stays conditional
            tests = " & ".join(_closed(self.write(g, scalar.level, interior)) for g in guards)
            pad = self.write(scalar.pad, scalar.level, interior) if isinstance(scalar.pad, Scalar) else scalar.pad
            text = f"{tests if len(guards) > 1 else f'({tests})'} ? {_closed(text)} : {_closed(pad)}"
        return text

    def asked(self, scalar: Scalar, interior: bool) -> tuple[Scalar, ...]:
        """The guards of a scalar that have to be tested, in a border or in an interior of the innermost loop."""
        if not interior or scalar.level < self.depth:
            return scalar.guards
        return tuple(guard for guard in scalar.guards if guard.level < self.depth) if self.asks_outer else ()

    def _fresh(self, stem: str) -> str:
        """The sketch's own name for a value where it has one, else t1, t2 …"""
        name, k = (stem, 1) if stem else ("t1", 1)
        while name in self.taken or name in RESERVED:
            k += 1
            name = f"{stem}_{k}" if stem else f"t{k}"
        self.taken.add(name)
        return name


_HOLE = re.compile(r"\{(\d)\}")


def fill(template: str, texts: list[str]) -> str:
    """Puts texts into the holes of a template, in parentheses where an operator could tear them apart."""

    def one(match: re.Match[str]) -> str:
        text = texts[int(match.group(1))]
        before = template[: match.start()].rstrip()
        after = template[match.end() :].lstrip()
        alone = before.endswith(("(", ",", "[")) and after.startswith((")", ",", "]"))
        whole = template == match.group(0)
        return text if alone or whole or _atomic(text) else f"({text})"

    return _HOLE.sub(one, template)


def _closed(text: str) -> str:
    return text if _atomic(text) else f"({text})"


def _atomic(text: str) -> bool:
    depth = 0
    for char in text:
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif depth == 0 and not (char.isalnum() or char in "_.:"):
            return False
    return True
