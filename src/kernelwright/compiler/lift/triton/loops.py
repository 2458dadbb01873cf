"""Loops and branches of a kernel: scf.for and scf.if to loops of a sketch.

A pointer or integer that a loop moves by the same amount each time becomes an expression of the loop's variable. Tiles are carried
by name. A branch over loop variables is a loop that runs once or not at all; a branch that gives results, or depends on data, is
computed on both sides and chosen from.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from kernelwright.compiler.lift.access import DATA, folded
from kernelwright.compiler.lift.program import has_data
from kernelwright.compiler.lift.triton.ttir import Block, Op
from kernelwright.compiler.lift.values import Data, Ints, Mask, Ptr, Value
from kernelwright.sketch import nodes
from kernelwright.sketch.index import bounds, ceil_div, constant, simplify, symbols
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym

if TYPE_CHECKING:
    from kernelwright.compiler.lift.triton.reader import Reader

OPEN = "~"
"""Begins the name of a carried value while it is found out how it moves."""
_PAIR = re.compile(r"(%[\w$.\-]+) = (%[\w$.\-#]+)")
_FOR = re.compile(r"(?:unsigned )?(%[\w$.\-]+) = (%[\w$.\-#]+) to (%[\w$.\-#]+) step (%[\w$.\-#]+)(?: iter_args\((.*?)\) ->)?")


def control(reader: Reader, op: Op) -> list[Value]:
    """An operation with regions."""
    if op.name == "scf.for":
        return _Loop(reader, op).results()
    if op.name == "scf.if":
        return _branch(reader, op)
    if op.name == "scf.while":
        return _While(reader, op).results()
    raise reader.program.refuse(op.name)


class _Loop:
    """One scf.for."""

    variable: str
    start: Index
    stop: Index
    step: Index
    carried: list[str]
    block: Block

    def __init__(self, reader: Reader, op: Op) -> None:
        self.reader, self.op = reader, op
        self.program = reader.program
        self.initial = self._head()
        last = self.block.ops[-1]
        self.yielded = last.operands if last.name == "scf.yield" else []
        self.body = self.block.ops[:-1] if last.name == "scf.yield" else self.block.ops

    def _head(self) -> list[Value]:
        """Reads bounds, carried names and body; gives what the carried names begin with."""
        head = _FOR.match(self.op.text.strip())
        if head is None:
            raise self.program.refuse("a loop that could not be read")
        self.variable = head[1]
        self.start, self.stop, self.step = (self._bound(name) for name in (head[2], head[3], head[4]))
        pairs = _PAIR.findall(head[5] or "")
        self.carried = [name for name, _ in pairs]
        (self.block,) = self.op.regions[0]
        return [self.reader.env[name] for _, name in pairs]

    def _bound(self, name: str) -> Index:
        value = self.reader.env[name]
        if not isinstance(value, Ints) or any(symbol.startswith(DATA) for symbol in symbols(value.index)):
            raise self.program.refuse("a loop whose bounds come from data")
        return value.index

    def results(self) -> list[Value]:
        """The values of the carried names after the loop; its statements go to the program."""
        step = constant(self.step)
        if step is None or step <= 0:
            raise self.program.refuse("a loop whose step is not a positive number")
        trips = folded(ceil_div(simplify(IndexOp("-", self.stop, self.start)), self.step), self.program.ranges)
        count = constant(trips)
        if count is not None and count <= 0:
            return self.initial
        if count == 1:
            return self._once()
        moving = self._moving(step)
        program = self.program
        name = program.fresh(self.op.label if self.op.label not in ("", *self.carried) else self.variable)
        low, high = bounds(self.start, program.ranges)[0], bounds(self.stop, program.ranges)[1]
        if low is not None and high is not None and constant(self.start) is not None:
            high = low + (max(high - low, 1) - 1) // step * step + 1
        program.loops[name] = (low, high - 1 if high is not None else None)
        done = simplify(IndexOp("-", Sym(name), self.start))
        tiles = self._carry(set(moving))
        with program.block() as inner:
            self.reader.env[self.variable] = Ints(Sym(name), ())
            for k, argument in enumerate(self.carried):
                if k in moving:
                    self.reader.env[argument] = _advanced(self.initial[k], moving[k], done, step)
                else:
                    self.reader.env[argument] = tiles[k]
            before = len(program.assumed)
            # What the loop's own bounds say about its variable, for proofs about addresses inside.
            program.assumed.append(simplify(IndexOp("-", IndexOp("-", self.stop, Int(1)), Sym(name))))
            program.assumed.append(simplify(IndexOp("-", Sym(name), self.start)))
            self.reader.ops(self.body)
            del program.assumed[before:]
            self._hand_on(tiles)
        program.out.append(nodes.For(name, "range", self.start, self.stop, Int(step), tuple(inner), line=self.op.line))
        runs = folded(simplify(IndexOp("max", trips, Int(0))), program.ranges)
        total = simplify(IndexOp("*", runs, Int(step)))
        return [
            _advanced(self.initial[k], moving[k], total, step) if k in moving else tiles[k] for k in range(len(self.carried))
        ]

    def _once(self) -> list[Value]:
        """A loop with one iteration is its body."""
        self.reader.env[self.variable] = Ints(self.start, ())
        for argument, value in zip(self.carried, self.initial, strict=True):
            self.reader.env[argument] = value
        self.reader.ops(self.body)
        return [self.reader.env[name] for name in self.yielded]

    # ---- pointers and counters

    def _moving(self, step: int) -> dict[int, Index]:
        """By how much each carried integer or pointer moves in an iteration, where that is always the same."""
        candidates = {k for k, value in enumerate(self.initial) if isinstance(value, Ints | Ptr)}
        while candidates:
            found = self._trial(candidates)
            lost = {k for k in candidates if found[k] is None}
            if not lost:
                return {k: delta for k, delta in found.items() if delta is not None}
            for k in lost:
                if isinstance(self.initial[k], Ptr):
                    raise self.program.refuse("a pointer that a loop does not move by the same amount each time")
            candidates -= lost
        return {}

    def _trial(self, candidates: set[int]) -> dict[int, Index | None]:
        """Reads what leads to the next values, with the present ones unknown."""
        reader, program = self.reader, self.program
        env, lines, data, known = dict(reader.env), program.line, dict(program.data), dict(program.loops)
        reader.env[self.variable] = Ints(Sym(OPEN + "loop"), ())
        symbols_of: dict[int, Sym] = {}
        for k, argument in enumerate(self.carried):
            value = self.initial[k]
            if k in candidates:
                symbols_of[k] = Sym(f"{OPEN}{k}")
                reader.env[argument] = replace(value, index=symbols_of[k])  # type: ignore[arg-type]
            else:
                reader.env[argument] = self._opaque(value, k)
        result: dict[int, Index | None] = {}
        with program.block():
            reader.ops(self._needed([self.yielded[k] for k in candidates]))
            for k in candidates:
                after = reader.env[self.yielded[k]]
                delta = None
                if isinstance(after, Ints | Ptr):
                    gap = simplify(IndexOp("-", after.index, symbols_of[k]))
                    same = not isinstance(after, Ptr) or after.buffer == getattr(self.initial[k], "buffer", None)
                    if same and not any(name.startswith((OPEN, DATA)) for name in symbols(gap)):
                        delta = gap
                result[k] = delta
        reader.env, program.line, program.data, program.loops = env, lines, data, known
        return result

    def _opaque(self, value: Value, k: int) -> Value:
        data = self.program.as_data(value)
        return Data(nodes.Var(f"{OPEN}{k}"), data.shape, data.shape, data.dtype)

    def _needed(self, names: list[str]) -> list[Op]:
        """The operations of the body that lead to these values."""
        wanted, kept = set(names), []
        for op in reversed(self.body):
            if wanted & set(op.results):
                kept.append(op)
                wanted |= _reads(op)
        return list(reversed(kept))

    # ---- tiles

    def _carry(self, moving: set[int]) -> dict[int, Data]:
        """Names for the carried tiles, bound to what they begin with."""
        tiles: dict[int, Data] = {}
        for k, value in enumerate(self.initial):
            if k in moving:
                continue
            data = self.program.as_data(value)
            whole = data.full()
            if isinstance(data.node, nodes.Full):
                level = "accumulator" if len(data.shape) > 1 else "register"
                whole = nodes.Full(tuple(map(Int, data.shape)), data.node.value, data.dtype, level)
            name = self.program.fresh(self.carried[k])
            self.program.out.append(nodes.Assign(name, whole, self.program.line))
            tiles[k] = Data(nodes.Var(name), data.shape, data.shape, data.dtype)
        return tiles

    def _hand_on(self, tiles: dict[int, Data]) -> None:
        """The carried names bound to the values of the next iteration."""
        out = self.program.out
        pending: list[tuple[str, nodes.Tile]] = []
        for k, data in tiles.items():
            assert isinstance(data.node, nodes.Var)
            after = self.program.as_data(self.reader.env[self.yielded[k]], data.dtype)
            if after.node != data.node:
                pending.append((data.node.name, after.full()))
        for position, (name, node) in enumerate(pending):
            if variables(node) & {other for other, _ in pending if other != name}:
                held = self.program.fresh(name)
                out.append(nodes.Assign(held, node, self.program.line))
                pending[position] = (name, nodes.Var(held))
        for name, node in pending:
            if not (isinstance(node, nodes.Var) and _rename_last(out, node.name, name)):
                out.append(nodes.Assign(name, node, self.program.line))


class _While(_Loop):
    """One scf.while that counts: it goes on while a number that it moves by the same amount each time is below a fixed one."""

    def _head(self) -> list[Value]:
        (before,), (self.block,) = self.op.regions
        pairs = _PAIR.findall(self.op.text.partition(" : ")[0])
        names = [name for name, _ in pairs]
        test, last = before.ops[0], before.ops[-1]
        if [op.name for op in before.ops] != ["arith.cmpi", "scf.condition"] or last.operands != [*test.results, *names]:
            raise self.program.refuse("a while loop that does more than compare two integers before it goes on")
        self.carried = [name for name, _ in self.block.arguments]
        self.variable = f"{OPEN}while"
        order, *_ = test.text.replace(",", " ").split()
        left, right = test.operands
        if order in ("sgt", "sge", "ugt", "uge"):
            order, left, right = order.replace("g", "l"), right, left
        if order not in ("slt", "sle", "ult", "ule") or left not in names:
            raise self.program.refuse("a while loop whose condition is not that a counter is below a number")
        if right in names:
            raise self.program.refuse("a while loop whose bound moves")
        self.counter = names.index(left)
        initial = [self.reader.env[name] for _, name in pairs]
        start = initial[self.counter]
        if not isinstance(start, Ints):
            raise self.program.refuse("a while loop whose condition depends on data")
        self.start, self.stop = self._bound(dict(pairs)[left]), self._bound(right)
        if order.endswith("e"):
            self.stop = simplify(IndexOp("+", self.stop, Int(1)))
        return initial

    def results(self) -> list[Value]:
        """As of a loop with this counter's step."""
        delta = self._trial({self.counter})[self.counter]
        if delta is None:
            raise self.program.refuse("a while loop whose counter does not move by the same amount each time")
        self.step = delta
        return super().results()


