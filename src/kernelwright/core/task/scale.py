"""The same task at reduced sizes: a task and a factor in, a task out whose reference still runs.

Two halves. Reading text (imports no torch): `sites` finds the integers that are sizes (constants of the module, numbers in the
functions that give inputs), `rewrite` replaces a choice of them. Trying (`fit`, imports torch, executes the file: for workers):
all sites at once where the reference then runs on fake tensors, else as many of them as it bears, largest first. So a network
whose classifier fixes its image size is scaled in its batch only, and says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelwright.core.errors import TaskError
from kernelwright.core.task.task import Task

SMALLEST = 17
"""Smaller numbers are kernel sizes, strides, heads or groups as often as sizes; they count only where inputs are made with them."""
SMALLEST_OF_INPUTS = 5
KEPT_MULTIPLE = 8
FUNCTIONS = ("inputs", "init_inputs", "inputs_dyn_list")
MOST_SINGLE_TRIES = 24


@dataclass(frozen=True)
class Site:
    """An integer of the source that is a size: where it stands, what it is, and its name or function for messages."""

    start: tuple[int, int]
    end: tuple[int, int]
    value: int
    where: str

    def shrunk(self, factor: float) -> int:
        """The value at this scale. Odd sizes stay odd and multiples of 8 stay such: that is what tasks test with them."""
        wanted = self.value * factor
        if self.where.lower().startswith("batch"):
            return max(1, min(self.value, round(wanted)))
        step = KEPT_MULTIPLE if self.value % KEPT_MULTIPLE == 0 and self.value >= SMALLEST else 1
        result = max(step, round(wanted / step) * step, 2)
        if self.value % 2 and not result % 2:
            result += 1
        return min(result, self.value)


@dataclass(frozen=True)
class Scaled:
    """The task that was made, and in words what of it is smaller: `M 1024 -> 256`."""

    task: Task
    changes: tuple[str, ...]


def sites(source: str) -> list[Site]:
    """Every integer that is taken for a size, in the order of the text."""
    found: list[Site] = []
    body = ast.parse(source).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and _gives_inputs(node)]
    used = {
        inner.id
        for node in functions
        if not node.name.endswith("init_inputs")
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name)
    }
    for node in body:
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            found += _numbers(node.value, names[0]) if names else []
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found += _numbers(node.value, node.target.id)
    for function in functions:
        found += [site for inner in function.body + function.args.defaults for site in _inside(inner, function.name)]
    large = [site for site in found if site.value >= _smallest(site.where, site.where in used)]
    return sorted(set(large), key=lambda site: site.start)


def rewrite(source: str, chosen: list[Site], factor: float) -> str:
    """The text with these sites at the new scale, each once however often it is named; everything else is left as it was."""
    lines = source.encode().splitlines(keepends=True)  # ast counts columns in bytes
    sizes = {(site.start, site.end): str(site.shrunk(factor)).encode() for site in chosen}
    for ((first, column), (last, stop)), size in sorted(sizes.items(), reverse=True):
        lines[first - 1 : last] = [lines[first - 1][:column] + size + lines[last - 1][stop:]]
    return b"".join(lines).decode()


def fit(task: Task, factor: float) -> Scaled:
    """The task at this scale; raises TaskError when the file itself does not run. Executes it."""
    if not 0 < factor < 1:
        return Scaled(task, ())
    _run(task)
    free = [site for site in sites(task.source) if site.shrunk(factor) != site.value]
    for chosen in _choices(task, free, factor):
        if chosen and _runs(_with(task, chosen, factor)):
            return _scaled(task, chosen, factor)
    kept: list[Site] = []
    for group in _groups(free)[:MOST_SINGLE_TRIES]:
        new = [site for site in group if site not in kept]
        if new and _runs(_with(task, kept + new, factor)):
            kept += new
    return _scaled(task, kept, factor)


def serve(channel: Any) -> None:
    """A worker that answers one request: {path, source, class_name, factor} → {source, changes} or {error}."""
    message, _ = channel.receive(None)
    factor = float(message.pop("factor"))
    try:
        scaled = fit(Task.from_source(**message), factor)
        channel.send({"ok": True, "source": scaled.task.source, "changes": list(scaled.changes)})
    except TaskError as error:
        channel.send({"ok": False, "error": str(error)})


def _gives_inputs(node: ast.FunctionDef) -> bool:
    name = node.name.lower()
    return (name.startswith("get_") and name.endswith(FUNCTIONS)) or name == "make_inputs"


def _smallest(where: str, used: bool) -> int:
    if where.lower().startswith("batch"):
        return 2
    return SMALLEST_OF_INPUTS if used else SMALLEST


def _inside(node: ast.AST, where: str) -> Iterator[Site]:
    """Sizes anywhere below a statement; a constant expression (`1024 * 8`) is one size, a seed is none."""
    if isinstance(node, ast.Call) and "seed" in ast.dump(node.func):
        return
    value = _constant(node)
    if value is not None:
        yield from _site(node, value, where)
        return
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        where = node.targets[0].id
    if isinstance(node, ast.keyword) and node.arg:
        where = node.arg
    for child in ast.iter_child_nodes(node):
        yield from _inside(child, where)


def _numbers(node: ast.expr, where: str) -> list[Site]:
    """The sizes of a module's constant: a number, or a list or tuple of numbers."""
    if isinstance(node, ast.Tuple | ast.List):
        return [site for item in node.elts for site in _numbers(item, where)]
    value = _constant(node)
    return list(_site(node, value, where)) if value is not None else []


