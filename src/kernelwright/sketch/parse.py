"""Source text to Sketch: declarations, kernels and statements.

In: text in the language of docs/sketch.md (Python's syntax, read by `ast`, never executed). Out: a `nodes.Sketch` with the line
of each statement, or a SketchError that names the line and what to write instead. `expressions.py` reads what stands inside
statements; `check.py` judges what is well-formed but wrong.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import tokenize
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.declarations import ROLES
from kernelwright.sketch.expressions import Reader, Scope
from kernelwright.sketch.literals import (
    arguments,
    dtype_name,
    fault,
    literal_flag,
    literal_int,
    literal_number,
    literal_string,
    similar,
)
from kernelwright.sketch.nodes import Int
from kernelwright.sketch.types import Typer

_DECLARATIONS = ("size", "tunable", "tensor")
_TOP_CALLS = ("constant", "library", "returns")
Role = Literal["input", "param", "constant", "output", "temp", "view"]
Mode = Literal["set", "add", "max", "min"]


def parse(source: str, *, path: Path | str = "sketch") -> nodes.Sketch:
    """Reads a sketch. `path` is only used in messages."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise SketchError(f"not Python syntax: {error.msg}", line=error.lineno or 0, path=path) from None
    return _File(tree, _comments(source), str(path)).sketch()


