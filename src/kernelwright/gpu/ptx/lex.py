"""Text in, tokens with their lines out: one regular expression, since modules run to tens of thousands of lines."""

from __future__ import annotations

import re

BEGIN_ASM, END_ASM = "// begin inline asm", "// end inline asm"

_TOKEN = re.compile(
    r"""
    \n
  | //[ \t]*(?:begin|end)[ \t]inline[ \t]asm
  | //[^\n]*
  | /\*.*?\*/
  | "(?:[^"\\]|\\.)*"
  | [A-Za-z_$%][\w$]*(?:\.\w+(?:::\w+)*)*     # names, opcodes with modifiers, %tid.x
  | \.\w+(?:::\w+)*                           # directives and types
  | 0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F]) | 0[dD][0-9a-fA-F]{16}
  | 0[xX][0-9a-fA-F]+U? | \d+\.\d+(?:[eE][-+]?\d+)? | \d+U?
  | [^\sA-Za-z0-9]
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> tuple[list[str], list[int]]:
    """Tokens, and the line of each. Comments are left out, save the two marks of inline assembly."""
    words: list[str] = []
    lines: list[int] = []
    line = 1
    for word in _TOKEN.findall(text):
        if word == "\n":
            line += 1
        elif word.startswith("//"):
            if word.endswith("inline asm"):
                words.append(BEGIN_ASM if "begin" in word else END_ASM)
                lines.append(line)
        elif word.startswith("/*"):
            line += word.count("\n")
        else:
            words.append(word)
            lines.append(line)
            if word[0] == '"':
                line += word.count("\n")
    return words, lines
