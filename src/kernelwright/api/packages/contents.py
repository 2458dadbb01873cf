"""What every package of a kernel holds: a C library for each set of shapes, built for each instruction set, and a manifest.

In: a kernel file that carries its sketch, or a run. Out: `Contents`. The sketch is lowered anew; the file itself is not run.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelwright.compiler.backends.cpp.c_library import Library, c_library
from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.core.errors import KernelFileError, StoreError, ToolMissing
from kernelwright.core.kernel import Kernel
from kernelwright.sketch.parse import parse

X86 = {"avx512": ("g++", ("-march=x86-64-v4",)), "avx2": ("g++", ("-march=x86-64-v3",))}
ARM = {"neon": ("aarch64-linux-gnu-g++", ("-march=armv8.2-a",))}
"""Instruction set → its compiler and what tells it so. The names are those that runtime.py looks for."""


@dataclass(frozen=True)
class Contents:
    """A kernel's name, its hash, and a library for each set of input shapes."""

    name: str
    hash: str
    about: str
    libraries: tuple[Library, ...]

    @classmethod
    def of(cls, kernel: str | Path, name: str | None = None) -> Contents:
        """From a kernel file, or the name of a run."""
        source, path = _source(kernel)
        texts = _carried(source, path)
        sketches = [parse(text, path=path) for text in texts]
        chosen = _name(name or sketches[0].name)
        knobs = CodegenOptions.of(Kernel.from_source(source, path=path).options)
        made = tuple(c_library(s, f"{chosen}_{k}" if k else chosen, options=knobs) for k, s in enumerate(sketches))
        digest = hashlib.sha256("".join(library.text for library in made).encode()).hexdigest()
        return cls(chosen, digest, sketches[0].doc.strip() or chosen, made)

    def manifest(self) -> str:
        """How the libraries are called, for runtime.py."""
        variants = [
            {
                "symbol": library.name,
                "inputs": [_described(a) for a in library.inputs],
                "outputs": [_described(a) for a in library.outputs],
                "results": _leaves(library.returns),
                "kept": library.kept,
                "workspace": library.workspace,
            }
            for library in self.libraries
        ]
        return json.dumps({"name": self.name, "hash": self.hash[:12], "about": self.about, "variants": variants}, indent=1)

    def build(self, folder: Path) -> list[str]:
        """Builds all libraries for every instruction set that a compiler of this machine makes; gives their names."""
        host = X86 if platform.machine() == "x86_64" else ARM | {"neon": ("g++", ARM["neon"][1])}
        sets = host | {k: v for k, v in ARM.items() if platform.machine() == "x86_64"}
        built = []
        for isa, (compiler, flags) in sets.items():
            if shutil.which(compiler) is None:
                if compiler == "g++":
                    raise ToolMissing("g++", "building a package", "apt install g++")
                continue
            for library in self.libraries:
                _compile(library, compiler, flags, folder / f"{library.name}.{isa}.so")
            built.append(isa)
        return built


def _compile(library: Library, compiler: str, flags: tuple[str, ...], out: Path) -> None:
    """Without OpenMP's runtime among its needs: the process has torch's already, and a second one would have threads of its own."""
    kept = [f for f in library.flags if f not in ("-march=native", "-shared")]
    with tempfile.TemporaryDirectory() as work:
        source, made = Path(work, "kernel.cpp"), Path(work, "kernel.o")
        source.write_text(library.text)
        for command in (
            [compiler, *kept, *flags, "-c", str(source), "-o", str(made)],
            [compiler, "-shared", "-static-libgcc", "-static-libstdc++", "-Wl,-s", str(made), "-o", str(out)],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise KernelFileError(library.name, f"{compiler} refuses its C++ source: {done.stderr.strip()[:300]}")


def _source(kernel: str | Path) -> tuple[str, str]:
    """The text of a kernel file, or of the best kernel of a run."""
    if Path(kernel).exists():
        return Kernel.from_path(kernel).source, str(kernel)
    if str(kernel).endswith(".py"):
        raise KernelFileError(kernel, "there is no such file")
    from kernelwright.core import config
    from kernelwright.store import Store

    with Store.open(config.load({}).settings.store or None) as store:
        record = store.load_run(str(kernel))
        data = store.get(record.best) if record.best else None
    if data is None:
        raise StoreError(f"run {record.id} has no kernel to export: it is {record.status}, or its kernel was pruned")
    return data.decode(errors="replace"), record.id


def _carried(source: str, path: str) -> list[str]:
    """The sketches in a kernel file: the first, and those for other shapes."""
    found: dict[str, str] = {}
    try:
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                target = getattr(node.targets[0], "id", "")
                if re.fullmatch(r"SKETCH(_\d+)?", target):
                    found[target] = node.value.value
    except SyntaxError as error:
        raise KernelFileError(path, f"this is not Python: {error}") from error
    if not found:
        raise KernelFileError(
            path, "the file carries no sketch (SKETCH = …); only kernels that Kernelwright wrote can be exported"
        )
    return list(found.values())


def _name(title: str) -> str:
    name = re.sub(r"\W+", "_", title).strip("_").lower()
    return name if name and not name[0].isdigit() else f"kernel_{name}"


def _described(argument: Any) -> dict[str, Any]:
    return asdict(argument) | {"dtype": argument.dtype.torch_name}


def _leaves(tree: Any) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in _leaves(item)]
    return [leaf for item in tree for leaf in _leaves(item)] if isinstance(tree, list) else []
