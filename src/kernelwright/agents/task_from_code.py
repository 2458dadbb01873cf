"""A task from code that exists: `path.py:name` and what it is called with in, the text of a task file out. Runs nothing.

The function or class is cut out of its file together with all that it uses there (imports, constants, other functions), so that the
task stands alone. A function becomes the forward of `Model`; a module class becomes `Model` itself.
"""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass
from pathlib import Path

from kernelwright.core.dtypes import DType
from kernelwright.core.errors import TaskError
from kernelwright.core.task.task import parse, read_text

DTYPES = {dtype.value: dtype.torch_name for dtype in DType}
TENSOR = re.compile(r"^(?P<dtype>\w+)\[(?P<shape>[\d\s,]*)\](?:\s*<\s*(?P<below>\d+))?$")
DEFAULT_BELOW = 10


@dataclass(frozen=True)
class Definition:
    """A top-level statement: the names that it binds and the names that it reads."""

    node: ast.stmt
    binds: frozenset[str]
    reads: frozenset[str]


def task_from(spec: str, inputs: str, init: str = "") -> str:
    """The text of a task file for `path.py:name`; TaskError says what is missing."""
    head, _, name = spec.rpartition(":")
    if not head or not name.isidentifier():
        raise TaskError(spec, "say what to take from which file: path.py:name")
    return task_from_text(read_text(Path(head)), name, inputs, init, path=head)


def task_from_text(source: str, name: str, inputs: str, init: str = "", *, path: str) -> str:
    """The same for a file's text; `path` is for its errors."""
    head, spec = path, f"{path}:{name}"
    tree = parse(source, head)
    definitions = [_definition(node) for node in tree.body]
    wanted = next((d.node for d in reversed(definitions) if name in d.binds), None)
    if wanted is None:
        raise TaskError(head, f"nothing named {name} is defined in it")
    parts = [_text(source, d.node) for d in _needed(definitions, name, head)]
    draws = [draw(item) for item in split_arguments(inputs)]
    if isinstance(wanted, ast.ClassDef):
        model = [] if name == "Model" else [f"class Model({name}):\n    pass"]
    elif isinstance(wanted, ast.FunctionDef):
        arity = _arity(wanted)
        if arity is not None and not arity[0] <= len(draws) <= arity[1]:
            raise TaskError(spec, f"{name} takes {arity[0]} to {arity[1]} arguments, and --inputs gives {len(draws)}")
        model = [f"class Model(nn.Module):\n    def forward(self, *inputs):\n        return {name}(*inputs)"]
    else:
        raise TaskError(spec, f"{name} is neither a function nor a class")
    listed = "\n".join(f"        {item}," for item in draws)
    body = [f'"""{name} of {Path(head).name}."""', "import torch\nfrom torch import nn", *parts, *model]
    body.append(f"def get_inputs():\n    return [\n{listed}\n    ]" if draws else "def get_inputs():\n    return []")
    if init.strip():
        body.append(f"def get_init_inputs():\n    return {constructor(init)}")
    return "\n\n\n".join(body) + "\n"


def draw(item: str) -> str:
    """One argument as Python: `f32[8, 16]`, `i64[8]<1000`, `bool[4]`, or a plain value."""
    found = TENSOR.match(item.strip())
    if found is None:
        try:
            return repr(ast.literal_eval(item.strip()))
        except (ValueError, SyntaxError) as error:
            raise TaskError(
                "--inputs", f"{item.strip()!r} is no input; write for example f32[128,512], i64[64]<1000 or 0.5"
            ) from error
    dtype = DTYPES.get(found["dtype"])
    if dtype is None:
        raise TaskError("--inputs", f"there is no dtype {found['dtype']!r}; known are {', '.join(DTYPES)}")
    shape = ", ".join(part.strip() for part in found["shape"].split(",") if part.strip())
    sizes = f"({shape},)" if shape and "," not in shape else f"({shape})"
    if dtype == "bool":
        return f"torch.randint(0, 2, {sizes}).bool()"
    if dtype.startswith(("int", "uint")):
        return f"torch.randint(0, {found['below'] or DEFAULT_BELOW}, {sizes}, dtype=torch.{dtype})"
    return f"torch.randn({sizes})" + ("" if dtype == "float32" else f".to(torch.{dtype})")


def split_arguments(text: str) -> list[str]:
    """A list of arguments at its commas, but not at those inside brackets or strings."""
    parts, depth, quote, current = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += letter in "[(" and not quote
        depth -= letter in "])" and not quote
        if letter == "," and depth == 0 and not quote:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [part.strip() for part in [*parts, current] if part.strip()]


def constructor(text: str) -> str:
    """Constructor arguments, `512, eps=1e-5`, as what get_init_inputs returns."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        values = [ast.literal_eval(argument) for argument in call.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, AssertionError) as error:
        raise TaskError("--init", f"{text!r} are no constructor arguments; write for example 512, eps=1e-5") from error
    return repr([values, named]) if values and named else repr(named) if named else repr(values)


def _definition(node: ast.stmt) -> Definition:
    binds: set[str] = set()
    reads: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (binds if isinstance(part.ctx, ast.Store) and not _is_scope(node) else reads).add(part.id)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        binds = {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        binds = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return Definition(node, frozenset(binds), frozenset(reads))


def _is_scope(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _needed(definitions: list[Definition], name: str, path: str) -> list[Definition]:
    """The definitions that a name needs, in the order of the file; a name that comes from nowhere stays, and fails where it is
    used. What a file imports from its own package cannot come along."""
    wanted, chosen = [name], set[int]()
    while wanted:
        current = wanted.pop()
        for number, definition in enumerate(definitions):
            if current in definition.binds and number not in chosen and not hasattr(builtins, current):
                if isinstance(definition.node, ast.ImportFrom) and definition.node.level:
                    raise TaskError(
                        path, f"{current} is imported from its own package; a task stands alone", line=definition.node.lineno
                    )
                chosen.add(number)
                wanted += definition.reads
    return [definition for number, definition in enumerate(definitions) if number in chosen]


def _text(source: str, node: ast.stmt) -> str:
    """The statement as it was written, with decorators."""
    lines = source.splitlines()
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _arity(function: ast.FunctionDef) -> tuple[int, int] | None:
    arguments = function.args
    if arguments.vararg is not None:
        return None
    count = len(arguments.posonlyargs) + len(arguments.args)
    return count - len(arguments.defaults), count
