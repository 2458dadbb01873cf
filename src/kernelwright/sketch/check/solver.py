"""Claims put to an SMT solver (z3), for what the index algebra does not decide: products of sizes, quotients by sizes, positions that
are computed.

In: a claim and the sketch's sizes. Out: it holds for all of them; or values of all names that break it; or nobody knows in the time
there is. Floor division by anything becomes a quotient and a remainder of their own, with what defines them. z3 is an extra of the
package; without it nothing is decided here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.sketch import nodes
from kernelwright.sketch.check.claims import SECOND, Claim, broken, met
from kernelwright.sketch.check.races import Access, Meeting
from kernelwright.sketch.nodes import For, Index, IndexOp, Int, Sym, Tile

QUERY_SECONDS = 2.0
TOTAL_SECONDS = 20.0
"""For all claims of a sketch."""
SMALL = (2, 9, 70)
"""How far above the least size a counterexample is looked for first: a small one tells more, and is found sooner."""
QUICK_SECONDS = 0.3
"""For the first question and for small sizes; most are answered at once."""


def available() -> bool:
    """Whether the solver is installed."""
    return importlib.util.find_spec("z3") is not None


class NotDecided(Exception):
    """Neither shown nor broken: too hard, too slow, or dependent on data."""


@dataclass
class Solver:
    """For one sketch; `ends` is when its time is over."""

    sizes: Sequence[nodes.Size]
    tunables: Sequence[nodes.Tunable]
    shapes: Mapping[str, tuple[Index, ...]]
    bases: Mapping[str, str]
    ends: float = field(default_factory=lambda: time.monotonic() + TOTAL_SECONDS)

    def counterexample(self, claim: Claim) -> dict[str, int] | None:
        """Values that break the claim, checked by exact arithmetic; None when it holds for all. Raises NotDecided."""
        if not available():
            raise NotDecided
        query = _Query(self, claim)
        found: dict[str, int] | None = None
        for limit, most in ((None, QUICK_SECONDS), *((limit, QUICK_SECONDS) for limit in SMALL), (None, QUERY_SECONDS)):
            seconds = min(most, self.ends - time.monotonic())
            if seconds <= 0 or (limit is None and found is not None):
                break
            with contextlib.suppress(NotDecided):
                smaller = query.ask(limit, seconds)
                if smaller is not None and limit is not None:
                    return smaller
                if smaller is None and limit is None:
                    return None
                found = found or smaller
        if found is None:
            raise NotDecided
        return found


class _Query:
    """One claim's negation."""

    def __init__(self, solver: Solver, claim: Claim) -> None:
        import z3

        self.z3: Any = z3
        self.solver, self.claim = solver, claim
        self.values: dict[str, Any] = {}
        self.facts: list[Any] = []
        self._quotients: dict[tuple[Any, Any], tuple[Any, Any]] = {}
        for size in solver.sizes:
            name = self.name(size.name)
            if not size.dynamic:
                self.facts.append(name == size.value)
                continue
            self.facts.append(name >= size.low)
            if size.high is not None:
                self.facts.append(name <= size.high)
            if size.multiple_of > 1:
                self.facts.append(name == self.fresh("multiple") * size.multiple_of)
        self.domains = [z3.Or([self.name(t.name) == value for value in t.domain]) for t in solver.tunables]
        if claim.meeting is None:
            self.loops(claim.loops)
            self.facts += [self.term(known) >= 0 for known in claim.given]
            self.facts.append(z3.Or([self.term(goal) < 0 for goal in claim.goals]))
        else:
            self.meet(claim.meeting)

    # ---- asking

    def ask(self, limit: int | None, seconds: float) -> dict[str, int] | None:
        """Values that break the claim; None: there are none up to the limit (without one: none at all). Raises NotDecided."""
        solver = self.z3.Solver()
        solver.set("timeout", max(1, int(seconds * 1000)))
        solver.add(*self.facts, *self.domains)
        if limit is not None:
            solver.add(*(self.name(s.name) <= s.low + limit for s in self.solver.sizes if s.dynamic))
        answer = solver.check()
        if answer == self.z3.unsat:
            return None
        if answer != self.z3.sat:
            raise NotDecided
        model = solver.model()
        env = {name: model.eval(value, model_completion=True).as_long() for name, value in self.values.items()}
        if not self.true(env):
            raise NotDecided
        return env

    def true(self, env: dict[str, int]) -> bool:
        """Whether the values break the claim by exact arithmetic as well."""
        if self.claim.meeting is not None:
            return met(self.claim.meeting, env, self.solver.shapes)
        return broken(self.claim, env)

    # ---- expressions

    def name(self, name: str) -> Any:
        if name not in self.values:
            self.values[name] = self.z3.Int(name)
        return self.values[name]

    def fresh(self, what: str) -> Any:
        return self.z3.FreshInt(what)

    def term(self, index: Index, second: frozenset[str] = frozenset()) -> Any:
        """An expression; names of `second` are those of the second iteration."""
        match index:
            case Int(value):
                return self.z3.IntVal(value)
            case Sym(name):
                return self.name(name + SECOND if name in second else name)
            case IndexOp(op, left, right):
                return self.combine(op, self.term(left, second), self.term(right, second))
        raise TypeError(f"not an index: {index!r}")

    def combine(self, op: str, a: Any, b: Any) -> Any:
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "min":
                return self.z3.If(a <= b, a, b)
            case "max":
                return self.z3.If(a >= b, a, b)
        return self.divided(a, b)[op == "%"]

    def divided(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Quotient and remainder towards minus infinity; a divisor of 0 is a claim of its own."""
        key = (a, b)
        if key not in self._quotients:
            quotient, rest = self.fresh("quotient"), self.fresh("rest")
            self.facts.append(a == b * quotient + rest)
            self.facts.append(self.z3.Or(self.z3.And(b > 0, rest >= 0, rest < b), self.z3.And(b < 0, rest <= 0, rest > b)))
            self._quotients[key] = quotient, rest
        return self._quotients[key]

    def loops(self, loops: Sequence[For], second: frozenset[str] = frozenset()) -> None:
        """The loops have this iteration."""
        for loop in loops:
            variable = self.name(loop.var + SECOND if loop.var in second else loop.var)
            start, stop, step = (self.term(bound, second) for bound in (loop.start, loop.stop, loop.step))
            count = self.fresh("iteration")
            self.facts += [variable == start + step * count, count >= 0, variable < stop, step >= 1]

    # ---- races

    def meet(self, meeting: Meeting) -> None:
        """Both accesses touch one element, in iterations that are different ones of one execution of a parallel loop."""
        store, other = meeting.store, meeting.other
        second = frozenset(loop.var for loop in other.loops)
        self.loops(store.loops)
        self.loops(other.loops, second)
        ways: list[Any] = []
        same: list[Any] = []
        for one, twin in zip(store.loops, other.loops, strict=False):
            if one is not twin:
                break
            mine, theirs = self.name(one.var), self.name(one.var + SECOND)
            if one.kind == "parallel":
                ways.append(self.z3.And([*same, mine != theirs]))
            same.append(mine == theirs)
        self.facts.append(self.z3.Or(ways))
        names = self.claim.names or {}
        here = _Positions(self, names, frozenset()).of(store)
        there = _Positions(self, names, second).of(other)
        if store.tensor == other.tensor:
            self.facts += [a == b for a, b in zip(here, there, strict=True)]
        else:
            self.facts.append(self.flat(store, here) == self.flat(other, there))

    def flat(self, access: Access, positions: Sequence[Any]) -> Any:
        """The row-major position, for a tensor and a view of it."""
        total: Any = self.z3.IntVal(0)
        for extent, position in zip(self.solver.shapes[access.tensor], positions, strict=True):
            total = total * self.term(extent) + position
        return total


class _Positions:
    """One element that an access touches, as a position on each axis; what lies outside of the tensor is not touched."""

    def __init__(self, query: _Query, names: Mapping[str, Tile], second: frozenset[str]) -> None:
        self.query, self.names, self.second = query, names, second

    def of(self, access: Access) -> list[Any]:
        q, found = self.query, []
        picks = [self.shape(axis.indices) for axis in access.region if isinstance(axis, nodes.Pick)]
        rank = max((len(shape) for shape in picks), default=0)
        places = [q.fresh("pick") for _ in range(rank)]
        for shape in picks:
            for place, extent in zip(places[rank - len(shape) :], shape, strict=True):
                if extent != Int(1):
                    q.facts += [place >= 0, place < self.term(extent)]
        for axis, extent in zip(access.region, q.solver.shapes[access.tensor], strict=True):
            match axis:
                case nodes.At(index):
                    position = self.term(index)
                case nodes.Span(start, count, step):
                    number = q.fresh("element")
                    q.facts += [number >= 0, number < self.term(count)]
                    position = self.term(start) + number * self.term(step)
                case nodes.Pick(indices):
                    own = len(self.shape(indices))
                    position = self.element(indices, places[rank - own :])
            q.facts += [position >= 0, position < q.term(extent)]
            found.append(position)
        return found

    def term(self, index: Index) -> Any:
        return self.query.term(index, self.second)

    # ---- tiles of integers

    def shape(self, tile: Tile) -> tuple[Index, ...]:
        match tile:
            case nodes.Number() | nodes.FromIndex():
                return ()
            case nodes.Iota(extent):
                return (extent,)
            case nodes.Full(shape) | nodes.Expand(_, shape):
                return shape
            case nodes.Var(name) if name in self.names:
                return self.shape(self.names[name])
            case nodes.Cast(x, dtype) if dtype in (nodes.DType.i64, nodes.DType.i32, nodes.DType.bool):
                return self.shape(x)
            case nodes.Unary("logical_not", x):
                return self.shape(x)
            case nodes.Unsqueeze(x, axis):
                own = self.shape(x)
                return (*own[:axis], Int(1), *own[axis:])
            case nodes.Squeeze(x, axis):
                own = self.shape(x)
                return (*own[:axis], *own[axis + 1 :])
            case nodes.Permute(x, order):
                own = self.shape(x)
                return tuple(own[axis] for axis in order)
            case nodes.Binary(_, a, b):
                return _broadcast(self.shape(a), self.shape(b))
            case nodes.Where(condition, a, b):
                return _broadcast(_broadcast(self.shape(condition), self.shape(a)), self.shape(b))
        raise NotDecided  # data, or a rearrangement

    def element(self, tile: Tile, at: Sequence[Any]) -> Any:
        """The element at a place of the tile's own shape or one that it broadcasts to."""
        z3, shape = self.query.z3, self.shape(tile)
        at = [z3.IntVal(0) if e == Int(1) else place for e, place in zip(shape, at[len(at) - len(shape) :], strict=True)]
        match tile:
            case nodes.Number(value):
                if isinstance(value, float):
                    raise NotDecided
                return z3.BoolVal(value) if isinstance(value, bool) else z3.IntVal(value)
            case nodes.FromIndex(index):
                return self.term(index)
            case nodes.Iota():
                return at[0]
            case nodes.Full(_, value):
                return self.element(nodes.Number(value), [])
            case nodes.Var(name):
                return self.element(self.names[name], at)
            case nodes.Cast(x) | nodes.Expand(x):
                return self.element(x, at)
            case nodes.Unary(_, x):
                return z3.Not(self.element(x, at))
            case nodes.Unsqueeze(x, axis):
                return self.element(x, [*at[:axis], *at[axis + 1 :]])
            case nodes.Squeeze(x, axis):
                return self.element(x, [*at[:axis], z3.IntVal(0), *at[axis:]])
            case nodes.Permute(x, order):
                return self.element(x, [at[order.index(axis)] for axis in range(len(order))])
            case nodes.Binary(op, a, b):
                return self.binary(op, self.element(a, at), self.element(b, at))
            case nodes.Where(condition, a, b):
                return z3.If(self.element(condition, at), self.element(a, at), self.element(b, at))
        raise NotDecided

    def binary(self, op: str, a: Any, b: Any) -> Any:
        z3, boolean = self.query.z3, _BOOLEAN.get(op)
        if boolean is not None:
            return getattr(z3, boolean)(a, b)
        if op not in _INTEGER:
            raise NotDecided
        if op in ("lt", "le", "gt", "ge", "eq", "ne"):
            return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b}[op]
        return self.query.combine(_INTEGER[op], a, b)


_BOOLEAN = {"logical_and": "And", "logical_or": "Or"}
_INTEGER = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "mod": "%",
    "minimum": "min",
    "maximum": "max",
} | dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), "")


def _broadcast(a: tuple[Index, ...], b: tuple[Index, ...]) -> tuple[Index, ...]:
    rank = max(len(a), len(b))
    one: Index = Int(1)
    left, right = (one,) * (rank - len(a)) + a, (one,) * (rank - len(b)) + b
    return tuple(y if x == one else x for x, y in zip(left, right, strict=True))
