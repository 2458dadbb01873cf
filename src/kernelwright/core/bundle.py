"""A function or class inside somebody's program → one kernel file that stands alone.

In: `file.py:Name` or `package.module:Name`. Out: the text of a file that defines `ModelNew`, and the texts it was made of. Nothing is
imported or run here: imports are followed by reading. What the file imports from its own package or folder travels with it as text and is
laid out in a temporary folder when the file is loaded, so that it also loads in a sandbox that sees nothing else of this machine;
packages that are installed are imported as they are. Of the file itself only what the name needs is kept, not benchmarks and examples.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

from kernelwright.core.errors import KernelFileError

LARGEST = 4 << 20
"""Bytes of text that travel with a kernel."""

_LAID_OUT = '''"""{name} of {origin}, with what it imports of its own package; made by kernelwright."""
import os
import sys
import tempfile

import torch

PACKAGE = {{
{files}}}

_root = tempfile.mkdtemp(prefix="kernel-package-")
for _path, _text in PACKAGE.items():
    os.makedirs(os.path.join(_root, os.path.dirname(_path)), exist_ok=True)
    with open(os.path.join(_root, _path), "w") as _file:
        _file.write(_text)
sys.path.insert(0, _root)

{entry}'''

_INSTALLED = '''"""{name} of {origin}, as it is installed; made by kernelwright."""
import torch

{entry}'''

_ENTRY = """from {module} import {name} as _entry

if isinstance(_entry, type) and issubclass(_entry, torch.nn.Module):

    class ModelNew(_entry):
        pass

else:

    class ModelNew(torch.nn.Module):
        def forward(self, *inputs):
            return getattr(_entry, "apply", _entry)(*inputs)  # `apply` of an autograd.Function
"""


def names_entry(spec: str) -> bool:
    """Whether a text is `file.py:Name` or `package.module:Name` rather than the path of a file."""
    place, _, name = spec.rpartition(":")
    return bool(place) and name.isidentifier() and not Path(spec).exists()


@dataclass(frozen=True)
class Bundle:
    """`text` is the file that stands for the name; `sources` what people wrote, by which its language is known."""

    text: str
    sources: str


def bundled(spec: str) -> Bundle:
    """The file that stands for `spec`."""
    place, _, name = spec.rpartition(":")
    file = Path(place) if place.endswith(".py") else _find(place.split("."))
    if file is None or not file.is_file():
        where = (
            "there is no such file" if place.endswith(".py") else "no such module is in this folder, on PYTHONPATH or installed"
        )
        raise KernelFileError(place, where)
    tree = _parsed(file)
    if name not in {n for statement in tree.body for n in _defines(statement)}:
        raise KernelFileError(file, f"it defines no {name}; it has {', '.join(_public(tree)) or 'no function and no class'}")
    root, module = _package(file)
    entry = _ENTRY.format(module=module, name=name)
    if any(part in ("site-packages", "dist-packages") for part in root.parts):
        return Bundle(_INSTALLED.format(name=name, origin=module, entry=entry), file.read_text())
    alone = (
        file.resolve().parent == root and file.name != "__init__.py"
    )  # the modules of a package may want more of it than the name
    files = {_within(file, root): _sliced(file.read_text(), tree, name) if alone else file.read_text()}
    _follow(file, ast.parse(files[_within(file, root)]), root, files)
    if sum(map(len, files.values())) > LARGEST:
        raise KernelFileError(file, f"what it imports of its own package is larger than {LARGEST >> 20} MiB")
    listed = "".join(f"    {path!r}: {text!r},\n" for path, text in sorted(files.items()))
    return Bundle(
        _LAID_OUT.format(name=name, origin=module, files=listed, entry=entry), "\n".join([file.read_text(), *files.values()])
    )


def package_folder(name: str) -> Path | None:
    """Where an importable package or module lies; None for one that is not there."""
    found = _find(name.split(".")) if all(part.isidentifier() for part in name.split(".")) else None
    return found.parent if found is not None and found.name == "__init__.py" else found


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text())
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise KernelFileError(f"{file}:{line}" if line else file, f"this is not Python: {error}") from error


def _find(parts: list[str], roots: list[Path] | None = None) -> Path | None:
    """The file of a module by its dotted name."""
    for root in roots if roots is not None else [Path.cwd(), *(Path(entry) for entry in sys.path if entry)]:
        base = root.joinpath(*parts)
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if parts and file.is_file():
                return file.resolve()
    return None


def _package(file: Path) -> tuple[Path, str]:
    """The folder that the outermost package lies in, and the file's dotted name from there."""
    file = file.resolve()
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _within(file: Path, root: Path) -> str:
    return file.resolve().relative_to(root).as_posix()


