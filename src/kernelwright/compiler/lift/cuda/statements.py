"""C++ statements for all lanes at once: control flow by masks where it depends on the thread, by predicates where on data.

A mask says which lanes are active; it flows through statements (`return`, `break` and `continue` take lanes out of it). A condition
that depends on data runs both branches; what they assign is chosen by the condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.cuda.allocations import Pointer, PointerType, Slot, Vector, VectorType, fitted, size_of
from kernelwright.compiler.lift.cuda.expressions import Expressions
from kernelwright.compiler.lift.cuda.lanes import binary, converted, negated
from kernelwright.compiler.lift.cuda.read import Function, Node
from kernelwright.compiler.lift.cuda.scope import Scope, declared, named_type
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Value

MOST_STEPS = 3_000_000
"""Statements that one block may take; a block that does more is too long to be read this way."""


class Frame:
    """A function call or a loop: what its lanes left behind."""

    __slots__ = ("broken", "continued", "exits", "predicate", "result")

    def __init__(self, predicate: Value | None) -> None:
        self.result: Any = None
        self.broken: Any = None
        self.continued: Any = None
        self.exits: set[str] = set()
        self.predicate = predicate


class FilledByHost:
    """A `__constant__` or `__device__` variable without a value in the source: what the host copies into it is not seen."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, store: Any) -> Any:
        raise Refused(store.line, f"{self.name} is filled by the host, which is not followed")