def _comments(source: str) -> list[tuple[int, int, str]]:
    """Comments that have a line to themselves: (line, column, text without the mark)."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip() == "":
            text = token.string[1:]
            found.append((token.start[0], token.start[1], text.removeprefix(" ").rstrip()))
    return found


class _File:
    """One source file."""

    def __init__(self, tree: ast.Module, comments: list[tuple[int, int, str]], path: str) -> None:
        self.tree, self.comments, self.path = tree, comments, path
        self.name = "sketch"
        self.sizes: list[nodes.Size] = []
        self.tunables: list[nodes.Tunable] = []
        self.tensors: list[nodes.Tensor] = []
        self.constants: list[tuple[str, tuple[float | int | bool, ...]]] = []
        self.returns: str | None = None

    def fault(self, reason: str, node: ast.AST, hint: str = "") -> SketchError:
        return fault(reason, node, hint, self.path)

    def sketch(self) -> nodes.Sketch:
        doc = ast.get_docstring(self.tree) or ""
        body = self.tree.body[1:] if _is_docstring(self.tree.body) else self.tree.body
        steps: list[ast.FunctionDef | ast.Call] = []
        for statement in body:
            step = self.top(statement)
            if step is not None:
                steps.append(step)
        if self.returns is None:
            raise SketchError("nothing is returned", path=self.path, hint='end with returns("name of an output")')
        done = tuple(self.kernel(step) if isinstance(step, ast.FunctionDef) else self.library(step) for step in steps)
        declared = (tuple(self.sizes), tuple(self.tunables), tuple(self.tensors))
        return nodes.Sketch(self.name, doc, *declared, done, self.returns, tuple(self.constants))

    # ---- declarations

    def top(self, statement: ast.stmt) -> ast.FunctionDef | ast.Call | None:
        """One statement of the file: a declaration is kept, a step is handed back for later."""
        match statement:
            case ast.FunctionDef():
                return statement
            case ast.Assign(targets=[ast.Name(id="name")], value=ast.Constant(value=str() as name)):
                self.name = name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=what)) as call):
                self.declare(name, what, call)
            case ast.Expr(value=ast.Call(func=ast.Name(id=what)) as call):
                if what == "library":
                    return call
                self.call(what, call)
            case ast.ImportFrom(module=module) if (module or "").startswith("kernelwright"):
                pass  # an editor may want the names; they mean nothing here
            case _:
                text = ast.unparse(statement).split("\n")[0]
                raise self.fault(
                    f"{text} is not a declaration",
                    statement,
                    "a sketch has size(…), tunable(…), tensor(…), constant(…), @kernel functions, library(…) and returns(…)",
                )
        return None

    def scope(self) -> Scope:
        """The names declared so far."""
        part = nodes.Sketch("", "", tuple(self.sizes), tuple(self.tunables), tuple(self.tensors), (), "null")
        return Scope(Typer(part), {s.name for s in self.sizes} | {t.name for t in self.tunables}, {}, self.path)

    def declare(self, name: str, what: str, call: ast.Call) -> None:
        match what:
            case "size":
                region = ("low", "high", "multiple_of")
                given = arguments(call, ("value",), ("dynamic", *region), self.path)
                dynamic = literal_flag(given["dynamic"], "dynamic", self.path) if "dynamic" in given else False
                known = {key: literal_int(given[key], f"{key} of a size", self.path) for key in region if key in given}
                if known and not dynamic:
                    raise self.fault("only a dynamic size has a range", call, "write dynamic=True")
                if known.get("multiple_of", 1) < 1:
                    raise self.fault("a size is a multiple of 1 or more", call, "write multiple_of=8, or nothing")
                self.sizes.append(nodes.Size(name, literal_int(given["value"], "a size", self.path), dynamic, **known))
            case "tunable":
                given = arguments(call, ("value", "domain"), (), self.path)
                domain = given["domain"]
                if not isinstance(domain, ast.List | ast.Tuple):
                    raise self.fault(
                        "a tunable needs the list of its values", call, f"write {name} = tunable(64, [32, 64, 128])"
                    )
                values = tuple(literal_int(e, "a value of a tunable", self.path) for e in domain.elts)
                self.tunables.append(nodes.Tunable(name, literal_int(given["value"], "a tunable", self.path), values))
            case "tensor":
                given = arguments(call, ("shape", "dtype", "role"), ("source",), self.path)
                role = self.one_of(given["role"], "role", get_args(Role))
                source = literal_string(given["source"], "source", self.path) if "source" in given else ""
                shape = Reader(self.scope()).shape(given["shape"])
                self.tensors.append(nodes.Tensor(name, shape, dtype_name(given["dtype"], self.path), role, source))
            case _:
                raise self.fault(f"unknown declaration {what}", call, similar(what, _DECLARATIONS) or "size, tunable or tensor")

    def one_of(self, node: ast.expr, what: str, known: Sequence[str]) -> Any:
        value = literal_string(node, what, self.path)
        if value not in known:
            raise self.fault(f"unknown {what} {value!r}", node, similar(value, known) or f"one of {', '.join(known)}")
        return value

    def call(self, what: str, call: ast.Call) -> None:
        match what:
            case "constant":
                given = arguments(call, ("name", "values"), (), self.path)
                if not isinstance(given["values"], ast.List | ast.Tuple):
                    raise self.fault("a constant needs the list of its values", call)
                values = tuple(literal_number(e, self.path) for e in given["values"].elts)
                self.constants.append((literal_string(given["name"], "a constant's name", self.path), values))
            case "returns":
                if self.returns is not None:
                    raise self.fault("returns stands here for the second time", call)
                self.returns = json.dumps(self.structure(arguments(call, ("structure",), (), self.path)["structure"]))
            case _:
                raise self.fault(
                    f"unknown declaration {what}", call, similar(what, _TOP_CALLS) or "constant, library or returns"
                )

    def structure(self, node: ast.expr) -> Any:
        """What forward returns, as the JSON tree of `Sketch.returns`."""
        match node:
            case ast.Tuple(elts=items):
                return [self.structure(item) for item in items]
            case ast.List(elts=items):
                return {"$list": [self.structure(item) for item in items]}
            case ast.Dict(keys=keys, values=values):
                names = [literal_string(key, "a key", self.path) if key else "" for key in keys]
                return dict(zip(names, map(self.structure, values), strict=True))
            case ast.Constant(value=str() | int() | float() | None as value):
                return value
        return literal_number(node, self.path)

    def library(self, call: ast.Call) -> nodes.LibraryCall:
        given = arguments(call, ("operator", "inputs", "outputs"), ("attributes",), self.path)
        names = {}
        for part in ("inputs", "outputs"):
            node = given[part]
            if not isinstance(node, ast.List | ast.Tuple):
                raise self.fault(f"{part} of library must be a list of tensor names", call)
            names[part] = tuple(literal_string(e, "a tensor's name", self.path) for e in node.elts)
        attributes = literal_string(given["attributes"], "attributes", self.path) if "attributes" in given else "{}"
        operator = literal_string(given["operator"], "the operator", self.path)
        return nodes.LibraryCall(operator, names["inputs"], names["outputs"], attributes)

    # ---- kernels

    def kernel(self, function: ast.FunctionDef) -> nodes.Kernel:
        once = self.decorated(function)
        spec = function.args
        if spec.args or spec.posonlyargs or spec.kwonlyargs or spec.vararg or spec.kwarg:
            raise self.fault(
                f"kernel {function.name} has arguments", function, "kernels use the declared tensors and sizes directly"
            )
        doc = ast.get_docstring(function) or ""
        body = function.body[1:] if _is_docstring(function.body) else function.body
        last = function.end_lineno or function.lineno
        first = (function.body[0].end_lineno or 0) + 1 if _is_docstring(function.body) else function.lineno + 1
        last = self.reach(last, function.body[0].col_offset)
        return nodes.Kernel(function.name, self.block(body, self.scope(), first, last), once, inspect.cleandoc(doc))

    def reach(self, last: int, column: int) -> int:
        """The last line of a block whose last statement ends at `last`: comments below it that are as deep belong to it."""
        following = min((s.lineno for s in ast.walk(self.tree) if isinstance(s, ast.stmt) and s.lineno > last), default=1 << 60)
        decorators = [d.lineno for f in self.tree.body if isinstance(f, ast.FunctionDef) for d in f.decorator_list]
        following = min([following, *(line for line in decorators if line > last)])
        for line, at, _ in self.comments:
            if last < line < following and at >= column:
                last = line
            elif last < line < following:
                break
        return last

    def decorated(self, function: ast.FunctionDef) -> bool:
        """Whether `@kernel(once=True)` stands above; anything but @kernel is an error."""
        match function.decorator_list:
            case [ast.Name(id="kernel")]:
                return False
            case [ast.Call(func=ast.Name(id="kernel")) as call]:
                given = arguments(call, (), ("once",), self.path)
                return literal_flag(given["once"], "once", self.path) if "once" in given else False
        raise self.fault(f"function {function.name} is not marked as a kernel", function, "write @kernel above it")

    # ---- statements

    def block(self, body: Sequence[ast.stmt], scope: Scope, first: int, last: int) -> tuple[nodes.Statement, ...]:
        """Statements of one block and the comments between them; the block covers lines `first` to `last`."""
        result: list[nodes.Statement] = []
        line = first
        for statement in body:
            result += self.remarks(line, statement.lineno - 1)
            end = statement.end_lineno or statement.lineno
            if isinstance(statement, ast.For):
                end = self.reach(end, statement.body[0].col_offset)
            result += self.statement(statement, scope, end)
            line = end + 1
        return (*result, *self.remarks(line, last))

    def remarks(self, first: int, last: int) -> list[nodes.Comment]:
        """The comments on these lines."""
        return [nodes.Comment(text) for line, _, text in self.comments if first <= line <= last]

    def statement(self, statement: ast.stmt, scope: Scope, end: int) -> list[nodes.Statement]:
        reader = Reader(scope)
        line = statement.lineno
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                tile = reader.tile(value)
                scope.tiles[name] = reader.known_type(tile)
                return [nodes.Assign(name, tile, line=line)]
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                whole = ast.BinOp(ast.Name(id=name, ctx=ast.Load()), op, value)
                tile = reader.tile(ast.fix_missing_locations(ast.copy_location(whole, target)))
                scope.tiles[name] = reader.known_type(tile)
                return [nodes.Assign(name, tile, line=line)]
            case ast.Expr(value=ast.Call(func=ast.Name(id="store")) as call):
                return [self.store(call, reader)]
            case ast.For():
                return [self.loop(statement, scope, end)]
            case ast.Pass():
                return []
            case ast.Assign() | ast.AnnAssign():
                raise self.fault(f"{ast.unparse(statement)} does not bind one plain name", statement, "write name = tile")
            case ast.If():
                raise self.fault(
                    "there is no `if` in a kernel", statement, "choose by where(condition, a, b), or split the loop"
                )
            case ast.While():
                raise self.fault("there is no `while` in a kernel", statement, "write for k in range(start, stop, step)")
            case ast.Return():
                raise self.fault("a kernel returns nothing", statement, "store the result, and end the file with returns(…)")
        text = ast.unparse(statement).split("\n")[0]
        raise self.fault(
            f"{text} is not a statement of a kernel", statement, "a kernel has name = tile, store(…) and for loops"
        )

    def store(self, call: ast.Call, reader: Reader) -> nodes.Store:
        given = arguments(call, ("region", "value"), ("mode",), self.path)
        tensor, region = reader.place(given["region"], "store")
        mode: Mode = self.one_of(given["mode"], "mode", get_args(Mode)) if "mode" in given else "set"
        return nodes.Store(tensor, region, reader.tile(given["value"]), mode, line=call.lineno)

    def loop(self, loop: ast.For, scope: Scope, end: int) -> nodes.For:
        if not isinstance(loop.target, ast.Name) or loop.orelse:
            raise self.fault("a loop has one variable and no else", loop)
        call = loop.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in ("parallel", "range"):
            raise self.fault(f"loops go over parallel(…) or range(…), not {ast.unparse(loop.iter)}", loop)
        if not 1 <= len(call.args) <= 3:
            raise self.fault("a loop has one to three bounds", loop, f"write {call.func.id}(start, stop, step)")
        reader = Reader(scope)
        bounds = [reader.index(bound) for bound in call.args]
        start = Int(0) if len(bounds) == 1 else bounds[0]
        stop, step = bounds[0] if len(bounds) == 1 else bounds[1], bounds[2] if len(bounds) == 3 else Int(1)
        hints = tuple(
            sorted(
                (k.arg or "", literal_int(k.value, f"hint {k.arg}", self.path)) for k in call.keywords if k.arg not in RETIRED
            )
        )
        inner = scope.inner()
        inner.integers.add(loop.target.id)
        body = self.block(loop.body, inner, loop.lineno + 1, end)
        kind: Literal["parallel", "range"] = "parallel" if call.func.id == "parallel" else "range"
        return nodes.For(loop.target.id, kind, start, stop, step, body, hints, line=loop.lineno)


RETIRED = frozenset({"pipeline", "unroll", "vectorize"})
"""Hints of older sketches that no language read; they are read over."""


def _is_docstring(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[0], ast.Expr) and isinstance(getattr(body[0].value, "value", None), str)


assert set(get_args(Role)) == set(ROLES), "the roles of the grammar and of the parser differ"