def _site(node: Any, value: int, where: str) -> Iterator[Site]:
    if value > 1:
        yield Site((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), value, where)


def _constant(node: ast.AST) -> int | None:
    """The value of an expression of plain integers, or None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp):
        left, right = _constant(node.left), _constant(node.right)
        if left is None or right is None:
            return None
        match node.op:
            case ast.Mult():
                return left * right
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.FloorDiv() if right:
                return left // right
            case ast.LShift() if 0 <= right < 64:
                return left << right
            case ast.Pow() if 0 <= right < 64 and abs(left) < 64:
                return int(left**right)
    return None


def _choices(task: Task, free: list[Site], factor: float) -> list[list[Site]]:
    """What is tried at once: everything; then only what the module names."""
    functions = {node.name for node in ast.parse(task.source).body if isinstance(node, ast.FunctionDef)}
    named = [site for site in free if site.where not in functions]
    return [free] if len(named) in (0, len(free)) else [free, named]


def _groups(free: list[Site]) -> list[list[Site]]:
    """Sites that belong together, because they have one value; the largest first: they save most."""
    by_value: dict[int, list[Site]] = {}
    for site in free:
        by_value.setdefault(site.value, []).append(site)
    single = [[site] for sites_ in by_value.values() if len(sites_) > 1 for site in sites_]
    together = [by_value[value] for value in sorted(by_value, reverse=True)]
    return together + sorted(single, key=lambda group: -group[0].value)


def _with(task: Task, chosen: list[Site], factor: float) -> Task:
    return task.rewritten(rewrite(task.source, chosen, factor))


def _scaled(task: Task, chosen: list[Site], factor: float) -> Scaled:
    changes = tuple(f"{site.where} {site.value} -> {site.shrunk(factor)}" for site in chosen)
    return Scaled(_with(task, chosen, factor), changes)


def _runs(task: Task) -> bool:
    try:
        _run(task)
    except TaskError:
        return False
    return True


def _run(task: Task) -> None:
    """Construct, draw and call on fake tensors: shapes are checked, nothing is computed or allocated. What fake tensors cannot
    tell (an operator that reads values) counts as running."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException as ReadsValues
    from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode, UnsupportedFakeTensorException

    from kernelwright.core.task.footprint import OneStep, quietly
    from kernelwright.core.task.load import fresh_task

    loaded = fresh_task(task)
    with quietly("torch._subclasses.fake_tensor"), torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True), OneStep():
        try:
            model = loaded.construct(0)
            for inputs in loaded.draw(0):
                loaded.forward(model, inputs)
        except TaskError as error:
            if not isinstance(error.__cause__, DynamicOutputShapeException | UnsupportedFakeTensorException | ReadsValues):
                raise
