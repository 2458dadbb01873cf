"""What a migrated kernel is held against when there is no task: the sketch itself, as a task file.

In: sketches, the state_dict in outline, and inputs as `--inputs` writes them (or none: they follow from the declarations). Out: the text
of a task whose `Model` interprets the sketch. The source kernel is judged against it too: where both agree with the sketch over all
trials, they agree with each other, and no foreign code ever ran as a reference.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.agents.task_from_code import draw, split_arguments
from kernelwright.core.errors import TaskError
from kernelwright.jobs.migrate.source import Entry
from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.print import to_source
from kernelwright.sketch.walk import children, roots, statements, subtiles

_TASK = '''"""What {name} computes, as its sketch says it; made by kernelwright migrate."""
import torch

from kernelwright.sketch.module import SketchModule

SKETCHES = [
{texts}
]
STATE = {state!r}


class Model(SketchModule):
    def __init__(self, *init, **named):  # the source's own arguments: the sketch has their values in it
        super().__init__(SKETCHES, STATE)
{forward}

def get_inputs():
    return [
{first}
    ]


def get_init_inputs():
    return {init}
'''

_CONTIGUOUS = """
    def forward(self, *inputs):
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor):
                tensor.view(-1)  # the source takes contiguous tensors only
        return super().forward(*inputs)
"""

_SHAPES = """

def get_inputs_dyn_list():
    return [
{lists}
    ]
"""


def task_text(
    name: str,
    sketches: Sequence[nodes.Sketch],
    state: Sequence[Entry],
    inputs: Sequence[str] = (),
    init: str = "[]",
    *,
    contiguous: bool = False,
) -> str:
    """The task file. `inputs` has one text for each sketch; what is missing follows from the sketch's declarations."""
    texts = ",\n".join(f"r'''\n{to_source(sketch).strip()}\n'''" for sketch in sketches)
    given = [inputs[n] if n < len(inputs) and inputs[n] else inputs_of(sketch) for n, sketch in enumerate(sketches)]
    for text, sketch in zip(given, sketches, strict=True):
        require_fit(text, sketch)
    drawn = [[draw(item) for item in split_arguments(text)] for text in given]
    listed = ["\n".join(f"        {item}," for item in items) for items in drawn]
    entries = [(name_, list(shape), dtype, buffer) for name_, shape, dtype, buffer in _complete(sketches, state)]
    body = _TASK.format(
        name=name, texts=texts, state=entries, first=listed[0], init=init, forward=_CONTIGUOUS if contiguous else ""
    )
    if len(listed) > 1:
        body += _SHAPES.format(lists="\n".join(f"        [\n{item}\n        ]," for item in listed[1:]))
    return body


def inputs_of(sketch: nodes.Sketch) -> str:
    """The inputs that a sketch declares, as `--inputs` would write them. Integers that pick rows stay below the rows there are."""
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    found = {int(t.source): t for t in sketch.tensors if t.role == "input"}
    bounds = _picked(sketch, sizes)
    parts = []
    for position in range(max(found, default=-1) + 1):
        tensor = found.get(position)
        if tensor is None:
            parts.append("0")  # nothing reads it
            continue
        shape = ",".join(str(int(evaluate(i, sizes))) for i in tensor.shape)
        below = f"<{bounds[tensor.name]}" if tensor.name in bounds else ""
        parts.append(f"{tensor.dtype.value}[{shape}]{below}")
    return ", ".join(parts)


def require_fit(text: str, sketch: nodes.Sketch) -> None:
    """`--inputs` must be what the kernel takes: sizes are part of a sketch."""
    given, wanted = split_arguments(text), split_arguments(inputs_of(sketch))
    same = len(given) == len(wanted) and all(
        w == "0" or g.partition("<")[0].replace(" ", "") == w.partition("<")[0] for g, w in zip(given, wanted, strict=True)
    )
    for item in given:
        draw(item)
    if not same:
        raise TaskError("--inputs", f"the kernel takes {', '.join(wanted)}, not {text}")


def _complete(sketches: Sequence[nodes.Sketch], state: Sequence[Entry]) -> list[Entry]:
    """The state given, and parameters that only a sketch names."""
    known = list(state)
    names = {entry[0] for entry in known}
    for sketch in sketches:
        sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
        for tensor in sketch.tensors:
            if tensor.role == "param" and tensor.source not in names:
                names.add(tensor.source)
                shape = tuple(int(evaluate(i, sizes)) for i in tensor.shape)
                known.append((tensor.source, shape, tensor.dtype.torch_name, False))
    return known


def _picked(sketch: nodes.Sketch, sizes: dict[str, int]) -> dict[str, int]:
    """Input tensors whose elements become positions, with the least extent that they index."""
    tensors = {t.name: t for t in sketch.tensors}
    root = {t.name: t.source if t.role == "view" else t.name for t in sketch.tensors}
    least: dict[str, int] = {}
    for kernel in sketch.steps:
        if not isinstance(kernel, nodes.Kernel):
            continue
        bound: dict[str, nodes.Tile] = {}
        for statement, _ in statements(kernel.body):
            places: list[tuple[str, tuple[nodes.Axis, ...]]] = []
            for tile in subtiles(*roots(statement)):
                if isinstance(tile, nodes.Load):
                    places.append((tile.tensor, tile.region))
            if isinstance(statement, nodes.Store):
                places.append((statement.tensor, statement.region))
            for name, region in places:
                for number, axis in enumerate(region):
                    if isinstance(axis, nodes.Pick):
                        extent = int(evaluate(tensors[name].shape[number], sizes))
                        for source in _loaded(axis.indices, bound):
                            if tensors[root[source]].role == "input":
                                least[root[source]] = min(least.get(root[source], extent), extent)
            if isinstance(statement, nodes.Assign):
                bound[statement.name] = statement.value
    return least


def _loaded(tile: nodes.Tile, bound: dict[str, nodes.Tile]) -> set[str]:
    """The tensors from which the values of a tile come."""
    found: set[str] = set()
    seen: set[str] = set()
    stack: list[nodes.Tile] = [tile]
    while stack:
        one = stack.pop()
        if isinstance(one, nodes.Load):
            found.add(one.tensor)
        elif isinstance(one, nodes.Var):
            if one.name in bound and one.name not in seen:
                seen.add(one.name)
                stack.append(bound[one.name])
        else:
            stack.extend(children(one))
    return found
