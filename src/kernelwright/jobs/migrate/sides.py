"""Two programs side by side: kernel files in, pairs of device functions out, and columns of text.

A function belongs to the sketch's kernel whose name it bears (our coders name functions so); what bears none (a kernel of somebody else)
stands beside the functions that are left over, in the order of the files.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence

WIDTH = 78
_C_HEAD = re.compile(
    r'^(?:extern "C" |static void |__global__ |template ?<[^>]*>\s*__global__ )[^;{]*?(\w+)\s*\([^;{]*\)[^;{]*\{', re.MULTILINE
)


def functions(source: str) -> dict[str, str]:
    """The device functions of a kernel file by name, in order: C functions in its strings, else Python functions that are jitted."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    found: dict[str, str] = {}
    for text in texts:
        found |= {match[1]: _body(text, match.start()) for match in _C_HEAD.finditer(text)}
    if found:
        if any(text.startswith("static void") for text in found.values()):  # then what is exported only calls those
            found = {name: text for name, text in found.items() if not text.startswith('extern "C"')}
        return found
    lines = source.splitlines()
    named = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in node.decorator_list):
            first = min(d.lineno for d in node.decorator_list)
            named[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return named


def pairs(kernels: Sequence[str], left: dict[str, str], right: dict[str, str]) -> list[tuple[str, str, str]]:
    """(title, left text, right text): first by the sketch's kernels, then the rest as it comes."""
    taken: set[tuple[int, str]] = set()
    found: list[tuple[str, str, str]] = []

    def of(side: int, texts: dict[str, str], kernel: str) -> str:
        mine = [name for name in texts if name == kernel or re.fullmatch(rf"{re.escape(kernel)}(_?\w*)", name)]
        mine = [name for name in mine if (side, name) not in taken]
        taken.update((side, name) for name in mine)
        return "\n\n".join(texts[name] for name in mine)

    for kernel in sorted(kernels, key=len, reverse=True):
        one, two = of(0, left, kernel), of(1, right, kernel)
        if one or two:
            found.append((kernel, one, two))
    found.sort(key=lambda item: list(kernels).index(item[0]))
    rest = [[texts[name] for name in texts if (side, name) not in taken] for side, texts in enumerate((left, right))]
    alone = [n for n, (_, one, two) in enumerate(found) if not one or not two]
    for number in alone:  # a source of somebody else has names of its own
        title, one, two = found[number]
        if not one and rest[0]:
            found[number] = (title, rest[0].pop(0), two)
        elif not two and rest[1]:
            found[number] = (title, one, rest[1].pop(0))
    found += [("further functions", one, two) for one, two in itertools.zip_longest(*rest, fillvalue="")]
    return found


def columns(left: str, right: str, width: int = WIDTH) -> str:
    """Two texts beside each other; long lines are folded."""
    one, two = (
        list(itertools.chain.from_iterable(_folded(line, width) for line in text.splitlines())) for text in (left, right)
    )
    rows = itertools.zip_longest(one, two, fillvalue="")
    return "\n".join(f"{a:<{width}} | {b}".rstrip() for a, b in rows)


def _folded(line: str, width: int) -> list[str]:
    line = line.rstrip()
    if len(line) <= width:
        return [line]
    indent = min(len(line) - len(line.lstrip()) + 4, width // 2)
    parts, rest = [line[:width]], line[width:]
    while rest:
        parts.append(" " * indent + rest[: width - indent])
        rest = rest[width - indent :]
    return parts


def _body(text: str, start: int) -> str:
    """From a function's head to its closing brace."""
    depth = 0
    for at in range(text.index("{", start), len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if not depth:
            return text[start : at + 1]
    return text[start:]
