"""A cursor over tokens, with what every part of the parser asks of it."""

from __future__ import annotations

import struct

from kernelwright.core.errors import PtxError
from kernelwright.gpu.ptx.nodes import Immediate, Symbol


class Stream:
    """Tokens and a position. Errors name the text and the line of the token that was read last."""

    def __init__(self, words: list[str], lines: list[int], name: str) -> None:
        self.words, self.lines, self.name = words, lines, name
        self.at = 0

    @property
    def done(self) -> bool:
        """Whether all is read."""
        return self.at >= len(self.words)

    @property
    def line(self) -> int:
        """The line of the token that was read last."""
        return self.lines[min(max(self.at - 1, 0), len(self.lines) - 1)] if self.lines else 1

    def error(self, reason: str, line: int = 0) -> PtxError:
        """An error here."""
        return PtxError(reason, path=self.name, line=line or self.line)

    def peek(self) -> str:
        """The next token, not yet taken."""
        if self.at >= len(self.words):
            raise self.error("the text ends in the middle of a statement")
        return self.words[self.at]

    def next(self) -> str:
        """The next token."""
        word = self.peek()
        self.at += 1
        return word

    def take(self, word: str) -> bool:
        """Take the next token if it is this one."""
        if self.at < len(self.words) and self.words[self.at] == word:
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        """Take the next token, which must be this one."""
        found = self.next()
        if found != word:
            raise self.error(f"'{word}' was expected, '{found}' found")

    def skip_to(self, word: str) -> None:
        """Past the next such token."""
        while self.next() != word:
            pass

    def skip_line(self) -> None:
        """Past the rest of this line."""
        line = self.line
        while not self.done and self.lines[self.at] == line:
            self.at += 1

    def skip_braces(self) -> None:
        """Past a braced group."""
        self._skip("{", "}")

    def skip_parentheses(self) -> None:
        """Past a parenthesised group."""
        self._skip("(", ")")

    def _skip(self, opening: str, closing: str) -> None:
        self.expect(opening)
        depth = 1
        while depth:
            word = self.next()
            depth += (word == opening) - (word == closing)

    def initialiser(self) -> tuple[int | Symbol, ...]:
        """What stands after `=`: nested braces are flattened, as memory is. Floats become their bits."""
        if not self.take("{"):
            return (self._initial_value(),)
        found: list[int | Symbol] = []
        while not self.take("}"):
            if self.peek() == "{":
                found += self.initialiser()
            elif not self.take(","):
                found.append(self._initial_value())
        return tuple(found)

    def _initial_value(self) -> int | Symbol:
        word = self.next()
        if word == "-":
            return -int(self.next(), 0)
        if word == "generic":
            self.expect("(")
            name = self.next()
            self.expect(")")
            return Symbol(name, int(self.next(), 0) if self.take("+") else 0)
        if word[0].isdigit():
            return number(word).value
        return Symbol(word, int(self.next(), 0) if self.take("+") else 0)


def number(word: str) -> Immediate:
    """A literal: integers as they are, floats as their bits."""
    head = word[:2].lower()
    if head == "0f" and len(word) == 10:
        return Immediate(int(word[2:], 16), "f32")
    if head == "0d" and len(word) == 18:
        return Immediate(int(word[2:], 16), "f64")
    if "." in word:
        return Immediate(struct.unpack("<Q", struct.pack("<d", float(word)))[0], "f64")
    word = word.rstrip("U")
    if len(word) > 1 and word[0] == "0" and word[1] not in "xX":
        return Immediate(int(word, 8))
    return Immediate(int(word, 0))