class Statements(Expressions):
    """The whole machine: runs functions."""

    steps = 0
    dynamic_shared = 0

    def start(self) -> None:
        """Declares the constants of the file."""
        self.calls: list[Frame] = [Frame(None)]
        self.loops: list[Frame] = []
        self.statics: dict[tuple[int, str], Any] = {}
        for declaration in self.program.constants:
            if "=" not in declaration.text and re.search(r"\b__(constant|device)__\b", declaration.text):
                variables = (
                    c for c in declaration.children if c.kind in ("identifier", "array_declarator", "pointer_declarator")
                )
                names = (declared(variable, "auto")[0] for variable in variables)
                self.scope.names.update({name: FilledByHost(name) for name in names})
                continue
            try:
                self.run(declaration)
            except (Refused, KeyError):
                continue  # host things: what a kernel needs of them is refused where it is used

    # ------------------------------------------------------------ statements

    def run(self, node: Node) -> None:
        """One statement."""
        self.steps += 1
        self.line = node.line
        if self.steps > MOST_STEPS:
            raise Refused(node.line, "one block does too much work to be followed")
        method: Callable[[Node], None] | None = getattr(self, f"do_{node.kind}", None)
        if method is None:
            raise Refused(node.line, f"{node.kind.replace('_', ' ')} `{node.text[:60]}` is not read")
        method(node)

    def do_compound_statement(self, node: Node) -> None:
        outer = self.scope
        self.scope = Scope(outer)
        try:
            for child in node.children:
                if not self.mask.any():
                    return
                self.run(child)
        finally:
            self.scope = outer

    def do_expression_statement(self, node: Node) -> None:
        if node.children:
            self.value(node.children[0])

    def _nothing(self, node: Node) -> None:
        return None

    do_preproc_call = do_comment = do_static_assert_declaration = do_using_declaration = do_attributed_statement = _nothing

    def do_alias_declaration(self, node: Node) -> None:
        self.scope.names[node["name"].text] = self.type(node["type"])

    def do_type_definition(self, node: Node) -> None:
        self.scope.names[node["declarator"].text] = self.type(node["type"])

    def do_declaration(self, node: Node) -> None:
        words = [c.text for c in node.children if c.kind in ("storage_class_specifier", "type_qualifier")]
        shared = "__shared__" in node.text.partition("=")[0].partition("[")[0] or "__shared__" in words
        base = named_type(node["type"].text, self.scope, self.program, node.line)
        for child in node.children:
            if child.kind.endswith("declarator") or (child.kind == "identifier"):
                self._declare(child, base, shared, "extern" in words, node)

    def _declare(self, node: Node, base: Any, shared: bool, extern: bool, whole: Node) -> None:
        name, type, extents, reference = declared(node, base)
        initial = node.get("value") if node.kind == "init_declarator" else None
        if shared:
            self.scope.names[name] = self._shared(name, type, extents, extern, whole)
            return
        if extents:
            self.scope.names[name] = self._array(name, type, extents, initial, node)
            return
        if reference and initial is not None:
            self.scope.names[name] = self._place(initial)()
            return
        value = None
        if initial is not None and initial.kind == "lambda_expression":
            self.scope.names[name] = self._lambda(initial)
            return
        if initial is not None:
            if initial.kind == "argument_list":
                value = self.value(initial.children[0])
            else:
                value = self.value(initial)
            if isinstance(value, list):
                if isinstance(type, VectorType):
                    value = Vector(type, [converted(self.tape, x, type.base) for x in value])
                else:
                    value = value[0] if value else Value("i32", 0)
            value = fitted(self.tape, value, type)
        elif isinstance(type, VectorType):
            value = Vector(type, [Value(type.base, 0)] * type.count)
        if type == "auto" and isinstance(value, Value):
            type = value.type
        self.scope.names[name] = Slot(self, type, value)

    def _shared(self, name: str, type: Any, extents: list[Node], extern: bool, node: Node) -> Any:
        key = id(node) if not extern else 0
        if (key, name) not in self.statics:
            counts = () if extern else tuple(self.number(e) for e in extents)
            size = size_of(type) * int(np.prod(counts, dtype=np.int64)) if not extern else self.dynamic_shared
            memory = self.statics.get((0, "")) if extern else None
            if memory is None:
                memory = self.shared(name, max(size, 1))
                if extern:
                    self.statics[(0, "")] = memory
            self.statics[(key, name)] = Pointer(memory, 0, type, counts[0:] if counts else ())
        made = self.statics[(key, name)]
        if not extents:
            from kernelwright.compiler.lift.cuda.allocations import Element

            return Element(made)
        return Slot(self, type, made)

    def _array(self, name: str, type: Any, extents: list[Node], initial: Node | None, node: Node) -> Slot:
        values = self.value(initial) if initial is not None else []
        counts = tuple(len(values) if e.kind == "none" else self.number(e) for e in extents)
        scalar = type.base if isinstance(type, VectorType) else type
        if isinstance(scalar, PointerType):
            raise Refused(node.line, "an array of pointers is not read")
        width = type.count if isinstance(type, VectorType) else 1
        memory = self.local(name, int(np.prod(counts, dtype=np.int64)) * width)
        made = Pointer(memory, 0, type, counts)
        if initial is not None:
            zero = self.tape.codes(Value(scalar, 0))
            memory.codes[:] = zero
            flat: list[Any] = []
            _flatten(values, flat)
            for k, value in enumerate(flat):
                parts = value.parts if isinstance(value, Vector) else [value]
                for j, part in enumerate(parts):
                    memory.codes[k * width + j] = self.tape.codes(converted(self.tape, part, scalar))
        return Slot(self, type, made)

    def _lambda(self, node: Node) -> Callable[[list[Node]], Any]:
        declarator = node.get("declarator")
        parameters = declarator["parameters"].children if declarator is not None and declarator.get("parameters") else []
        function = Function("lambda", [], parameters, None, node["body"], node.line)
        home = self.scope
        return lambda arguments: self._enter(function, {}, arguments, home, node.line)

    # ------------------------------------------------------------ choices

    def do_if_statement(self, node: Node) -> None:
        condition = converted(self.tape, self.scalar(node["condition"]), "bool")
        then, other = node["consequence"], node.get("alternative")
        if other is not None and other.kind == "else_clause":
            other = other.children[0]
        base = self.mask
        if condition.codes is None:
            taken = base & condition.known
            rest = base & np.logical_not(condition.known)
            after = taken
            if taken.any():
                self.mask = base if not rest.any() else taken
                self.run(then)
                after = self.mask
            self.mask = rest
            if other is not None and rest.any():
                self.run(other)
            if rest.any():
                self.mask = after | self.mask
            else:
                self.mask = after
            return
        outer = self.predicate
        no = negated(self.tape, condition)
        left = [self._under(then, condition, outer, base)]
        left.append(self._under(other, no, outer, base) if other is not None else base)
        self.mask = base
        self.predicate = outer
        if left[0].any() and left[1].any():
            return
        # a branch left the loop or the function: what follows belongs to the other one
        if not left[0].any() and not left[1].any():
            self.mask = left[0]
        elif not left[0].any():
            self.predicate = _joint(self, outer, no)
        else:
            self.predicate = _joint(self, outer, condition)

    def _under(self, node: Node, condition: Value, outer: Value | None, base: Any) -> Any:
        """Runs a branch under a condition on data; the lanes that came through."""
        self.mask = base
        self.predicate = _joint(self, outer, condition)
        self.run(node)
        if (self.mask != base).any() and self.mask.any():
            raise Refused(node.line, "some threads leave a branch that depends on data, others do not")
        return self.mask

    def do_switch_statement(self, node: Node) -> None:
        chosen = self.number(node["condition"])
        loop = Frame(self.predicate)
        loop.broken = np.zeros_like(self.mask)
        self.loops.append(loop)
        running = False
        cases = [c for c in node["body"].children if c.kind == "case_statement"]
        wanted = next((c for c in cases if c.get("value") is not None and self.number(c["value"]) == chosen), None)
        wanted = wanted or next((c for c in cases if c.get("value") is None), None)
        for case in cases:
            running = running or case is wanted
            if running:
                for child in case.children:
                    if child is case.get("value"):
                        continue
                    if self.mask.any():
                        self.run(child)
        self.loops.pop()
        self.mask = self.mask | loop.broken

    # ------------------------------------------------------------ loops

    def do_for_statement(self, node: Node) -> None:
        outer = self.scope
        self.scope = Scope(outer)
        try:
            first = node.get("initializer")
            if first is not None:
                if first.kind == "declaration":
                    self.run(first)
                else:
                    self.value(first)
            self._loop(node.get("condition"), node["body"], node.get("update"))
        finally:
            self.scope = outer

    def do_while_statement(self, node: Node) -> None:
        self._loop(node["condition"], node["body"], None)

    def do_do_statement(self, node: Node) -> None:
        self._loop(node["condition"], node["body"], None, first=True)

    def _loop(self, condition: Node | None, body: Node, update: Node | None, first: bool = False) -> None:
        loop = Frame(self.predicate)
        loop.broken = np.zeros_like(self.mask)
        left = np.zeros_like(self.mask)
        entry = self.predicate
        self.loops.append(loop)
        while True:
            if condition is not None and not first:
                going = converted(self.tape, self.scalar(condition), "bool")
                if going.codes is not None:
                    raise Refused(condition.line, f"the loop ends when {condition.text[:60]}, which depends on data")
                known = going.known
                if isinstance(known, np.ndarray):
                    now = self.mask & known
                    if not now.all():
                        left = left | (self.mask & ~known)
                        if (now != self.mask).any():
                            self.mask = now
                elif not known:
                    left = left | self.mask
                    break
            first = False
            if not self.mask.any():
                break
            loop.continued = None
            start, steps = self.predicate, self.steps
            self.run(body)
            if loop.continued is not None:
                self.mask = self.mask | loop.continued
            if not loop.exits & {"break", "return"}:
                self.predicate = start
            if not self.mask.any():
                break
            if update is not None:
                self.value(update)
            self.steps = max(self.steps, steps + 1)
        self.loops.pop()
        if "return" not in loop.exits:
            self.predicate = entry
        elif self.loops:
            self.loops[-1].exits.add("return")
        self.mask = left | loop.broken

    def do_break_statement(self, node: Node) -> None:
        loop = self.loops[-1]
        loop.exits |= {"break"} if self.predicate is not loop.predicate else set()
        if self.predicate is loop.predicate:
            loop.broken = loop.broken | self.mask
        self.mask = np.zeros_like(self.mask)

    def do_continue_statement(self, node: Node) -> None:
        loop = self.loops[-1]
        if self.predicate is loop.predicate:
            loop.continued = self.mask if loop.continued is None else loop.continued | self.mask
        self.mask = np.zeros_like(self.mask)

    # ------------------------------------------------------------ functions

    def do_return_statement(self, node: Node) -> None:
        frame = self.calls[-1]
        if node.children:
            frame.result = self.merged(frame.result, self.value(node.children[0]))
        if self.predicate is not frame.predicate and self.loops:
            self.loops[-1].exits.add("return")
        self.mask = np.zeros_like(self.mask)

    def call_function(self, name: str, templates: list[Node], arguments: list[Node], line: int) -> Any:
        """A function of the source, in place of its call."""
        fitting = [f for f in self.program.functions[name] if len(f.parameters) == len(arguments)] or self.program.functions[
            name
        ]
        function = fitting[0]
        bound: dict[str, Any] = {}
        for (parameter, kind, _), given in zip(function.templates, templates, strict=False):
            if kind == "value" and given.kind == "type_descriptor":  # a name: the parser cannot know which it is
                given = Node("identifier", given.text, given.line, [], {})
            bound[parameter] = self.type(given) if kind == "type" else self.value(given)
        return self._enter(function, bound, arguments, None, line)

    def _enter(self, function: Function, bound: dict[str, Any], arguments: list[Node], home: Scope | None, line: int) -> Any:
        outer = self.scope
        scope = Scope(home or self.root)
        scope.names.update(bound)
        for k, parameter in enumerate(function.parameters):
            declarator = parameter.get("declarator")
            name, _, extents, reference = declared(declarator, "auto") if declarator is not None else ("", "auto", [], False)
            given = arguments[k] if k < len(arguments) else parameter.get("default_value")
            if given is None:
                raise Refused(line, f"{function.name} is called with too few arguments")
            if (
                reference
                and "const" not in parameter.text
                and given.kind in ("identifier", "subscript_expression", "pointer_expression", "field_expression")
            ):
                place = self._place(given)()
                deduce(function, parameter, place.get(self), scope)
                scope.names[name] = place
                continue
            value = self.value(given)
            deduce(function, parameter, value, scope)
            inside, self.scope = self.scope, scope
            try:
                base = self._parameter_type(parameter)
                type = declared(declarator, base)[1] if declarator is not None else base
                value = value if extents else fitted(self.tape, value, type)
                scope.names[name] = Slot(self, type if type != "auto" or not isinstance(value, Value) else value.type, value)
            finally:
                self.scope = inside
        for name, kind, default in function.templates:
            if name not in scope.names and default is not None:
                scope.names[name] = self.type(default) if kind == "type" else self.value(default)
        return self.execute(function, scope, outer)

    def _parameter_type(self, parameter: Node) -> Any:
        return named_type(parameter["type"].text, self.scope, self.program, parameter.line)

    def execute(self, function: Function, scope: Scope, outer: Scope) -> Any:
        """Runs a function's body in its scope."""
        entry, mask, loops = self.predicate, self.mask, self.loops
        self.scope, self.loops = scope, []
        frame = Frame(entry)
        self.calls.append(frame)
        if len(self.calls) > 60:
            raise Refused(function.line, f"{function.name} calls itself")
        try:
            for child in function.body.children:
                if not self.mask.any():
                    break
                self.run(child)
        finally:
            self.calls.pop()
            self.scope, self.mask, self.predicate, self.loops = outer, mask, entry, loops
        return frame.result

    @property
    def root(self) -> Scope:
        """The scope of the file."""
        scope = self.scope
        while scope.outer is not None:
            scope = scope.outer
        return scope


def deduce(function: Function, parameter: Node, value: Any, scope: Scope) -> None:
    """ForkServer types that follow from an argument."""
    words = parameter["type"].text
    for name, kind, _ in function.templates:
        if kind == "type" and name not in scope.names and words == name:
            if isinstance(value, Value | Vector):
                scope.names[name] = value.type
            elif isinstance(value, Pointer):
                scope.names[name] = value.type
                if not parameter.text.count("*") and "[" not in parameter.text:
                    scope.names[name] = PointerType(value.type)


def _joint(machine: Statements, outer: Value | None, condition: Value) -> Value:
    return condition if outer is None else binary(machine.tape, "&&", outer, condition)


def _flatten(values: Any, into: list[Any]) -> None:
    for value in values:
        if isinstance(value, list):
            _flatten(value, into)
        else:
            into.append(value)
