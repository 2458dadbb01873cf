"""The Kernel noun: one self-contained Python file that defines `ModelNew`. In: a path or text. Out: source, hash, language.

Nothing is run or imported here. The language is a guess from what the file uses; a caller who knows better says so.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from kernelwright.core import bundle, cuda_file, plugins
from kernelwright.core.errors import KernelFileError

LARGEST_FILE = 4 << 20
"""Bytes; a kernel file is source, not a container of data."""


@dataclass(frozen=True)
class Kernel:
    """A kernel file's text with its identity. Equal hashes mean the same kernel, wherever the file lies."""

    path: str
    name: str
    source: str
    hash: str
    dsl: str
    original: str = ""
    """What people wrote, where `source` is a file that stands for it: lines are told of that."""

    @classmethod
    def from_path(
        cls, path: str | Path, *, dsl: str | None = None, entry: str | None = None, inputs: str | None = None
    ) -> Self:
        """Read a kernel file; KernelFileError with one sentence for anything that is not one. `file.py:Name` and `package.module:Name`
        are a function or class of a program, made into a file that stands alone; of a `.cu` file `entry` is called with `inputs`."""
        if bundle.names_entry(str(path)):
            found = bundle.bundled(str(path))
            made = cls.from_source(found.text, path=str(path), dsl=dsl or guess_dsl(found.sources))
            return replace(made, name=str(path).rpartition(":")[2])
        file = Path(path)
        try:
            if file.is_dir():
                raise KernelFileError(path, "this is a folder, not a kernel file")
            if not file.exists():
                raise KernelFileError(path, "there is no such file")
            if not file.is_file():
                raise KernelFileError(path, "this is not a regular file")
            if file.stat().st_size > LARGEST_FILE:
                raise KernelFileError(path, f"the file is larger than {LARGEST_FILE >> 20} MiB, which no kernel is")
            source = file.read_bytes().decode("utf-8-sig")
            if file.suffix in (".cu", ".cuh"):
                made = cls.from_source(cuda_file.kernel_text(file, entry, inputs), path=str(path), dsl="cuda_c")
                return replace(made, original=source)
        except UnicodeDecodeError as error:
            raise KernelFileError(path, "the file is not UTF-8 text") from error
        except (OSError, ValueError) as error:
            raise KernelFileError(path, f"the file cannot be read: {error}") from error
        return cls.from_source(source, path=str(path), dsl=dsl)

    @classmethod
    def from_source(cls, source: str, *, path: str = "kernel.py", dsl: str | None = None) -> Self:
        """A kernel from text, for those that were just written."""
        digest = hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()
        return cls(path=path, name=Path(path).stem, source=source, hash=digest, dsl=dsl or guess_dsl(source))

    @property
    def sketch(self) -> str | None:
        """The sketch that the file carries (`SKETCH = …`), if it is one of ours; read, never run."""
        found = self._carried("SKETCH")
        return found if isinstance(found, str) else None

    @property
    def sketches(self) -> tuple[str, ...]:
        """All sketches that the file carries: one, or one for each of its variants (`SKETCH_1 = …`)."""
        every = self._literals()
        numbered = sorted((int(name[7:]), name) for name in every if name.startswith("SKETCH_") and name[7:].isdecimal())
        found = [every.get(name) for name in ("SKETCH", *(name for _, name in numbered))]
        return tuple(text for text in found if isinstance(text, str))

    @property
    def options(self) -> dict[str, int]:
        """The coder's options under which the file was written (`OPTIONS = …`); none: its defaults."""
        found = self._carried("OPTIONS")
        return {str(name): value for name, value in found.items() if type(value) is int} if isinstance(found, dict) else {}

    def _carried(self, name: str) -> object:
        """The literal that the file assigns to a name at its top level."""
        return self._literals().get(name)

    def _literals(self) -> dict[str, object]:
        """All literals that the file assigns to names in capitals at its top level; read, never run."""
        found: dict[str, object] = {}
        try:
            for node in ast.parse(self.source).body:
                if isinstance(node, ast.Assign) and len(node.targets) == 1 and getattr(node.targets[0], "id", "").isupper():
                    with contextlib.suppress(ValueError, TypeError):
                        found.setdefault(node.targets[0].id, ast.literal_eval(node.value))  # type: ignore[attr-defined]
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return {}
        return found


def guess_dsl(source: str) -> str:
    """The language a file is written in: of those whose sign it shows, the one with the least precedence. Plain Python when there is
    none; what is particular to a language of another package may stand in a file beside ctypes or a compiler's name, so it has 0."""
    known = [found for name in plugins.names() if (found := plugins.load(name)) is not None]
    for one in sorted(known, key=lambda one: (one.precedence, one.name)):
        if one.sign and re.search(one.sign, source, re.MULTILINE):
            return str(one.name)
    return "python"
