"""All kernels of a file, a folder or a package: what could be migrated in, one row for each out, and a table of them.

Nothing is run or imported to find them: files that define `ModelNew`, functions and `autograd.Function`s that launch kernels, and
functions of `.cu` files that do. What a kernel is called with is said by a TOML file (`"norm.py:rms_norm" = "f32[64,512], f32[512]"`,
or by the last name alone). A row that is in the folder of results is not made again.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelwright.core import bundle, cuda_file
from kernelwright.core.errors import KernelFileError, KernelwrightError

ROWS = "migrated.json"
TABLE = "migrated.md"
_SKIPPED = ("main", "get_inputs", "get_init_inputs")


@dataclass(frozen=True)
class Candidate:
    """`spec` is what `migrate` takes; of a `.cu` file `entry` is the function."""

    title: str
    spec: str
    entry: str = ""


@dataclass(frozen=True)
class Row:
    """What became of one: `correct`, another status of the judge, or `refused`."""

    title: str
    status: str
    reason: str


def candidates(place: str) -> list[Candidate]:
    """Everything in a file, a folder or an installed package that launches kernels."""
    root = Path(place)
    if not root.exists():
        found = bundle.package_folder(place)
        if found is None:
            raise KernelFileError(place, "there is no such file, folder or installed package")
        root = found
    files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.suffix in (".py", ".cu") and p.is_file())
    made: list[Candidate] = []
    for file in files:
        title = file.name if root.is_file() else file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8", errors="replace")
        if file.suffix == ".cu":
            launchers = [
                f for f in cuda_file.functions(text) if f.launches and any(p.pointer or p.tensor for p in f.parameters)
            ]
            made += [Candidate(f"{title}:{f.name}", str(file), f.name) for f in launchers if f.name != "main"]
            continue
        names = _launching(text)
        if "ModelNew" in names:
            made.append(Candidate(title, str(file)))
        else:
            made += [Candidate(f"{title}:{name}", f"{file}:{name}") for name in names]
    return made


def _launching(text: str) -> list[str]:
    """Public functions and classes of a module in which kernels are launched, by reading."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and node.name not in _SKIPPED and _launches(node):
            found.append(node.name)
        elif isinstance(node, ast.ClassDef):
            bases = {getattr(base, "attr", getattr(base, "id", "")) for base in node.bases}
            if node.name == "ModelNew" or ("Function" in bases and _launches(node)):
                found.append(node.name)
    return [name for name in found if not name.startswith(("test", "bench"))]


def _launches(node: ast.AST) -> bool:
    """`kernel[grid](…)` stands somewhere in it."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) for n in ast.walk(node))


def inputs_of(file: Path | None) -> dict[str, str]:
    """What kernels are called with, by their titles or last names."""
    if file is None:
        return {}
    try:
        found = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise KernelFileError(file, f"this is no TOML file of inputs: {error}") from error
    return {str(name): str(value) for name, value in found.items()}


def migrate_all(
    found: Sequence[Candidate],
    inputs: Mapping[str, str],
    out: Path,
    one: Callable[[Candidate, str | None, Path], Row],
    said: Callable[[Row], None],
) -> list[Row]:
    """One after another; each row is written down before the next begins."""
    out.mkdir(parents=True, exist_ok=True)
    kept = out / ROWS
    rows = {row["title"]: Row(**row) for row in json.loads(kept.read_text())} if kept.is_file() else {}
    for candidate in found:
        if candidate.title in rows:
            continue
        given = inputs.get(candidate.title) or inputs.get(candidate.title.rpartition(":")[2])
        try:
            row = one(candidate, given, out / candidate.title.replace("/", "_").replace(":", "_"))
        except KernelwrightError as error:
            row = Row(candidate.title, "refused", str(error))
        rows[candidate.title] = row
        kept.write_text(json.dumps([asdict(r) for r in rows.values()], indent=1))
        said(row)
    made = [rows[c.title] for c in found]
    (out / TABLE).write_text(table(made))
    return made


def table(rows: Sequence[Row]) -> str:
    """For people."""
    right = sum(row.status == "correct" for row in rows)
    lines = [f"{right} of {len(rows)} kernels migrated and correct.", "", "| kernel | status | reason |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {r.title} | {r.status} | {r.reason.replace('|', '/')} |" for r in rows)]) + "\n"
