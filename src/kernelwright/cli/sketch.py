"""`kernelwright sketch TASK`: print the built-in designer's sketch of a task; `--check` it; `--run` it against the reference.

A file that is itself a sketch (it ends with `returns(…)`) is taken as it is; to run it, say against which task.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.cli import options

if TYPE_CHECKING:
    from kernelwright.core.errors import SketchError
    from kernelwright.core.verdict import SizeProof
    from kernelwright.sketch.interpret.compare import Comparison
    from kernelwright.sketch.nodes import Sketch


def sketch_command(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task file, module.py:ClassName, or a file with a sketch.")],
    check: Annotated[bool, typer.Option("--check", help="Check it: shapes, dtypes, bounds, races.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Check it, and run it against the reference in the interpreter.")] = False,
    against: Annotated[str | None, typer.Option(help="With a sketch file and --run: the task it should compute.")] = None,
    dsl: Annotated[str, typer.Option(help="The language that the sketch is designed for.")] = "cpp",
    target: Annotated[str, typer.Option(help="The hardware that it is designed for: cpu, auto, h100, mi300x …")] = "auto",
    dynamic: options.Dynamic = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Print the sketch of a task; check it; run it against the reference. Exit code 0 if what was asked for holds, 1 if not."""
    from kernelwright.core.errors import ConfigError
    from kernelwright.sketch.check.rules import examine
    from kernelwright.sketch.check.size_proof import size_proof
    from kernelwright.sketch.parse import parse
    from kernelwright.sketch.print import to_source

    source = _sketch_source(task)
    if source is None:
        sketch, notes = _designed(task, dsl, target, dynamic)
    else:
        sketch, notes = parse(source, path=task), ()
        if run and against is None:
            raise ConfigError("say which task the sketch should compute: kernelwright sketch FILE --run --against TASK")
    text = to_source(sketch)
    faults, proof = None, None
    if check or run:
        read = sketch if source is not None else parse(text)  # whose lines are told
        examined = examine(read)
        faults, proof = examined.faults, size_proof(read, examined, source or text)
    comparison = _compared(sketch, against or task) if run and not faults else None
    if as_json:
        print(
            json.dumps({**_report(sketch, text, notes, faults, comparison), "proof": proof and proof.model_dump(mode="json")})
        )
    else:
        _show(text)
        for note in notes:
            print(f"# {note}", file=sys.stderr)
        _tell(task, faults, comparison, proof)
    return 1 if faults or (comparison is not None and not comparison.agrees) else 0


def _sketch_source(spec: str) -> str | None:
    """The text of a file that is a sketch, or None."""
    import ast

    path = Path(spec)
    try:
        text = path.read_text() if path.is_file() else ""
        tree = ast.parse(text)
    except (OSError, UnicodeDecodeError, SyntaxError):
        return path.read_text(errors="replace") if spec.endswith(".sketch.py") else None
    named = [s.value.func.id for s in tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
             and isinstance(s.value.func, ast.Name)]  # fmt: skip
    return text if "returns" in named or (text and spec.endswith(".sketch.py")) else None


def _designed(spec: str, dsl: str, target: str, dynamic: str | None) -> tuple[Sketch, tuple[str, ...]]:
    from kernelwright import suites

    task = suites.task(spec, dynamic)
    from kernelwright.compiler.designer import design_task
    from kernelwright.compiler.hardware import capabilities_of
    from kernelwright.compiler.language import language

    best = design_task(task, capabilities=capabilities_of(language(dsl), target))[0]
    return best.sketch, best.notes


def _compared(sketch: Sketch, spec: str) -> Comparison:
    from kernelwright import suites

    task = suites.task(spec)
    from kernelwright.core.task.load import load_task
    from kernelwright.sketch.interpret.compare import compare

    loaded = load_task(task)
    return compare(sketch, loaded.construct(0), loaded.draw(0)[0])


def _report(
    sketch: Sketch, text: str, notes: tuple[str, ...], faults: list[SketchError] | None, comparison: Comparison | None
) -> dict[str, Any]:
    told = None if faults is None else [{"line": f.line, "reason": f.reason, "hint": f.hint} for f in faults]
    ran = None
    if comparison is not None:
        error = comparison.error if comparison.error < float("inf") else None
        ran = {"agrees": comparison.agrees, "error": error, "reason": comparison.reason, "seconds": comparison.seconds}
    return {"name": sketch.name, "sketch": text, "notes": list(notes), "faults": told, "run": ran}


def _show(text: str) -> None:
    """The source, in colours for people and as it is for a file."""
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.syntax import Syntax

    Console().print(Syntax(text, "python", background_color="default"))


def _tell(path: str, faults: list[SketchError] | None, comparison: Comparison | None, proof: SizeProof | None) -> None:
    """What was found, on stderr, so that the sketch can be sent to a file."""
    if faults is None:
        return
    for fault in faults:
        where = f"{path}:{fault.line}" if fault.line else path
        print(f"{where}: {fault.reason}" + (f" ({fault.hint})" if fault.hint else ""), file=sys.stderr)
    if not faults:
        print("checked: shapes, dtypes, bounds, reads and races are in order", file=sys.stderr)
    if proof is not None:
        print(f"all sizes: {proof.statement}", file=sys.stderr)
    if comparison is not None and comparison.agrees:
        print(f"run: agrees with the reference, largest error {comparison.error:.1e} of the largest value", file=sys.stderr)
    elif comparison is not None:
        print(f"run: does not agree with the reference: {comparison.reason}", file=sys.stderr)
