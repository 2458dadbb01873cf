"""What a model answered, as text we can use: the block of code in it, or search/replace blocks applied to a file.

In: a model's answer (untrusted: it is parsed, never executed). Out: source text, or `Unreadable` with a sentence that goes back to
the model. A search text must fit in exactly one place, first literally, then with differences in white space forgiven.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<ticks>`{3,}|~{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL)
PATCH = re.compile(
    r"^<{5,9} ?SEARCH[ \t]*\n(?P<search>.*?)^={5,9}[ \t]*\n(?P<replace>.*?)^>{5,9} ?REPLACE[ \t]*$", re.MULTILINE | re.DOTALL
)
PYTHON = ("python", "py", "python3")
DECLINED = re.compile(r"^[\s`*]*no better design[`*]*\s*[:.]?(?P<why>[^\n]*)", re.IGNORECASE | re.MULTILINE)
ALIKE, NEAREST, SAID = 0.6, 24, 600
"""How alike lines must be to be shown as the nearest ones, how many of them are shown, and how much of an answer's words is kept."""
LARGEST = 400_000
"""Characters; an answer beyond this is not a kernel but a runaway."""


class Unreadable(Exception):
    """The answer cannot be used; the sentence says why, and what to send instead."""


@dataclass(frozen=True)
class Edit:
    """One search/replace block."""

    search: str
    replace: str


def code_block(text: str, *, what: str, must_contain: str = "") -> str:
    """The Python file in an answer: the last Python block that contains `must_contain` (models think aloud before they decide), or
    the whole answer when it is bare source."""
    _bounded(text)
    blocks = [(m["info"].strip().lower(), m["body"]) for m in FENCE.finditer(text)]
    fitting = [body for info, body in blocks if info.split(" ")[0] in ("", *PYTHON) and must_contain in body]
    if fitting:
        return fitting[-1].strip("\n") + "\n"
    if not blocks and must_contain and must_contain in text and not re.search(r"^(```|~~~|<<<)", text, re.MULTILINE):
        return text.strip("\n") + "\n"
    if text.count("```") % 2 or text.count("~~~") % 2:
        raise Unreadable(f"the code block of the {what} is not closed: the answer seems to be cut off")
    if blocks and must_contain:
        raise Unreadable(f"no code block of the answer contains {must_contain!r}; send the whole {what} in one ```python block")
    raise Unreadable(f"the answer contains no code block; send the whole {what} in one ```python block")


def edits(text: str) -> list[Edit]:
    """The search/replace blocks of an answer, in order."""
    _bounded(text)
    found = [Edit(m["search"], m["replace"]) for m in PATCH.finditer(text)]
    if not found:
        raise Unreadable("the answer contains no complete SEARCH/REPLACE block")
    for number, edit in enumerate(found, start=1):
        if not edit.search.strip():
            raise Unreadable(f"block {number} has an empty SEARCH part; quote the lines that are to be replaced")
    return found


def revised(text: str, source: str) -> tuple[str, str]:
    """The file after an answer of search/replace blocks, or of the whole new file; and what changed, for the record."""
    if not PATCH.search(text) and "```" in text:
        return code_block(text, what="kernel file", must_contain="ModelNew"), "the whole file was written anew"
    changes = edits(text)
    told = "\n".join(f"- {_indented(change.search)}\n+ {_indented(change.replace)}" for change in changes)
    return apply(source, changes), told


def apply(source: str, changes: list[Edit]) -> str:
    """The source with all changes made; Unreadable names the first block that fits nowhere or in several places."""
    changed = source
    for number, edit in enumerate(changes, start=1):
        changed = _apply_one(changed, edit, number)
    if changed == source:
        raise Unreadable("the SEARCH/REPLACE blocks change nothing")
    return changed


def _apply_one(source: str, edit: Edit, number: int) -> str:
    count = source.count(edit.search)
    if count == 1:
        return source.replace(edit.search, edit.replace)
    if count > 1:
        raise Unreadable(f"the SEARCH text of block {number} occurs {count} times; quote more lines so that it is unique")
    lines, wanted = source.splitlines(keepends=True), [_loose(line) for line in edit.search.strip("\n").splitlines()]
    loose = [_loose(line) for line in lines]
    places = [at for at in range(len(lines) - len(wanted) + 1) if loose[at : at + len(wanted)] == wanted]
    if len(places) > 1:
        raise Unreadable(
            f"the SEARCH text of block {number} fits in {len(places)} places; quote more lines so that it is unique"
        )
    if not places:
        first = next(line for line in edit.search.splitlines() if line.strip()).strip()
        raise Unreadable(
            f"the SEARCH text of block {number} (it begins with {first[:80]!r}) does not occur in the file"
            + _nearest(lines, loose, wanted)
        )
    at = places[0]
    replaced = _reindent(edit, lines[at : at + len(wanted)])
    return "".join([*lines[:at], replaced, *lines[at + len(wanted) :]])


def _nearest(lines: list[str], loose: list[str], wanted: list[str]) -> str:
    """The lines of the file that are most like a quotation, to be quoted instead; nothing where none are alike."""
    size = min(len(wanted), len(loose))
    matcher = difflib.SequenceMatcher(None, autojunk=False)
    matcher.set_seq2("\n".join(wanted))
    best, place = 0.0, 0
    for at in range(len(loose) - size + 1):
        matcher.set_seq1("\n".join(loose[at : at + size]))
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, place = ratio, at
    if best < ALIKE:
        return ""
    end = min(place + size + 1, place + NEAREST)
    quoted = "".join(line.rstrip("\n") + "\n" for line in lines[max(0, place - 1) : end])
    return f"; the nearest lines are {max(1, place)} to {end}:\n{quoted}".rstrip("\n")


def declined(text: str) -> str:
    """The reason of an answer that says that there is no better design; "" for any other."""
    found = DECLINED.search(text)
    return (found["why"].strip().rstrip("`*") or "no reason given")[:300] if found and "```" not in text else ""


def words(text: str) -> str:
    """What an answer says beside its code: its first lines, for the record."""
    said = PATCH.sub("", FENCE.sub("", text)).strip()
    return said[:SAID]


def _loose(line: str) -> str:
    """A line up to white space: models lose indentation and trailing blanks, rarely anything else."""
    return " ".join(line.split())


def _reindent(edit: Edit, found: list[str]) -> str:
    """The replacement, moved by as much as the quoted lines were off."""
    quoted = next((line for line in edit.search.splitlines() if line.strip()), "")
    actual = next((line for line in found if line.strip()), "")
    shift = _indent(actual) - _indent(quoted)
    lines = []
    for line in edit.replace.splitlines():
        if line.strip() and shift > 0:
            line = " " * shift + line
        elif line.strip() and shift < 0:
            line = line[min(-shift, _indent(line)) :]
        lines.append(line + "\n")
    return "".join(lines)


def _indented(text: str) -> str:
    return text.strip("\n").replace("\n", "\n  ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _bounded(text: str) -> None:
    if len(text) > LARGEST:
        raise Unreadable(f"the answer has {len(text):,} characters, which no kernel needs")
