"""Extents, returned structures, parameters and library calls as Python: what the forward of every kernel file is made of."""

from __future__ import annotations

import json
import keyword
import math

from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.interpret import library


def number(index: nodes.Index, sizes: dict[str, int]) -> int:
    """An extent as a number."""
    return int(evaluate(index, sizes))


def input_shapes(sketch: nodes.Sketch) -> dict[int, tuple[int, ...]]:
    """The shape of each input that the sketch reads, by its position among the flattened arguments."""
    sizes = {s.name: s.value for s in sketch.sizes}
    return {int(t.source): tuple(number(i, sizes) for i in t.shape) for t in sketch.tensors if t.role == "input"}


def python(index: nodes.Index, sketch: nodes.Sketch) -> str:
    """An index as Python: sizes that are not dynamic are numbers."""
    values = {s.name: s.value for s in sketch.sizes if not s.dynamic} | {t.name: t.value for t in sketch.tunables}
    if isinstance(index, nodes.Int):
        return str(index.value)
    if isinstance(index, nodes.Sym):
        return str(values.get(index.name, index.name))
    left, right = python(index.left, sketch), python(index.right, sketch)
    if index.op in ("min", "max"):
        return f"{index.op}({left}, {right})"
    text = f"({left} {index.op} {right})"
    return str(eval(text)) if not any(c.isalpha() for c in text) else text  # digits and operators only


def extents(sketch: nodes.Sketch, tensor: nodes.Tensor) -> str:
    """A tensor's shape as a tuple in Python."""
    found = [python(extent, sketch) for extent in tensor.shape]
    return f"({', '.join(found)}{',' if len(found) == 1 else ''})"


def leaves(structure: object) -> list[str]:
    """The names in a returned structure."""
    if isinstance(structure, str):
        return [structure]
    items = structure if isinstance(structure, list) else list(structure.values()) if isinstance(structure, dict) else []
    return [leaf for item in items for leaf in leaves(item)]


def returned(sketch: nodes.Sketch) -> set[str]:
    """The tensors that a module returns. An input among them has a contiguous twin in forward, named with a trailing underscore."""
    return set(leaves(json.loads(sketch.returns)))


def result(sketch: nodes.Sketch) -> str:
    """What forward returns."""
    return tree(json.loads(sketch.returns))


def tree(structure: object) -> str:
    """The returned structure as a Python expression: lists in the JSON are tuples, `$list` are lists."""
    if isinstance(structure, str):
        return structure
    if isinstance(structure, list):
        return f"({', '.join(tree(item) for item in structure)}{',' if len(structure) == 1 else ''})"
    if isinstance(structure, dict):
        if list(structure) == ["$list"]:
            return f"[{', '.join(tree(item) for item in structure['$list'])}]"
        return "{" + ", ".join(f"{key!r}: {tree(item)}" for key, item in structure.items()) + "}"
    return repr(structure)


def library_call(sketch: nodes.Sketch, step: nodes.LibraryCall) -> list[str]:
    """Track hybrid: one ATen operator left to torch; results are copied into the declared tensors."""
    plan = library.plan(step)

    def tensor(k: int) -> str:
        name = _seen_as(sketch, step.inputs[k])
        return f"torch.view_as_complex({name})" if k in plan.complex_inputs else name

    given = [tensor(k) for k in plan.positional]
    for name, value in plan.keywords.items():
        text = _text(library.filled(value, tensor, lambda dtype: f"torch.{dtype}", _literal))
        given.append(f"**{{{name!r}: {text}}}" if keyword.iskeyword(name) else f"{name}={text}")
    lines = [f"        _results = torch.ops.{step.operator}({', '.join(given)})"]
    for k, name in enumerate(step.outputs):
        place = plan.results[k] if plan.results is not None else k
        result = "_results" if plan.results is None and len(step.outputs) == 1 else f"_results[{place}]"
        if k in plan.complex_outputs:
            result = f"torch.view_as_real({result}.resolve_conj())"
        lines.append(f"        {_seen_as(sketch, name)}.copy_({result}.detach())")
    return [*lines, "        del _results"]


def _seen_as(sketch: nodes.Sketch, name: str) -> str:
    """A tensor by its name in forward: a view is written out, an input that is also returned has a contiguous twin."""
    tensor = next(t for t in sketch.tensors if t.name == name)
    if tensor.role == "view":
        shape = ", ".join(python(i, sketch) for i in tensor.shape)
        return f"{_seen_as(sketch, tensor.source)}.view([{shape}])"
    return f"{name}_" if tensor.role == "input" and name in returned(sketch) else name


def _literal(value: object) -> str:
    return f"float({str(value)!r})" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _text(value: object) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, list) else str(value)


def parameter(tensor: nodes.Tensor) -> str:
    """A parameter of the module; what a dotted name leads through is found without nn.Module's __getattr__."""
    *path, last = tensor.source.split(".")
    owner = "self" + "".join(f"._modules[{part!r}]" for part in path)
    return f"{owner}.{last}" if last.isidentifier() else f"getattr({owner}, {last!r})"