def _advanced(value: Value, delta: Index, done: Index, step: int) -> Value:
    """A pointer or integer after the loop's variable has gone `done` forward."""
    assert isinstance(value, Ints | Ptr)
    share = constant(IndexOp("%", delta, Int(step)))
    if step == 1 or share == 0:
        gone: Index = IndexOp("*", done, simplify(IndexOp("//", delta, Int(step))) if step > 1 else delta)
    else:
        gone = IndexOp("*", IndexOp("//", done, Int(step)), delta)
    return replace(value, index=simplify(IndexOp("+", value.index, gone)))


def _reads(op: Op) -> set[str]:
    """All names that an operation and its regions use."""
    found = set(op.operands)
    for region in op.regions:
        for block in region:
            for inner in block.ops:
                found |= _reads(inner)
    return found


# ---------------------------------------------------------------- names of tiles


def variables(node: Any) -> set[str]:
    """The names of tiles in an expression or statement."""
    found: set[str] = set()
    stack, seen = [node], set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, nodes.Var):
            found.add(item.name)
        elif isinstance(item, tuple):
            stack.extend(item)
        elif is_dataclass(item):
            stack.extend(getattr(item, f.name) for f in fields(item))
    return found


def _rename_last(out: list[nodes.Statement], old: str, new: str) -> bool:
    """Gives a tile bound in this block its carried name at once, if the carried name's old value is not read after that."""
    places = [k for k, s in enumerate(out) if isinstance(s, nodes.Assign) and s.name == old]
    if len(places) != 1 or any(new in variables(s) or _binds(s, new) for s in out[places[0] + 1 :]):
        return False
    for k in range(places[0], len(out)):
        out[k] = _renamed(out[k], old, new)
    return True


