"""`kernelwright diff A B`: two runs or two kernel files in; what is different in speed, sketch, options and code out."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kernelwright.store import Store


def diff_command(
    a: Annotated[str, typer.Argument(metavar="A", help="A run's name, or a kernel file.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another run, or another kernel file.")],
    code: Annotated[bool, typer.Option("--code", help="Compare the kernels' whole text, not only their sketches.")] = False,
    store: Annotated[str | None, typer.Option(help="Folder or database URL of the store.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Compare two runs or two kernels. Exit code 0: the same code; 1: they differ."""
    from kernelwright.core.kernel import Kernel
    from kernelwright.search.codegen_options import code_of

    sides = [_side(name, store) for name in (a, b)]
    first, second = (Kernel.from_source(side["kernel"]) for side in sides)
    texts = (first.source, second.source) if code or not (first.sketch and second.sketch) else (first.sketch, second.sketch)
    lines = list(difflib.unified_diff(texts[0].splitlines(), texts[1].splitlines(), a, b, lineterm="", n=2))
    same = code_of(first.source) == code_of(second.source)
    told: dict[str, Any] = {
        "same_code": same,
        "speedup": [side["speedup"] for side in sides],
        "options": [first.options, second.options],
        "diff": lines,
    }
    if as_json:
        print(json.dumps(told))
        return 0 if same else 1
    for name, side, kernel in zip((a, b), sides, (first, second), strict=True):
        speed = f"{side['speedup']:.2f}x eager" if side["speedup"] else "no measured speed"
        options = ", ".join(f"{key} {value}" for key, value in kernel.options.items())
        print(f"{name}: {speed}" + (f"; coder {options}" if options else ""))
    print("\n".join(lines) if lines else "the same code" if same else "the same sketch, written another way (--code shows how)")
    return 0 if same else 1


def _side(name: str, place: str | None) -> dict[str, Any]:
    """The kernel behind a name, and its speed where it is known."""
    from kernelwright.cli.history.runs import open_store
    from kernelwright.core.kernel import Kernel

    if Path(name).exists():
        return {"kernel": Kernel.from_path(name).source, "speedup": None}
    with open_store(place) as opened:
        return _best(opened, name)


def _best(store: Store, name: str) -> dict[str, Any]:
    from kernelwright.core.errors import StoreError
    from kernelwright.store.summary import best_over_time

    record = store.load_run(name)
    data = store.get(record.best) if record.best else None
    if data is None:
        raise StoreError(f"run {record.id} has no kernel to compare: it is {record.status}, or its kernel was pruned")
    steps = [step for step in record.steps if step.inputs.get("kernel") == record.best and step.facts.get("speedup")]
    best = best_over_time(record)
    speedup = steps[-1].facts["speedup"] if steps else best[-1].speedup if best else None
    return {"kernel": data.decode(errors="replace"), "speedup": speedup}
