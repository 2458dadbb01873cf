"""From the tape to formulas: what one element is, as an expression over elements of tensors.

Sums, maxima, minima and products of many terms become one node each with all their terms, however they were combined (a loop, a tree
in shared memory, shuffles). Expressions are interned: equal ones are one object. `shape` is the same number for expressions
that differ only in which elements they read.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.memory import Memory
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape

NEUTRAL: dict[str, float] = {"sum": 0.0, "max": -math.inf, "min": math.inf, "prod": 1.0}
MOST_NODES = 1_500_000
LOWEST = -3.0e38
MASKED = 1.0e4
"""Numbers below its negative mean minus infinity in an exponent, and in the maximum of at least so many:"""
REDUCED = 4
FAR_BELOW = 1.0e6
"""Beyond this, in any maximum."""


class Term:
    """`kind`: load (op: the memory's name, at: the element), const (at: the number), many (op: sum, max, min, prod), gather, or op."""

    __slots__ = ("args", "at", "kind", "op", "serial", "shape", "type")

    def __init__(self, kind: str, op: str, type: str, at: Any, args: tuple[Term, ...], shape: int, serial: int = 0) -> None:
        self.kind, self.op, self.type, self.at, self.args, self.shape, self.serial = kind, op, type, at, args, shape, serial

    def __repr__(self) -> str:
        if self.kind == "load":
            return f"{self.op}[{self.at}]"
        if self.kind == "const":
            return repr(self.at)
        inner = ", ".join(map(repr, self.args[:6])) + (f", … {len(self.args)}" if len(self.args) > 6 else "")
        return f"{self.op}({inner})"


class Terms:
    """Reads formulas off a tape."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.known: dict[int, Term] = {}
        self._interned: dict[Any, Term] = {}
        self._shapes: dict[Any, int] = {}
        self._assumed: dict[tuple[Term, bool], dict[Term, Term]] = {}

    def make(self, kind: str, op: str, type: str, at: Any = None, args: tuple[Term, ...] = ()) -> Term:
        """An interned expression. The order of what is combined does not count: trees of other lanes have another."""
        if kind == "many" and op in NEUTRAL:
            args = tuple(sorted(args, key=_serial))
        key = (kind, op, type, repr(at) if kind == "const" else at, tuple(map(id, args)))
        found = self._interned.get(key)
        if found is None:
            inner: Any = frozenset(a.shape for a in args) if kind == "many" else tuple(a.shape for a in args)
            if kind == "const":
                inner = "const"
            shape = self._shapes.setdefault((kind, op, type, inner), len(self._shapes))
            found = self._interned[key] = Term(kind, op, type, at, args, shape, len(self._interned))
            if len(self._interned) > MOST_NODES:
                raise Refused(0, "the formula of an element is too long to be read")
        return found

    def of(self, code: int) -> Term:
        """The formula behind a code."""
        known = self.known
        stack = [code]
        pending: dict[int, tuple[str, list[int]]] = {}
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            if top not in pending:
                pending[top] = self._expand(top)
                missing = [c for c in pending[top][1] if (c if c >= 0 else ~c) not in known]
                if missing:
                    stack.extend(c if c >= 0 else ~c for c in missing)
                    continue
            op, children = pending.pop(top)
            known[top] = self._build(top, op, children)
            stack.pop()
        return known[code]

    def _entry(self, code: int) -> tuple[int, int]:
        return divmod(code, self.tape.lanes)

    def _expand(self, code: int) -> tuple[str, list[int]]:
        """The operation and its operands; operands of a sum that are subtracted are complemented."""
        entry, lane = self._entry(code)
        tape = self.tape
        op = tape.ops[entry]
        if op in ("add", "sub"):
            return "sum", self._flat(code, "sum")
        extreme = self._extreme(code)
        if extreme:
            return extreme, self._flat(code, extreme)
        if op == "mul":
            leaves = self._flat(code, "prod")
            if len(leaves) > 8:
                return "prod", leaves
        return op, [int(a[lane]) for a in tape.args[entry]]

    def _extreme(self, code: int) -> str:
        """Whether a node is a maximum or minimum, also when it is written as a choice."""
        entry, lane = self._entry(code)
        op = self.tape.ops[entry]
        if op in ("maximum", "minimum"):
            return op[:3]
        if op != "where":
            return ""
        condition, a, b = (int(x[lane]) for x in self.tape.args[entry])
        compare, x, y = self._comparison(condition)
        if not compare:
            return ""
        larger = compare in ("gt", "ge")
        if self._same(x, a) and self._same(y, b):
            return "max" if larger else "min"
        if self._same(x, b) and self._same(y, a):
            return "min" if larger else "max"
        return ""

    def _comparison(self, code: int) -> tuple[str, int, int]:
        """What a condition compares; `x > y or (x == y and …)` compares x and y, whoever wins a tie."""
        entry, lane = self._entry(code)
        op = self.tape.ops[entry]
        if op in ("gt", "ge", "lt", "le"):
            x, y = (int(v[lane]) for v in self.tape.args[entry])
            return op, x, y
        if op == "logical_or":
            sides = [int(v[lane]) for v in self.tape.args[entry]]
            for first, tie in (sides, sides[::-1]):
                inner, at = self._entry(tie)
                compare, x, y = self._comparison(first) if self.tape.ops[inner] == "logical_and" else ("", 0, 0)
                for part in self.tape.args[inner] if compare else ():
                    equal, place = self._entry(int(part[at]))
                    if self.tape.ops[equal] == "eq" and all(
                        self._same(u, int(v[place])) for u, v in zip((x, y), self.tape.args[equal], strict=True)
                    ):
                        return compare, x, y
        return "", 0, 0

    def _same(self, a: int, b: int) -> bool:
        if a == b:
            return True
        (i, s), (j, t) = self._entry(a), self._entry(b)
        if self.tape.ops[i] != self.tape.ops[j]:
            return False
        if self.tape.ops[i] == "load":
            (m, at), (n, bt) = self.tape.info[i], self.tape.info[j]
            return m is n and at[s] == bt[t]
        return self.tape.ops[i] == "const" and self.tape.info[i][s] == self.tape.info[j][t]

    def _flat(self, code: int, kind: str) -> list[int]:
        """All operands of a tree of one kind of operation."""
        tape, lanes = self.tape, self.tape.lanes
        leaves: list[int] = []
        stack = [code]
        while stack:
            top = stack.pop()
            negative = top < 0
            entry, lane = divmod(~top if negative else top, lanes)
            op = tape.ops[entry]
            if kind == "sum" and op in ("add", "sub") and tape.types[entry][0] in "fbi" and not negative:
                a, b = tape.args[entry]
                right = int(b[lane])
                stack.append(~right if op == "sub" else right)
                stack.append(int(a[lane]))
            elif kind == "prod" and op == "mul" and not negative:
                a, b = tape.args[entry]
                stack += [int(b[lane]), int(a[lane])]
            elif kind in ("max", "min") and self._extreme(top) == kind:
                args = tape.args[entry]
                stack += [int(a[lane]) for a in (args[-1], args[-2])]
            else:
                leaves.append(top)
        return leaves

    def _build(self, code: int, op: str, children: list[int]) -> Term:
        entry, lane = self._entry(code)
        type = self.tape.types[entry]
        info = self.tape.info[entry]
        if op == "load":
            memory, at = info
            return self.make("load", memory.name, type, int(at[lane]))
        if op == "const":
            return self.make("const", "", type, info[lane].item())
        if op == "gather":
            memory = info
            assert isinstance(memory, Memory)
            return self.make("gather", memory.name, type, None, (self.known[children[0]],))
        if op in NEUTRAL:
            return self._many(op, type, children)
        args = tuple(self.known[c] for c in children)
        return self.simplified(op, type, args)

    def simplified(self, op: str, type: str, args: tuple[Term, ...]) -> Term:
        """An operation without what changes nothing."""
        if all(a.kind == "const" for a in args) and op in FOLDED:
            folded = _evaluated(op, type, [a.at for a in args])
            if folded is not None:
                return self.make("const", "", type, folded)
        if op in ("exp", "exp2") and _vanishes(args[0]):
            return self.make("const", "", type, 0.0)
        if op == "where":
            settled = self._where(type, *args)
            if settled is not None:
                return settled
        if op == "logical_not" and args[0].kind == "op" and args[0].op == "logical_not":
            return args[0].args[0]
        if op == "mul":
            for one, other in (args, args[::-1]):
                if one.kind == "const" and one.at == 1:
                    return other
                if one.kind == "const" and one.at == 0 and type[0] in "fb":
                    return one  # an element that a mask left out, or an empty sum, rescaled
                moved = self._rescaled(type, one, other)
                if moved is not None:
                    return moved
        if op == "where" and type[0] in "iu":
            found = self._argument(type, *args)
            if found is not None:
                return found
        if op == "div" and args[1].kind == "const" and args[1].at == 1:
            return args[0]
        if op == "neg" and args[0].kind == "const":
            return self.make("const", "", type, -args[0].at)
        return self.make("op", op, type, None, args)

    def _rescaled(self, type: str, total: Term, factor: Term) -> Term | None:
        """`sum(exp(x - m)) * exp(m - h)` is `sum(exp(x - h))`: an online softmax is a softmax."""
        difference = factor.args[0] if factor.kind == "op" and factor.op == "exp" else None
        if difference is None or difference.kind != "many" or difference.op != "sum" or len(difference.args) != 2:
            return None
        old, new = sorted(difference.args, key=lambda a: a.kind == "op" and a.op == "neg")
        if new.kind != "op" or new.op != "neg":
            return None
        gone = self.make("op", "neg", old.type, None, (old,))
        moved = [self._moved(t, gone, new) for t in terms_of(total, "sum")]
        if not moved or any(t is None for t in moved):
            return None
        kept = tuple(t for t in moved if t is not None)
        return kept[0] if len(kept) == 1 else self.make("many", "sum", type, None, kept)

    def _moved(self, term: Term, gone: Term, new: Term) -> Term | None:
        if term.kind != "op":
            return None
        if term.op == "exp":
            inner = term.args[0]
            if inner.kind != "many" or gone not in inner.args:
                return None
            rest = tuple(new if a is gone else a for a in inner.args)
            return self.make("op", "exp", term.type, None, (self.make("many", "sum", inner.type, None, rest),))
        if term.op in ("mul", "cast"):  # through a cast: the same but for one rounding
            for k, arg in enumerate(term.args):
                found = self._moved(arg, gone, new)
                if found is not None:
                    return self.make("op", term.op, term.type, None, (*term.args[:k], found, *term.args[k + 1 :]))
        return None

    # ------------------------------------------------------------ choices by data

    def _where(self, type: str, condition: Term, a: Term, b: Term) -> Term | None:
        """A choice in which each side knows what was chosen."""
        if condition.kind == "op" and condition.op == "logical_not":
            return self.simplified("where", type, (condition.args[0], b, a))
        if condition.kind == "const":
            return a if condition.at else b
        if a is b:
            return a
        x, y = self._given(a, condition, True), self._given(b, condition, False)
        if x is y:
            return x
        return self.simplified("where", type, (condition, x, y)) if (x, y) != (a, b) else None

    def _given(self, term: Term, condition: Term, holds: bool) -> Term:
        """An expression where a condition is known to hold, or not to."""
        key = (condition, holds)
        known = self._assumed.setdefault(key, {})
        stack = [term]
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            if top is condition:
                known[top] = self.make("const", "", "bool", holds)
                continue
            if not top.args:
                known[top] = top
                continue
            if top.kind == "op" and top.op == "where" and top.args[0] is condition:
                inner = top.args[1 if holds else 2]
                if inner in known:
                    known[top] = known[inner]
                    stack.pop()
                else:
                    stack.append(inner)
                continue
            missing = [a for a in top.args if a not in known]
            if missing:
                stack.extend(missing)
                continue
            args = tuple(known[a] for a in top.args)
            if top.kind == "gather":
                args = (self._safe(args[0], condition, holds),)
            known[top] = top if args == top.args else self.rebuilt(top, args)
            stack.pop()
        return known[term]

    def _safe(self, index: Term, condition: Term, holds: bool) -> Term:
        """A position that is read under a condition; where it fails, what data says of the position may lie outside."""
        if index.kind == "many" and index.op == "sum":
            return self.make("many", "sum", index.type, None, tuple(self._safe(a, condition, holds) for a in index.args))
        if index.kind == "const":
            return index
        sides = (index, self.make("const", "", index.type, 0))
        return self.make("op", "where", index.type, None, (condition, *(sides if holds else sides[::-1])))

    def rebuilt(self, term: Term, args: tuple[Term, ...]) -> Term:
        """The same operation of other operands."""
        if term.kind == "many" and term.op in NEUTRAL:
            return self._combined(term.op, term.type, [(a, False) for a in args])
        if term.kind == "op":
            return self.simplified(term.op, term.type, args)
        return self.make(term.kind, term.op, term.type, term.at, args)

    def _argument(self, type: str, condition: Term, a: Term, b: Term) -> Term | None:
        """The position of the largest of many: a choice of positions by a comparison of what stands there."""
        found = _compares(condition)
        if found is None:
            return None
        compare, x, y = found
        if (
            b.kind == "op"
            and b.op == "where"
            and b.args[0].kind == "op"
            and b.args[0].op == "eq"
            and set(b.args[0].args) == {x, y}
        ):
            inner = b.args[1]  # a tie goes to the smaller position, which is the first
            if (inner.kind == "op" and inner.op in ("where", "minimum")) or (inner.kind == "many" and inner.op == "min"):
                b = b.args[2]
        op = "max" if compare in ("gt", "ge") else "min"
        first, second = self._pairs(op, x, a), self._pairs(op, y, b)
        if first is None or second is None:
            return None
        if not second:
            return a
        return self.make("many", f"arg{op}", type, None, (*second, *first))

    def _pairs(self, op: str, value: Term, index: Term) -> tuple[Term, ...] | None:
        values = terms_of(value, op)
        if index.kind == "many" and index.op == f"arg{op}" and len(index.args) == len(values):
            return index.args
        if index.kind == "const" and len(values) <= 1:
            return tuple(self.make("op", "pair", index.type, None, (v, index)) for v in values)
        return None

    def _many(self, op: str, type: str, children: list[int]) -> Term:
        return self._combined(op, type, [(self.known[child if child >= 0 else ~child], child < 0) for child in children])

    def _combined(self, op: str, type: str, children: list[tuple[Term, bool]]) -> Term:
        """One term of many; those marked are subtracted."""
        terms: list[Term] = []
        constant: float | int | None = None
        for term, negative in children:
            if negative:
                term = self.simplified("neg", type, (term,))
            for part in term.args if term.kind == "many" and term.op == op else (term,):
                if part.kind == "const":
                    constant = part.at if constant is None else _fold(op, constant, part.at)
                else:
                    terms.append(part)
        if op in ("max", "min"):
            terms = list(dict.fromkeys(terms))
            small = MASKED if len(terms) >= REDUCED else FAR_BELOW
            if terms and constant is not None and abs(constant) >= small and (constant < 0) == (op == "max"):
                constant = None  # what a mask put in the place of elements
        if op == "sum" and type[0] in "iu" and terms:
            constant = constant or 0  # positions: a zero among other offsets is one of them
            terms.append(self.make("const", "", type, constant))
        elif constant is not None and not _neutral(op, constant):
            terms.append(self.make("const", "", type, constant))
        if op == "sum" and len(terms) > 1:
            terms = self._factored(type, terms)
        if not terms:
            return self.make("const", "", type, constant if constant is not None else NEUTRAL[op])
        return terms[0] if len(terms) == 1 else self.make("many", op, type, None, tuple(terms))

    def _factored(self, type: str, terms: list[Term]) -> list[Term]:
        """`sum(a) / c + sum(b) / c` is `sum(a, b) / c`: partial sums that were scaled one by one are one sum again."""
        groups: dict[tuple[str, Term], list[Term]] = {}
        for term in terms:
            if term.kind == "op" and term.op in ("div", "mul") and term.args[1].kind == "const" and term.args[0].kind == "many":
                groups.setdefault((term.op, term.args[1]), []).append(term)
        kept = list(terms)
        for (op, scale), members in groups.items():
            if len(members) > 1:
                inner = tuple(t for m in members for t in terms_of(m.args[0], "sum"))
                kept = [t for t in kept if t not in members]
                kept.append(self.simplified(op, type, (self.make("many", "sum", type, None, inner), scale)))
        return kept


def _compares(condition: Term) -> tuple[str, Term, Term] | None:
    """The two numbers that a condition compares, ties aside."""
    if condition.kind != "op":
        return None
    if condition.op in ("gt", "ge", "lt", "le"):
        return condition.op, *condition.args  # type: ignore[return-value]
    if condition.op == "logical_or":
        for first, tie in (condition.args, condition.args[::-1]):
            if first.op in ("gt", "lt") and tie.op == "logical_and":
                equal, order = tie.args if tie.args[0].op == "eq" else tie.args[::-1]
                if (
                    equal.op == "eq"
                    and set(equal.args) == set(first.args)
                    and order.op in ("lt", "le")
                    and order.type == "bool"
                ):
                    return first.op, *first.args  # type: ignore[return-value]
    return None


def _serial(term: Term) -> int:
    return term.serial


def _vanishes(term: Term) -> bool:
    """Whether an exponent is minus infinity for all purposes: a mask's number, less a maximum."""
    if term.kind == "const":
        return bool(term.at <= -MASKED)
    return term.kind == "many" and term.op == "sum" and any(a.kind == "const" and a.at <= -MASKED for a in term.args)


FOLDED = ("add", "sub", "mul", "div", "neg", "exp", "exp2", "cast", "maximum", "minimum", "sqrt", "rsqrt", "abs", "log", "log2")


def _evaluated(op: str, type: str, numbers: list[Any]) -> Any:
    """An operation on constants of floating type; None where that is not for us to do."""
    if type not in ("f16", "bf16", "f32", "f64") or any(isinstance(n, bool) for n in numbers):
        return None
    kind: Any = {"f16": np.float16, "f64": np.float64}.get(type, np.float32)
    table: dict[str, Any] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "exp": np.exp, "exp2": np.exp2,
        "maximum": np.maximum, "minimum": np.minimum, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "abs": np.abs, "log": np.log,
        "log2": np.log2, "cast": lambda x: x,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        made = float(table[op](*(kind(n) for n in numbers)))
    return made if type != "bf16" or made == 0 or op == "neg" else None


def _fold(op: str, a: Any, b: Any) -> Any:
    return a + b if op == "sum" else a * b if op == "prod" else max(a, b) if op == "max" else min(a, b)


def _neutral(op: str, value: Any) -> bool:
    if op == "max":
        return bool(value <= LOWEST)
    if op == "min":
        return bool(value >= -LOWEST)
    return bool(value == NEUTRAL[op])


def terms_of(term: Term, op: str) -> list[Term]:
    """The operands of a term seen as a sum (maximum …) of some number of operands."""
    if term.kind == "many" and term.op == op:
        return list(term.args)
    if term.kind == "const" and _neutral(op, term.at):
        return []
    return [term]