def _binds(statement: nodes.Statement, name: str) -> bool:
    if isinstance(statement, nodes.Assign):
        return statement.name == name
    return isinstance(statement, nodes.For) and any(_binds(s, name) for s in statement.body)


def _renamed(node: Any, old: str, new: str) -> Any:
    known: dict[int, Any] = {}

    def walk(item: Any) -> Any:
        if isinstance(item, nodes.Var):
            return nodes.Var(new) if item.name == old else item
        if isinstance(item, tuple):
            return tuple(map(walk, item))
        if not is_dataclass(item) or isinstance(item, type):
            return item
        if id(item) not in known:
            changed = {f.name: walk(getattr(item, f.name)) for f in fields(item)}
            if isinstance(item, nodes.Assign) and item.name == old:
                changed["name"] = new
            same = all(
                changed[f.name] is getattr(item, f.name) or changed[f.name] == getattr(item, f.name) for f in fields(item)
            )
            known[id(item)] = (item, item if same else replace(item, **changed))
        return known[id(item)][1]

    return walk(node)


# ---------------------------------------------------------------- branches


def _branch(reader: Reader, op: Op) -> list[Value]:
    program = reader.program
    condition = reader.mask(op.operands[0])
    sides = [region[0] for region in op.regions]
    truth = program.decided(condition)
    if truth is not None:
        if not truth and len(sides) == 1:
            return []
        return _inline(reader, sides[0] if truth else sides[1])
    if not op.results and condition.rest is None and not any(map(has_data, condition.conditions)):
        for block, holds in zip(sides, (True, False), strict=False):
            with program.when(condition.conditions, holds=holds):
                _inline(reader, block)
        return []
    results = []
    for block, taken in zip(sides, (condition, reader._not(condition)), strict=False):
        program.predicates.append(taken)
        results.append(_inline(reader, block))
        program.predicates.pop()
    return [_chosen(reader, condition, a, b) for a, b in zip(*results, strict=True)] if op.results else []


def _inline(reader: Reader, block: Block) -> list[Value]:
    last = block.ops[-1] if block.ops else None
    ends = last is not None and last.name == "scf.yield"
    reader.ops(block.ops[:-1] if ends else block.ops)
    return [reader.env[name] for name in last.operands] if ends and last is not None else []


def _chosen(reader: Reader, condition: Mask, a: Value, b: Value) -> Value:
    program = reader.program
    if a == b:
        return a
    if isinstance(a, Ptr) or isinstance(b, Ptr):
        raise program.refuse("a branch that gives different pointers")
    x, y = program.as_data(a), program.as_data(b)
    test = program.mask_tile(condition)
    shape = x.shape
    node = nodes.Where(nodes.Reshape(test, (Int(1),) * len(shape)) if shape else test, x.full(), y.full())
    return program.bind(Data(node, shape, shape, x.dtype), "chosen")


__all__ = ["control", "variables"]
