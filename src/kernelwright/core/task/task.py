"""The Task noun: a path in (`softmax.py`, `module.py:ClassName`), text with an identity out. Runs nothing. A suite's task by its name:
`suites.task`."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from kernelwright.core.errors import TaskError
from kernelwright.core.task.dynamic import parse_dynamic

LARGEST_FILE = 4 << 20
"""Bytes. A task is a page of code; anything larger is a mistake (a checkpoint, a log)."""

DEFAULT_CLASS = "Model"


@dataclass(frozen=True)
class Task:
    """What to compute: the reference class in a file's text. Equal hashes mean the same task, wherever the file lies."""

    path: str
    name: str
    source: str
    class_name: str
    hash: str
    dynamic: str = ""
    """Which sizes vary, as `--dynamic` says it (dynamic.py); empty: what the file's get_dynamic says, else none."""

    @classmethod
    def from_path(cls, spec: str | Path) -> Self:
        """Read a task file; raises TaskError with one sentence for anything that is not one."""
        path, class_name = split_spec(str(spec))
        return cls.from_source(read_text(path), path=str(path), class_name=class_name)

    def varying(self, dynamic: str | None) -> Self:
        """The same task with other sizes that vary; a ConfigError for what cannot be read."""
        return replace(self, dynamic=dynamic or "", hash=_hash(self.source, self.class_name, dynamic or ""))

    def rewritten(self, source: str) -> Self:
        """The same class and sizes that vary in another text."""
        return self.from_source(source, path=self.path, class_name=self.class_name, dynamic=self.dynamic)

    def as_json(self) -> dict[str, str]:
        """A task as it travels and is stored; `Task.from_source(**…)` reads it."""
        told = {"path": self.path, "source": self.source, "class_name": self.class_name}
        return {**told, "dynamic": self.dynamic} if self.dynamic else told

    @classmethod
    def from_source(cls, source: str, *, path: str = "task.py", class_name: str = DEFAULT_CLASS, dynamic: str = "") -> Self:
        """A task from text, for suites and tests that have no file. Syntax and class are checked, without running it."""
        tree = parse(source, path)
        if not defines(tree, class_name):
            raise TaskError(path, f"no class {class_name} is defined in it")
        stem = Path(path).stem
        name = stem if class_name == DEFAULT_CLASS else f"{stem}:{class_name}"
        return cls(path, name, source, class_name, _hash(source, class_name, dynamic), dynamic)


def _hash(source: str, class_name: str, dynamic: str) -> str:
    """The identity of a task; what varies is part of it."""
    if dynamic:
        parse_dynamic(dynamic)
    return hashlib.sha256(f"{class_name}\0{source}{dynamic and chr(0) + dynamic}".encode()).hexdigest()


def split_spec(spec: str) -> tuple[Path, str]:
    """`module.py:ClassName` into its two halves; a plain path means the class `Model`."""
    head, colon, tail = spec.rpartition(":")
    if colon and head and not Path(spec).exists():
        if not tail.isidentifier():
            raise TaskError(spec, f"{tail!r} after the colon is not the name of a class")
        return Path(head), tail
    return Path(spec), DEFAULT_CLASS


def read_text(path: Path) -> str:
    """The text of a task file, or one sentence about what is there instead."""
    try:
        if path.is_dir():
            raise TaskError(path, "this is a folder, not a task file")
        if not path.exists():
            raise TaskError(path, "there is no such file")
        if not path.is_file():
            raise TaskError(path, "this is not a regular file")
        if path.stat().st_size > LARGEST_FILE:
            raise TaskError(path, f"the file is larger than {LARGEST_FILE >> 20} MiB, which no task is")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise TaskError(path, f"the file cannot be read: {error}") from error
    if b"\0" in data:
        raise TaskError(path, "the file is binary, not Python source")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TaskError(path, "the file is not UTF-8 text") from error


def parse(source: str, path: str) -> ast.Module:
    """The syntax tree; a syntax error becomes one sentence with its line."""
    if not source.strip():
        raise TaskError(path, "the file is empty")
    try:
        return ast.parse(source, filename=path)
    except SyntaxError as error:
        raise TaskError(path, f"syntax error: {error.msg}", line=error.lineno) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise TaskError(path, f"the file cannot be parsed: {error or type(error).__name__}") from error


def defines(tree: ast.Module, name: str) -> bool:
    """Whether the module binds `name` anywhere at its top level (class, assignment, import, also inside if/try/with)."""
    if any(isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names) for node in ast.walk(tree)):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            return True
        if isinstance(node, ast.Import | ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            return True
    return False
