"""C++ text as tokens. In: source. Out: tokens whose texts joined are the source again.

Only what a rewriter must not confuse is told apart: comments, strings (raw ones too), characters, directives, words, numbers and
punctuation. `<<<` and `>>>` are one token each, because only CUDA's launches write them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'(?=[0-9A-Fa-f])|[A-Za-z0-9_.])*)
  | (?P<mark2><<<|>>>|::|->\*?|\.\.\.|[-+*/%&|^=!<>]=|&&|\|\||<<|\+\+|--)
  | (?P<mark1>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"#(?:\\\r?\n|/\*.*?\*/|//[^\n]*|[^\n])*", re.DOTALL)


@dataclass
class Token:
    """One piece of text. `kind`: space, comment, string, char, word, number, mark or directive."""

    kind: str
    text: str
    line: int

    @property
    def code(self) -> bool:
        """True for what the compiler proper sees: neither space, comment nor directive."""
        return self.kind not in ("space", "comment", "directive")


def tokenize(source: str) -> list[Token]:
    """All tokens of a source, in order."""
    tokens: list[Token] = []
    at, line, fresh = 0, 1, True
    while at < len(source):
        directive = _DIRECTIVE.match(source, at) if fresh and source[at] == "#" else None
        if directive is not None:
            kind, text = "directive", directive.group(0)
        else:
            match = _TOKEN.match(source, at)
            assert match is not None
            kind, text = match.lastgroup or "mark", match.group(0)
            kind = {"raw": "string", "mark1": "mark", "mark2": "mark", "mark": "string"}.get(kind, kind)
        tokens.append(Token(kind, text, line))
        if kind == "space":
            fresh = fresh or "\n" in text
        elif kind != "comment":
            fresh = False
        line += text.count("\n")
        at += len(text)
    return tokens


def joined(tokens: list[Token]) -> str:
    """The text again."""
    return "".join(token.text for token in tokens)
