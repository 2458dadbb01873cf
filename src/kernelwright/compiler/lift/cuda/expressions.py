"""C++ expressions, evaluated for all lanes at once.

Each node of the tree becomes a closure the first time it is met; a closure gives a value, a vector or a pointer. `place` gives
what can be assigned.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.cuda import builtins
from kernelwright.compiler.lift.cuda.allocations import (
    Accessor,
    Element,
    Part,
    Pointer,
    PointerType,
    Slot,
    Vector,
    VectorType,
    size_of,
)
from kernelwright.compiler.lift.cuda.lanes import binary, chosen, converted, negated, unary
from kernelwright.compiler.lift.cuda.literals import literal, numeric_limit
from kernelwright.compiler.lift.cuda.picked import PickingStore, Temporary, array_of
from kernelwright.compiler.lift.cuda.read import Node, Program
from kernelwright.compiler.lift.cuda.scope import Scope, declared, named_type
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape, Value

Closure = Callable[[], Any]
FIELDS = {"x": 0, "y": 1, "z": 2, "w": 3}


class Expressions(PickingStore):
    """The half of the machine that evaluates; statements.py is the other."""

    def __init__(self, tape: Tape, program: Program) -> None:
        super().__init__(tape)
        self.program = program
        self.scope = Scope(None)
        self.places: dict[str, Value] = {}
        self._closures: dict[int, Closure] = {}
        self._keep: list[Node] = []

    # ------------------------------------------------------------ doors

    def value(self, node: Node) -> Any:
        """The value of an expression now."""
        closure = self._closures.get(id(node))
        if closure is None:
            closure = self._closures[id(node)] = self._compile(node)
            self._keep.append(node)
        return closure()

    def scalar(self, node: Node) -> Value:
        """The value, which must be a number."""
        value = self.value(node)
        if isinstance(value, Pointer):
            return Value("bool", True)  # `if (bias)`: a null pointer is a number here
        if not isinstance(value, Value):
            raise Refused(node.line, f"{node.text[:60]} is not a number")
        return value

    def number(self, node: Node) -> int:
        """A number that all lanes agree on."""
        value = self.scalar(node)
        if value.codes is not None:
            raise Refused(node.line, f"{node.text[:60]} depends on data")
        if isinstance(value.known, np.ndarray):
            active = np.unique(value.known[self.mask])
            if len(active) != 1:
                raise Refused(node.line, f"{node.text[:60]} differs between threads")
            return int(active[0])
        return int(value.known)

    def type(self, node: Node) -> Any:
        """A type as it is written, with an abstract declarator if there is one."""
        if node.kind == "type_descriptor":
            base = named_type(node["type"].text, self.scope, self.program, node.line)
            inner = node.get("declarator")
            return base if inner is None else declared(inner, base)[1]
        return named_type(node.text, self.scope, self.program, node.line)

    # ------------------------------------------------------------ compiling

    def _compile(self, node: Node) -> Closure:
        method = getattr(self, f"_{node.kind}", None)
        if method is None:
            raise Refused(node.line, f"{node.kind.replace('_', ' ')} `{node.text[:60]}` is not read")
        return method(node)  # type: ignore[no-any-return]

    def _parenthesized_expression(self, node: Node) -> Closure:
        inner = node.children[0]
        return lambda: self.value(inner)

    def _condition_clause(self, node: Node) -> Closure:
        inner = node["value"]
        return lambda: self.value(inner)

    def _number_literal(self, node: Node) -> Closure:
        value = literal(node.text, node.line)
        return lambda: value

    def _true(self, node: Node) -> Closure:
        return lambda: Value("bool", True)

    def _false(self, node: Node) -> Closure:
        return lambda: Value("bool", False)

    def _nullptr(self, node: Node) -> Closure:
        return lambda: Value("i64", 0)

    _null = _nullptr

    def _char_literal(self, node: Node) -> Closure:
        return lambda: Value("i8", ord(node.text[1]))

    def _identifier(self, node: Node) -> Closure:
        name, line = node.text, node.line

        def read() -> Any:
            found = self.scope.find(name)
            if found is None:
                if name in builtins.NAMES:
                    return builtins.NAMES[name]
                raise Refused(line, f"{name} is not known")
            return found.get(self) if hasattr(found, "get") else found

        return read

    def _qualified_identifier(self, node: Node) -> Closure:
        limit = re.fullmatch(r"std\s*::\s*numeric_limits<(.*)>\s*::\s*(\w+)", node.text)
        if limit:
            type, what, line = limit.group(1), limit.group(2), node.line
            return lambda: numeric_limit(named_type(type, self.scope, self.program, line), what, line)
        return self._identifier(Node("identifier", node.text.rpartition("::")[2].strip(), node.line, [], {}))

    def _field_expression(self, node: Node) -> Closure:
        owner, name = node["argument"], node["field"].text
        if owner.text in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
            value = f"{owner.text}.{name}"
            return lambda: self.places[value]
        place = self._place(node)
        return lambda: place().get(self)

    def _subscript_expression(self, node: Node) -> Closure:
        pointer = self._indexed(node)

        def read() -> Any:
            p = pointer()
            self.line = node.line
            return p if isinstance(p, Accessor) or p.inner else self.read(p)

        return read

    def _indexed(self, node: Node) -> Callable[[], Any]:
        base = node["argument"]
        index = node["indices"].children[0] if "indices" in node.fields else node["index"]

        def at() -> Any:
            p, i = self.value(base), self.scalar(index)
            if isinstance(p, Accessor):
                far = binary(self.tape, "*", converted(self.tape, i, "i64"), Value("i64", p.strides[0]))
                there = self.moved(p.pointer, far, 1, node.line)
                return there if len(p.strides) == 1 else Accessor(there, p.sizes[1:], p.strides[1:])
            if not isinstance(p, Pointer):
                raise Refused(node.line, f"{base.text[:60]} is not an array")
            return self.moved(p, i, 1, node.line)

        return at

    def _pointer_expression(self, node: Node) -> Closure:
        inner = node["argument"]
        if node["operator"].text == "*":

            def read() -> Any:
                p = self.value(inner)
                self.line = node.line
                if not isinstance(p, Pointer):
                    raise Refused(node.line, f"{inner.text[:60]} is not a pointer")
                return self.read(p)

            return read
        place = self._place(inner)

        def address() -> Any:
            found = place()
            if isinstance(found, Element):
                return found.pointer
            if isinstance(found, Part) and isinstance(found.of, Element):
                p = found.of.pointer
                base = p.type.base
                return Pointer(p.memory, p.offset + found.at * size_of(base), base)
            if isinstance(found, Slot):
                return array_of(found, node.line)
            raise Refused(node.line, f"the address of {inner.text[:60]} is not followed")

        return address

    def _unary_expression(self, node: Node) -> Closure:
        inner, symbol = node["argument"], node["operator"].text

        def apply() -> Any:
            a = self.scalar(inner)
            match symbol:
                case "-":
                    return unary(self.tape, "neg", a.type, a)
                case "+":
                    return a
                case "!":
                    return negated(self.tape, a)
                case "~" if a.codes is None:
                    return Value(a.type, ~a.known)
            raise Refused(node.line, f"{symbol} of data is not read")

        return apply

    def _binary_expression(self, node: Node) -> Closure:
        left, right, symbol = node["left"], node["right"], node["operator"].text
        if symbol in ("&&", "||"):
            return lambda: self._both(symbol, left, right)

        def apply() -> Any:
            a, b = self.value(left), self.value(right)
            if isinstance(a, Pointer) and isinstance(b, Value) and symbol in "+-":
                return self._stepped(a, b, 1 if symbol == "+" else -1, node.line)
            if isinstance(b, Pointer) and isinstance(a, Value) and symbol == "+":
                return self._stepped(b, a, 1, node.line)
            if isinstance(a, Pointer) or isinstance(b, Pointer):
                if symbol in ("==", "!=") and (isinstance(a, Value) or isinstance(b, Value)):
                    return Value("bool", symbol == "!=")
                raise Refused(node.line, f"{node.text[:60]}: pointers are not compared")
            if not isinstance(a, Value) or not isinstance(b, Value):
                raise Refused(node.line, f"{node.text[:60]} is not arithmetic of numbers")
            return binary(self.tape, symbol, a, b)

        return apply

    def _stepped(self, p: Pointer, i: Value, sign: int, line: int) -> Pointer:
        moved = self.moved(p, i, sign, line)
        return Pointer(moved.memory, moved.offset, p.type, p.inner)

    def _both(self, symbol: str, left: Node, right: Node) -> Value:
        """The right side is only looked at by lanes that need it."""
        a = converted(self.tape, self.scalar(left), "bool")
        if a.codes is not None:
            return binary(self.tape, symbol, a, self.scalar(right))
        outer = self.mask
        need = outer & (a.known if symbol == "&&" else np.logical_not(a.known))
        if not need.any():
            return a
        self.mask = need
        try:
            b = self.scalar(right)
        finally:
            self.mask = outer
        return binary(self.tape, symbol, a, b)

    def _conditional_expression(self, node: Node) -> Closure:
        condition, left, right = node["condition"], node["consequence"], node["alternative"]

        def apply() -> Any:
            c = converted(self.tape, self.scalar(condition), "bool")
            if c.codes is None:
                taken = self.mask & c.known
                other = self.mask & np.logical_not(c.known)
                if not other.any():
                    return self._masked(taken, left)
                if not taken.any():
                    return self._masked(other, right)
                return self._chosen(c, self._masked(taken, left), self._masked(other, right), node.line)
            return self._chosen(c, self.value(left), self.value(right), node.line)

        return apply

    def _masked(self, mask: Any, node: Node) -> Any:
        outer = self.mask
        if mask is not outer and bool((mask == outer).all()):
            return self.value(node)
        self.mask = mask
        try:
            return self.value(node)
        finally:
            self.mask = outer

    def _chosen(self, c: Value, a: Any, b: Any, line: int) -> Any:
        if isinstance(a, Vector) and isinstance(b, Vector):
            return Vector(a.type, [chosen(self.tape, c, x, y) for x, y in zip(a.parts, b.parts, strict=True)])
        if isinstance(a, Pointer) and isinstance(b, Pointer) and a.memory is b.memory and c.codes is None:
            return Pointer(a.memory, np.where(c.known, a.offset, b.offset), a.type, a.inner)
        if isinstance(a, Value) and isinstance(b, Value):
            return chosen(self.tape, c, a, b)
        raise Refused(line, "a choice between pointers is not followed")

    # ------------------------------------------------------------ casts

    def _cast_expression(self, node: Node) -> Closure:
        inner, type = node["value"], node["type"]
        return lambda: self.cast(self.value(inner), self.type(type), node.line)

    def cast(self, value: Any, type: Any, line: int) -> Any:
        """C's cast: numbers are converted, pointers seen as of another element type."""
        if isinstance(value, Pointer):
            if isinstance(type, PointerType):
                return Pointer(value.memory, value.offset, value.type if type.to == "void" else type.to)
            if type in ("u64", "i64"):
                return Value(type, value.offset)  # asked only for alignment
        if isinstance(value, Value) and isinstance(type, str):
            return value if type in ("void", "auto") else converted(self.tape, value, type)
        if isinstance(value, Vector) and isinstance(type, VectorType) and value.type == type:
            return value
        raise Refused(line, "this cast is not read")

    def _compound_literal_expression(self, node: Node) -> Closure:
        type, parts = node["type"], node["value"].children

        def make() -> Any:
            made = self.type(type)
            values = [self.value(part) for part in parts]
            if isinstance(made, VectorType):
                return Vector(made, [converted(self.tape, x, made.base) for x in values])
            return self.cast(values[0] if values else Value("i32", 0), made, node.line)

        return make

    def _sizeof_expression(self, node: Node) -> Closure:
        def size() -> Any:
            type = node.get("type")
            if type is not None:
                return Value("u64", size_of(self.type(type)))
            text = node.children[0].text.strip("()")
            found = self.scope.find(text)
            if isinstance(found, str | VectorType):
                return Value("u64", size_of(found))
            if isinstance(found, Slot):
                return Value("u64", found.value.step if isinstance(found.value, Pointer) else size_of(found.type))
            return Value("u64", size_of(named_type(text, self.scope, self.program, node.line)))

        return size

    # ------------------------------------------------------------ assignment

    def _assignment_expression(self, node: Node) -> Closure:
        place, right, symbol = self._place(node["left"]), node["right"], node["operator"].text

        def assign() -> Any:
            self.line = node.line
            value = self.value(right)
            target = place()
            if symbol != "=":
                old = target.get(self)
                if isinstance(old, Pointer):
                    value = self._stepped(old, value, 1 if symbol == "+=" else -1, node.line)
                elif isinstance(old, Value) and isinstance(value, Value):
                    value = binary(self.tape, symbol[:-1], old, value)
                else:
                    raise Refused(node.line, f"{node.text[:60]} is not read")
            self.line = node.line
            target.set(self, value)
            return value

        return assign

    def _update_expression(self, node: Node) -> Closure:
        place, symbol = self._place(node["argument"]), node["operator"].text
        before = not node.text.startswith(symbol)

        def update() -> Any:
            target = place()
            old = target.get(self)
            one = Value("i32", 1)
            new = (
                self._stepped(old, one, 1 if symbol == "++" else -1, node.line)
                if isinstance(old, Pointer)
                else binary(self.tape, symbol[0], old, one)
            )
            target.set(self, new)
            return old if before else new

        return update

    def _comma_expression(self, node: Node) -> Closure:
        parts = node.children
        return lambda: [self.value(part) for part in parts][-1]

    def _place(self, node: Node) -> Callable[[], Any]:
        """What an expression names, to be assigned."""
        match node.kind:
            case "parenthesized_expression":
                return self._place(node.children[0])
            case "identifier":

                def slot() -> Any:
                    found = self.scope.find(node.text)
                    if found is None or not hasattr(found, "set"):
                        raise Refused(node.line, f"{node.text} cannot be assigned")
                    return found

                return slot
            case "subscript_expression":
                indexed = self._indexed(node)

                def element() -> Any:
                    self.line = node.line
                    return Element(indexed())

                return element
            case "pointer_expression":
                inner = node["argument"]
                return lambda: Element(self.value(inner))
            case "field_expression":
                name = node["field"].text
                if name not in FIELDS:
                    raise Refused(node.line, f"the field {name} is not read")
                whole = node["argument"]
                if "->" in node.text[len(whole.text) : len(whole.text) + 3]:
                    return lambda: Part(Element(self.value(whole)), FIELDS[name])
                owner = self._place(whole)
                return lambda: Part(owner(), FIELDS[name])
            case "call_expression" | "cast_expression":
                return lambda: Temporary(self.value(node))
        raise Refused(node.line, f"{node.text[:60]} cannot be assigned")

    # ------------------------------------------------------------ calls

    def _call_expression(self, node: Node) -> Closure:
        callee = node["function"]
        arguments = node["arguments"].children
        templates: list[Node] = []
        name = callee.text
        if callee.kind == "field_expression":
            return lambda: self._method(callee, arguments, node.line)
        if callee.kind == "template_function":
            name, templates = callee["name"].text, callee["arguments"].children
        elif callee.kind == "qualified_identifier":
            inner = callee["name"]
            while inner.kind == "qualified_identifier":
                inner = inner["name"]
            name = inner.text
            if "numeric_limits" in callee.text:
                return self._qualified_identifier(callee)
            if inner.kind == "template_function":
                name, templates = inner["name"].text, inner["arguments"].children
        if name in ("static_cast", "reinterpret_cast", "const_cast"):
            return lambda: self.cast(self.value(arguments[0]), self.type(templates[0]), node.line)

        def call() -> Any:
            self.line = node.line
            if name in self.program.functions:
                return self.call_function(name, templates, arguments, node.line)
            found = self.scope.find(name)
            if callable(found):
                return found(arguments)
            if builtins.known(name):
                return builtins.call(self, name, [self.value(a) for a in arguments], node.line)
            if isinstance(found, str | VectorType) or callee.kind in (
                "primitive_type",
                "type_identifier",
                "sized_type_specifier",
            ):
                return self.cast(self.value(arguments[0]), named_type(name, self.scope, self.program, node.line), node.line)
            try:
                type = named_type(callee.text, self.scope, self.program, node.line)
            except Refused:
                raise Refused(node.line, f"the function {callee.text[:60]} is not known") from None
            return self.cast(self.value(arguments[0]) if arguments else Value("i32", 0), type, node.line)

        return call

    def _method(self, callee: Node, arguments: list[Node], line: int) -> Any:
        owner = self.value(callee["argument"])
        if isinstance(owner, Accessor):
            match callee["field"].text:
                case "size":
                    return Value("i64", owner.sizes[self.number(arguments[0])])
                case "stride":
                    return Value("i64", owner.strides[self.number(arguments[0])])
                case "data":
                    return owner.pointer
        raise Refused(line, f"the function {callee.text[:60]} is not known")

    def call_function(self, name: str, templates: list[Node], arguments: list[Node], line: int) -> Any:
        """A function of the source; statements.py has it."""
        raise NotImplementedError

    def _initializer_list(self, node: Node) -> Closure:
        parts = node.children
        return lambda: [self.value(part) for part in parts]

    def _user_defined_literal(self, node: Node) -> Closure:
        return self._number_literal(node)
