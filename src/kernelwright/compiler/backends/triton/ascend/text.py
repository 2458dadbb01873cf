"""A launch as plain data for another Python: the text of its functions with all that they name, and arguments without their memory.

In: a `Launched`. Out: `Work`: a module's text in which the kernel and the functions that it calls are defined again for the Triton that is
installed there, and its arguments. What a function names is found in its text, because defaults and annotations are not in its code:
parts of Triton are imported as the author's file imports them, constants become literals. What is neither is left out, and the compiler
says so.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
import types
from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.backends.triton.copies import INTERPRETING
from kernelwright.compiler.backends.triton.interpreter.patches import OPTIONS, RECORD, Launched, Pointer
from kernelwright.compiler.language import CompileFailed

_interpreter: Any = INTERPRETING["triton.runtime.interpreter"]
_core: Any = INTERPRETING["triton.language.core"]
HEAD = "from __future__ import annotations\nimport triton as _triton\nimport triton.language as _tl\n"
KEPT = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")
"""What `@triton.jit(…)` may say that both Tritons know."""


@dataclass(frozen=True)
class Work:
    """One kernel to lower, as it is sent (JSON)."""

    function: str
    text: str
    args: list[dict[str, Any]]
    kwargs: dict[str, dict[str, Any]]
    options: dict[str, Any]


def work(launch: Launched) -> Work:
    """The launch as plain data; CompileFailed for an argument that triton-ascend's Triton has no word for."""
    name = launch.function.fn.__name__
    module = _Module()
    module.function(launch.function)
    named = {key: value for key, value in launch.kwargs.items() if key in launch.function.arg_names}
    options = {key: value for key, value in launch.kwargs.items() if key in OPTIONS and key not in named}
    try:
        args = [_argument(value) for value in launch.args]
        kwargs = {key: _argument(value) for key, value in named.items()}
    except ValueError as error:
        raise CompileFailed(f"error: {name}: {error}") from None
    return Work(name, HEAD + "\n".join(module.lines) + "\n", args, kwargs, options)


@dataclass
class _Module:
    """The text in the making: names that are defined already, lines in order."""

    lines: list[str] = field(default_factory=list)
    defined: dict[str, Any] = field(default_factory=dict)

    def function(self, interpreted: Any) -> None:
        """A function of the kernel's author, after everything that it names."""
        original = interpreted.fn
        if original.__name__ in self.defined:
            return
        self.defined[original.__name__] = interpreted
        text = plain_text(original)
        closed = inspect.getclosurevars(original).nonlocals
        known = {**original.__globals__, **closed}
        for name in mentioned(text):
            if name in known and name not in self.defined:
                self.name(name, known[name], original)
        options = {key: interpreted.kwargs.get(key) for key in KEPT if interpreted.kwargs.get(key)}
        said = ", ".join(f"{key}={value!r}" for key, value in options.items())
        self.lines.append(f"\n@_triton.jit{f'({said})' if said else ''}\n{text}")

    def name(self, name: str, value: Any, function: Any) -> None:
        """A name that a function finds in its module, or around it."""
        if isinstance(value, _interpreter.InterpretedFunction) and not value.fn.__module__.startswith("triton."):
            self.function(value)
            if value.fn.__name__ != name:
                self.lines.append(f"{name} = {value.fn.__name__}")
            self.defined[name] = value
            return
        line = imported(name, value) or (f"{name} = {text}" if (text := literal(value)) else "")
        if line.startswith(("import ", "from ")):
            line = own_import(name, function) or line
        if line:
            self.defined[name] = value
            self.lines.append(line)


def plain_text(function: Any) -> str:
    """A function's source from its `def` on, without decorators and at the margin."""
    text = textwrap.dedent(inspect.getsource(function))
    start = re.search(r"^def\s", text, re.MULTILINE)
    return text[start.start() :].rstrip() if start else text


def mentioned(text: str) -> list[str]:
    """All names in a text, in order: those of annotations and defaults, too."""
    tree = ast.parse(text)
    return list(dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)))


def own_import(name: str, function: Any) -> str:
    """The statements of a function's file that import a name from Triton, alternatives for other Tritons included."""
    try:
        tree = ast.parse("".join(inspect.findsource(function)[0]))
    except (OSError, SyntaxError):
        return ""
    imports = ast.Import | ast.ImportFrom
    for statement in tree.body:
        if isinstance(statement, imports) or (isinstance(statement, ast.Try) and isinstance(statement.body[0], imports)):
            parts = [node for node in ast.walk(statement) if isinstance(node, imports)]
            bound = {alias.asname or alias.name for node in parts for alias in node.names}
            homes = [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in parts]
            if name in bound and all(home.split(".")[0] == "triton" for home in homes):
                return ast.unparse(statement)
    return ""


def imported(name: str, value: Any) -> str:
    """The import of a module or of a part of Triton, or nothing where the value is neither."""
    if isinstance(value, types.ModuleType):
        home = value.__name__
        return f"import {home} as {name}" if home.split(".")[0] in ("triton", "math") else ""
    if id(value) in RECORD.originals:
        home, own = RECORD.originals[id(value)]
        return f"from {home} import {own} as {name}"
    function = getattr(value, "fn", value)
    place, called = getattr(function, "__module__", None), getattr(function, "__name__", None)
    if isinstance(place, str) and place.split(".")[0] == "triton" and isinstance(called, str):
        return f"from {place} import {called} as {name}"
    return ""


def literal(value: Any) -> str:
    """A constant as Python text, or nothing where it has none."""
    if isinstance(value, _core.constexpr):
        inner = literal(value.value)
        return f"_tl.constexpr({inner})" if inner else ""
    if isinstance(value, _core.dtype):
        return f"_tl.dtype({value.name!r})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) in (tuple, list):
        parts = [literal(item) for item in value]
        inside = ", ".join(parts) + ("," if len(parts) == 1 else "")
        return (f"({inside})" if type(value) is tuple else f"[{inside}]") if all(parts) else ""
    return ""


def _argument(value: Any) -> dict[str, Any]:
    """An argument of a launch: {"pointer": dtype}, {"dtype": name} or {"value": number, text or None}."""
    if isinstance(value, _core.constexpr):
        value = value.value
    if isinstance(value, Pointer):
        return {"pointer": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, _core.dtype):
        return {"dtype": value.name}
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    if isinstance(value, int | float):  # numpy's and the interpreter's numbers
        return {"value": int(value) if isinstance(value, int) else float(value)}
    raise ValueError(f"an argument of the type {type(value).__name__} is not known to triton-ascend")
