"""A table of a kernel file in Python: the function that chooses a variant by size, and how it is called. In: a `SizeTable`. Out: text."""

from __future__ import annotations

from kernelwright.compiler.lower.module_file.size_ranges import places
from kernelwright.core.errors import SketchError
from kernelwright.core.size_choice import SizeTable, Tree
from kernelwright.sketch import nodes


def chooser(table: SizeTable) -> str:
    """The function of a kernel file that says which variant serves these sizes."""
    lines = [
        f"def _choose({', '.join(table.names())}):",
        '    """Which variant serves these sizes; all of them are right for all sizes."""',
    ]
    lines += [f"    # {line}" for line in table.evidence]
    return "\n".join([*lines, *_code(table.tree, 1)]) + "\n"


def _code(tree: Tree, depth: int) -> list[str]:
    indent = "    " * depth
    if isinstance(tree, int):
        return [f"{indent}return {tree}"]
    return [f"{indent}if {tree.size} < {tree.limit}:", *_code(tree.below, depth + 1), *_code(tree.rest, depth)]


def arguments(table: SizeTable, sketch: nodes.Sketch) -> str:
    """What the function is called with, where `flat` are forward's arguments. Raises SketchError for a size that no input shows."""
    where = places(sketch)
    missing = [name for name in table.names() if name not in where]
    if missing:
        raise SketchError(f"a table cannot choose by {missing[0]}, which no input shows")
    given = []
    for name in table.names():
        place = where[name]
        extent = f"flat[{place.tensor.source}].shape[{place.axis}]"
        given.append(extent if place.factor == 1 else f"{extent} // {place.factor}")
    return ", ".join(given)
