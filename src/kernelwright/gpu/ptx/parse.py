"""Tokens in, a Module out: directives, variables and functions here, bodies in `body`."""

from __future__ import annotations

import re
from dataclasses import replace

from kernelwright.gpu.ptx.body import Files, parse_body
from kernelwright.gpu.ptx.lex import BEGIN_ASM, END_ASM, tokens
from kernelwright.gpu.ptx.nodes import Function, Module, Parameter, Variable
from kernelwright.gpu.ptx.stream import Stream
from kernelwright.gpu.ptx.types import TYPE_BYTES
from kernelwright.gpu.ptx.variables import SPACES, extent, variables
from kernelwright.gpu.ptx.wmma import without_wmma

_LINKAGE = {".extern", ".visible", ".weak", ".common"}
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"((?:[^"\\]|\\.)*)"(?:[ \t]+"((?:[^"\\]|\\.)*)")?', re.MULTILINE)


def parse(text: str, name: str = "ptx") -> Module:
    """Read a module; PtxError with the line where the text is not PTX. `name` is how errors call it."""
    words, lines = tokens(text)
    return _Reader(Stream(words, lines, name), _files(text)).module()


def _files(text: str) -> Files:
    """The table of source files, which stands at the end of the text, after all that refers to it."""
    return {
        int(number): f"{folder}/{rest}" if rest and not rest.startswith("/") else rest or folder
        for number, folder, rest in _FILE.findall(text)
    }


class _Reader:
    def __init__(self, stream: Stream, files: Files) -> None:
        self.s = stream
        self.files = files
        self.variables: list[Variable] = []
        self.functions: list[Function] = []
        self.version = self.target = ""

    def module(self) -> Module:
        s = self.s
        while not s.done:
            word = s.next()
            if word == ".version":
                self.version = s.next()
            elif word == ".target":
                self.target = s.next()
                while s.take(","):
                    s.next()
            elif word == ".address_size":
                if s.next() != "64":
                    raise s.error("only 64-bit addresses are known")
            elif word == ".file":
                s.skip_line()
            elif word == ".section":
                s.next()
                s.skip_braces()
            elif word in (";", BEGIN_ASM, END_ASM):
                continue
            elif word in (".pragma", ".alias"):
                s.skip_to(";")
            elif word in (".loc", "@@DWARF"):
                s.skip_line()
            else:
                self._declaration(word)
        return Module(self.version, self.target, tuple(self.variables), tuple(self.functions), self.files)

    def _declaration(self, word: str) -> None:
        s = self.s
        external = False
        while word in _LINKAGE:
            external |= word == ".extern"
            word = s.next()
        if word in (".entry", ".func"):
            self.functions.append(without_wmma(self._function(word == ".entry")))
        elif word in SPACES:
            self.variables += variables(s, word, external=external)
        else:
            raise s.error(f"'{word}' is not a directive of PTX")

    def _function(self, entry: bool) -> Function:
        s = self.s
        line = s.line
        results = self._parameters() if s.peek() == "(" else ()
        while s.peek().startswith("."):  # .attribute and the like before the name
            s.next()
            if s.peek() == "(":
                s.skip_parentheses()
        name = s.next()
        parameters = self._parameters() if s.peek() == "(" else ()
        directives: dict[str, tuple[int, ...]] = {}
        while not s.done and s.peek() not in ("{", ";"):
            word = s.next()
            if not word.startswith("."):
                raise s.error(f"'{word}' does not belong into the head of {name}")
            values = []
            while s.peek()[0].isdigit():
                values.append(int(s.next(), 0))
                s.take(",")
            if word == ".pragma":
                s.skip_to(";")
            directives[word[1:]] = tuple(values)
        shell = Function(name, entry, parameters, results, (), {}, (), directives, {}, line)
        if s.take(";"):
            return replace(shell, declared_only=True)
        return parse_body(s, shell, self.files)

    def _parameters(self) -> tuple[Parameter, ...]:
        s = self.s
        s.expect("(")
        found: list[Parameter] = []
        offset = 0
        while not s.take(")"):
            s.take(",")
            if s.next() not in (".param", ".reg"):
                raise s.error("a parameter starts with .param")
            align, pointer, kind = 0, "", ""
            while s.peek().startswith("."):
                word = s.next()[1:]
                if word == "align":
                    # `.ptr .align` speaks of what is pointed to, `.align` alone of the parameter
                    value = int(s.next())
                    align = align if pointer else value
                elif word == "ptr":
                    pointer = "generic"
                elif f".{word}" in SPACES and pointer:
                    pointer = word
                elif word in TYPE_BYTES:
                    kind = word
                else:
                    raise s.error(f"'.{word}' is not known on a parameter")
            name = s.next()
            count = extent(s)
            size = TYPE_BYTES[kind] * (1 if count is None else count)
            align = align or TYPE_BYTES[kind]
            offset = -(-offset // align) * align
            found.append(Parameter(name, kind, size, align, offset, pointer))
            offset += size
        return tuple(found)
