"""CUDA C++ as C++: what g++ cannot read becomes calls into the emulator. In: source. Out: source with the same lines.

* `kernel<T><<<grid, block, shared, stream>>>(a, b)` → `::kw::Launch(…)([&](auto... v) { kernel<T>(v...); }, a, b)`
* `__shared__ float tile[32][33];` → a reference into the block's shared memory; `extern __shared__` → its dynamic part
* `threadIdx.x` and its relatives → functions that the checks do not see as memory accesses
* `#pragma unroll` → GCC's; `asm("…" : …)` → the emulator's reading of PTX
"""

from __future__ import annotations

import re
from itertools import count

from kernelwright.compiler.backends.cuda_c.emulator.tokens import Token, joined, tokenize

_PLACES = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_BEFORE_SHARED = frozenset({"extern", "static", "volatile", "const", "__align__", "alignas", "constexpr"})
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


def rewrite(source: str) -> str:
    """The whole source. Line numbers stay, so that compiler messages and reports name the author's lines."""
    return joined(_Rewriter(tokenize(source), count()).run())


class _Rewriter:
    """Walks the tokens once; `numbers` gives each shared array of a source a number of its own."""

    def __init__(self, tokens: list[Token], numbers: count[int]) -> None:
        self.tokens = tokens
        self.numbers = numbers

    def run(self) -> list[Token]:
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.kind == "directive":
                token.text = self.directive(token.text)
            elif token.kind == "word":
                at = self.word(at, token)
                continue
            elif token.text == "<<<":
                self.launch(at)
            at += 1
        return self.tokens

    def word(self, at: int, token: Token) -> int:
        """Rewrites what begins with this word; returns where to go on."""
        if token.text in _PLACES:
            dot = self.next(at)
            axis = self.next(dot) if dot is not None else None
            if dot is not None and axis is not None and self.tokens[dot].text == "." and self.tokens[axis].text in "xyz":
                token.text = f"kw_{token.text}_{self.tokens[axis].text}()"
                self.erase(at + 1, axis + 1)
                return axis + 1
        elif token.text == "__shared__":
            return self.shared(at)
        elif token.text == "__noinline__":  # not a macro: the C++ library spells an attribute so
            token.text = "__attribute__((noinline))"
        elif token.text in ("__restrict__", "__restrict"):  # a hint, and one that GCC cannot capture in a lambda by reference
            token.text = ""
        elif token.text in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel"):
            self.untyped(at)
        elif token.text in ("asm", "__asm__", "__asm"):
            self.assembly(at)
        return at + 1

    def directive(self, text: str) -> str:
        pragma = re.match(r"#\s*pragma\s+unroll\b\s*\(?\s*([\w+\-*/ ]*?)\s*\)?\s*$", text)
        if pragma is not None:
            return f"#pragma GCC unroll {pragma.group(1) or 64}"
        define = re.match(r"#\s*define\s+\w+(\([^)]*\))?", text)
        if define is not None:
            body = _Rewriter(tokenize(text[define.end() :]), self.numbers).run()
            return define.group(0) + joined(body)
        return text

    # ------------------------------------------------------------ walking

    def next(self, at: int | None, step: int = 1) -> int | None:
        """The next (or previous) token that is code."""
        if at is None:
            return None
        at += step
        while 0 <= at < len(self.tokens):
            if self.tokens[at].code and self.tokens[at].text:
                return at
            at += step
        return None

    def close(self, at: int) -> int | None:
        """The token that closes the bracket at `at`."""
        depth = 0
        for k in range(at, len(self.tokens)):
            if self.tokens[k].kind == "mark":
                depth += self.tokens[k].text in _OPEN
                depth -= self.tokens[k].text in _CLOSE
                if depth == 0:
                    return k
        return None

    def erase(self, start: int, stop: int) -> None:
        """Takes code away but keeps the line breaks."""
        for token in self.tokens[start:stop]:
            token.text = "\n" * token.text.count("\n")

    # ------------------------------------------------------------ launches

    def launch(self, at: int) -> None:
        first = self.callee(at)
        stop = self.launch_end(at)
        bracket = self.next(stop)
        if first is None or stop is None or bracket is None or self.tokens[bracket].text != "(":
            return
        last = self.close(bracket)
        if last is None:
            return
        name = joined(self.tokens[first:at]).strip()
        plain = " ".join(name.split())
        label = re.sub(r"<.*", "", plain)
        empty = self.next(bracket) == last
        self.erase(first, at)
        self.tokens[first].text = f'::kw::Launch(__LINE__, "{label}", '
        self.tokens[at].text = ""
        self.tokens[stop].text = ")" + _described(plain)
        lambda_text = f"[&](auto... kw_v) {{ {plain}(kw_v...); }}"
        self.tokens[bracket].text = f"({lambda_text}" + ("" if empty else ", ")

    def launch_end(self, at: int) -> int | None:
        depth = 0
        for k in range(at + 1, len(self.tokens)):
            token = self.tokens[k]
            if token.kind == "mark":
                depth += token.text in _OPEN
                depth -= token.text in _CLOSE
                if token.text == ">>>" and depth == 0:
                    return k
                if token.text == ";" and depth == 0:
                    return None
        return None

    def callee(self, at: int) -> int | None:
        """Where the expression before `<<<` begins: names, `::`, template arguments, or something in parentheses."""
        k = self.next(at, -1)
        first: int | None = None
        while k is not None:
            token = self.tokens[k]
            if token.text == ")":
                depth = 0
                while k >= 0:
                    if self.tokens[k].kind == "mark":
                        depth += self.tokens[k].text == ")"
                        depth -= self.tokens[k].text == "("
                    if depth == 0:
                        break
                    k -= 1
                return k
            if token.kind == "mark" and token.text in (">", ">>", ">>>"):
                k = self.template_open(k)
                if k is None:
                    return None
            elif token.kind == "word" and token.text not in ("return", "else", "do"):
                first = k
                before = self.next(k, -1)
                if before is None or self.tokens[before].text not in ("::", ".", "->"):
                    return first
                k = before
                first = k if self.tokens[before].text == "::" else first
            else:
                return first
            k = self.next(k, -1)
        return first

    def template_open(self, at: int) -> int | None:
        depth = 0
        for k in range(at, -1, -1):
            text = self.tokens[k].text
            if self.tokens[k].kind == "mark":
                if text and set(text) == {">"}:
                    depth += len(text)
                elif text and set(text) == {"<"}:
                    depth -= len(text)
                elif text in (";", "{"):
                    return None
                if depth <= 0:
                    return k
        return None

    def untyped(self, at: int) -> None:
        """`cudaLaunchKernel((void*)kernel, …)`: without the cast, because the emulator calls the function with its own types."""
        bracket = self.next(at)
        first = self.next(bracket)
        if bracket is None or first is None or self.tokens[bracket].text != "(":
            return
        if self.tokens[first].text in ("reinterpret_cast", "static_cast"):
            stop = next((k for k in range(first, len(self.tokens)) if self.tokens[k].text == ">"), None)
            if stop is not None:
                self.erase(first, stop + 1)
        elif self.tokens[first].text == "(":
            stop = self.close(first)
            if stop is not None and "void" in (token.text for token in self.tokens[first:stop]):
                self.erase(first, stop + 1)
        name = re.match(r"[\s(&]*([\w:]+)", joined(self.tokens[bracket + 1 : bracket + 40]))
        together = self.tokens[at].text == "cudaLaunchCooperativeKernel"
        self.tokens[at].text = "::kw::launch_together" if together else "::kw::launch_by_address"
        self.tokens[bracket].text = f'(__LINE__, "{name.group(1) if name else ""}", '

    # ------------------------------------------------------------ shared memory

    def shared(self, at: int) -> int:
        """One declaration: `[extern] __shared__ type a[n], b[m];` with its words in any order."""
        start = at
        k = self.next(at, -1)
        while k is not None and (self.tokens[k].kind == "word" or self.tokens[k].text in (")", ">")):
            if self.tokens[k].text == ")":  # __align__(16) before the word
                opening = next(j for j in range(k, -1, -1) if self.tokens[j].text == "(")
                before = self.next(opening, -1)
                if before is None or self.tokens[before].text not in ("__align__", "alignas"):
                    break
                k = before
            elif self.tokens[k].text not in _BEFORE_SHARED and not self.before_is_start(k):
                break  # something else of this statement: leave it where it is
            start = k
            k = self.next(k, -1)
        stop = self.statement_end(at)
        if stop is None:
            return at + 1
        words = [t for t in self.tokens[start:stop] if t.code and t.text]
        dynamic = any(t.text == "extern" for t in words)
        text = self.declaration([t for t in words if t.text not in ("extern", "static", "__shared__")], dynamic)
        if text is None:
            return at + 1
        self.erase(start, stop)
        self.tokens[start].text = text
        return stop

    def statement_end(self, at: int) -> int | None:
        """The semicolon of this statement; those inside of braces (`__shared__ union { … } storage;`) are not it."""
        depth = 0
        for k in range(at, len(self.tokens)):
            if self.tokens[k].kind == "mark":
                depth += (self.tokens[k].text == "{") - (self.tokens[k].text == "}")
                if self.tokens[k].text == ";" and depth <= 0:
                    return k
        return None

    def before_is_start(self, at: int) -> bool:
        before = self.next(at, -1)
        return before is not None and self.tokens[before].text in (";", "{", "}", "extern", "static", "volatile")

    def declaration(self, words: list[Token], dynamic: bool) -> str | None:
        parts: list[list[str]] = [[]]
        depth = angle = 0
        skip = 0
        for position, token in enumerate(words):
            if skip:
                skip -= 1
                continue
            text = token.text
            if text in ("__align__", "alignas"):
                inner, k = 0, position + 1
                while k < len(words):
                    inner += (words[k].text == "(") - (words[k].text == ")")
                    k += 1
                    if inner == 0:
                        break
                skip = k - position - 1
                continue
            if token.kind == "mark":
                depth += (text in _OPEN) - (text in _CLOSE)
                if depth == 0:
                    angle += (text == "<") - (text == ">") - 2 * (text == ">>")
                if text == "," and depth == 0 and angle == 0:
                    parts.append([])
                    continue
            parts[-1].append(text)
        first = parts[0]
        name_at = self.name_position(first)
        if name_at is None:
            return None
        kind = " ".join(first[:name_at])
        out = []
        for number, part in enumerate(parts):
            pieces = part[name_at:] if number == 0 else part
            while pieces and pieces[0] == "*":  # an array of pointers, or a shared pointer
                kind_here, pieces = kind + "*", pieces[1:]
                break
            else:
                kind_here = kind
            name, dims = pieces[0], pieces[1:]
            if "=" in dims:
                dims = dims[: dims.index("=")]
            if dynamic:
                rest = "".join(dims[2:])
                out.append(
                    f"typedef {kind_here} kw_type_{name}{rest}; kw_type_{name}* {name} = (kw_type_{name}*)kw_dynamic_shared()"
                )
            else:
                out.append(
                    f"typedef {kind_here} kw_type_{name}{''.join(_spaced(dims))}; kw_type_{name}& {name} = "
                    f"*(kw_type_{name}*)kw_static_shared({next(self.numbers)}, sizeof(kw_type_{name}))"
                )
        return "; ".join(out)

    @staticmethod
    def name_position(part: list[str]) -> int | None:
        """Where in a declaration the declared name stands: before the first bracket or `=`, else last."""
        depth = braces = 0
        for k, text in enumerate(part):
            braces += (text == "{") - (text == "}")
            if text in ("[", "=") and depth == 0 and braces == 0:
                return k - 1
            depth += text.count("<") - text.count(">") if set(text) <= {"<", ">"} else 0
        return len(part) - 1 if part else None

    # ------------------------------------------------------------ inline PTX

    def assembly(self, at: int) -> None:
        bracket = self.next(at)
        while bracket is not None and self.tokens[bracket].text in ("volatile", "__volatile__"):
            self.tokens[bracket].text = ""
            bracket = self.next(bracket)
        if bracket is None or self.tokens[bracket].text != "(":
            return
        last = self.close(bracket)
        if last is None:
            return
        sections: list[list[Token]] = [[]]
        depth = 0
        for token in self.tokens[bracket + 1 : last]:
            if not token.code:
                continue
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
            if depth == 0 and token.kind == "mark" and token.text in (":", "::"):
                sections += [[] for _ in token.text]
                continue
            sections[-1].append(token)
        template = " ".join(t.text for t in sections[0])
        operands: list[str] = []
        for section in sections[1:3]:
            text = " ".join(t.text for t in section)
            for constraint, value in _operands(text):
                operands.append(f"::kw::ptx_{'out' if constraint[:1] in '=+' else 'in'}({value})")
        line_breaks = "\n" * sum(t.text.count("\n") for t in self.tokens[bracket : last + 1])
        self.erase(bracket, last + 1)
        self.tokens[at].text = f"::kw::ptx({', '.join([template, *operands])}){line_breaks}"
        for token in self.tokens[bracket : last + 1]:
            token.text = ""


def _described(callee: str) -> str:
    """The explicit template arguments of a launch, to be told to whoever observes launches."""
    _, opened, rest = callee.partition("<")
    if not opened or not rest.endswith(">"):
        return ""
    parts, depth = [""], 0
    for mark in rest[:-1]:
        depth += (mark in "<([{") - (mark in ">)]}")
        if mark == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    told = " + ".join(f"::kw::described<{part.strip()}>()" for part in parts if part.strip())
    return f".templates({told})" if told else ""


def _spaced(words: list[str]) -> list[str]:
    return [f" {word}" if word[:1].isalnum() or word[:1] == "_" else word for word in words]


def _operands(text: str) -> list[tuple[str, str]]:
    """`"=r"(x), "r"(y)` as pairs of constraint and expression."""
    found: list[tuple[str, str]] = []
    at = 0
    while (match := re.compile(r'\s*,?\s*(?:\[\s*\w+\s*\]\s*)?"([^"]*)"\s*\(').match(text, at)) is not None:
        depth, k = 1, match.end()
        while depth and k < len(text):
            depth += (text[k] == "(") - (text[k] == ")")
            k += 1
        found.append((match.group(1), text[match.end() : k - 1].strip()))
        at = k
    return found