def _follow(file: Path, tree: ast.AST, root: Path, files: dict[str, str]) -> None:
    """Adds the modules of the same root that a file imports, and theirs."""
    folder = file.resolve().parent
    wanted: list[Path] = [
        f for f in (p / "__init__.py" for p in folder.parents if p != root and root in p.parents) if f.is_file()
    ]
    if folder != root and (folder / "__init__.py").is_file():
        wanted.append(folder / "__init__.py")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted += _modules([alias.name.split(".") for alias in node.names], root)
        elif isinstance(node, ast.ImportFrom):
            base = folder
            for _ in range(max(node.level - 1, 0)):
                base = base.parent
            start = list(base.relative_to(root).parts) if node.level and (base == root or root in base.parents) else []
            parts = start + (node.module.split(".") if node.module else [])
            wanted += _modules([parts, *([*parts, alias.name] for alias in node.names)], root)
    for found in wanted:
        path = _within(found, root)
        if path not in files:
            files[path] = found.read_text()
            _follow(found, _parsed(found), root, files)


def _modules(names: list[list[str]], root: Path) -> list[Path]:
    """The files of these modules and of the packages around them, where the root has them."""
    found = []
    for parts in names:
        for count in range(1, len(parts) + 1):
            file = _find(parts[:count], [root])
            if file is not None and root in file.parents:
                found.append(file)
    return found


# ---------------------------------------------------------------- what a name needs


def _sliced(text: str, tree: ast.Module, name: str) -> str:
    """The statements of a file that a name needs, in their order, with their lines where they were."""
    by_name: dict[str, list[int]] = {}
    for number, statement in enumerate(tree.body):
        for defined in _defines(statement):
            by_name.setdefault(defined, []).append(number)
    kept: set[int] = {n for n, s in enumerate(tree.body) if isinstance(s, ast.ImportFrom) and s.module == "__future__"}
    stars = {n for n, s in enumerate(tree.body) if isinstance(s, ast.ImportFrom) and any(a.name == "*" for a in s.names)}
    queue = [name]
    seen: set[str] = set()
    while queue:
        wanted = queue.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        for number in by_name.get(wanted, []):
            kept.add(number)
            queue += [n.id for n in ast.walk(tree.body[number]) if isinstance(n, ast.Name)]
    lines = text.splitlines()
    blank = [""] * len(lines)
    for number in kept | stars:
        statement = tree.body[number]
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        blank[first - 1 : last] = lines[first - 1 : last]
    return "\n".join(blank) + "\n"


def _defines(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module gives something to."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        case ast.If() | ast.Try() | ast.With() | ast.For():
            return {name for inner in ast.iter_child_nodes(statement) for name in _inside(inner)}
    return set()


def _inside(node: ast.AST) -> set[str]:
    if isinstance(node, ast.stmt):
        return _defines(node)
    return (
        {name for inner in ast.iter_child_nodes(node) for name in _inside(inner)}
        if isinstance(node, ast.ExceptHandler)
        else set()
    )


def _public(tree: ast.Module) -> list[str]:
    """What of a file could be named: classes, and functions that no compiler of kernels takes."""
    return [
        s.name for s in tree.body if isinstance(s, ast.ClassDef) or (isinstance(s, ast.FunctionDef) and not s.decorator_list)
    ]
