"""A kernel file whose kernels Python launches: `ModelNew` with the reference's parameters, and a forward that allocates and launches.

In: `Program`s, one for each set of input shapes that the task has: a sketch, its text, and `Call`s (lines of Python that launch, the
tensors they take). Out: Python text that needs torch and the language's own package. Tensors are made on the device of the first
input. What depends on parameters only (`once`) is made again when one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kernelwright.compiler.language import State, constructor
from kernelwright.compiler.lower.module_file.checks import check_method
from kernelwright.compiler.lower.module_file.size_ranges import dynamic_sizes
from kernelwright.compiler.lower.module_file.state import DECLARE, FLATTEN, HEAD, docstring, entries, shape, suffix
from kernelwright.compiler.lower.module_file.values import extents, input_shapes, library_call, parameter, result, returned
from kernelwright.sketch import nodes
from kernelwright.sketch.print import to_source

_FORWARD = """
    def forward(self, *args, **kwargs):
        inputs = _flatten((args, kwargs), [])
        shapes = tuple(tuple(inputs[position].shape) for position in {positions})
        program = self._programs.get(shapes)
        if program is None:
            raise ValueError(f"this kernel was made for inputs of the shapes {{list(self._programs)}}, not {{shapes}}")
        return program(inputs)
"""


@dataclass(frozen=True)
class Call:
    """Lines that launch one or more kernels; `tensors` are the names that they read or write. `blocks` is how many blocks there are, as
    Python, where that varies with the sizes: a grid without blocks is not launched."""

    lines: tuple[str, ...]
    tensors: tuple[str, ...]
    once: bool = False
    blocks: str = ""

    @property
    def guarded(self) -> list[str]:
        """The lines as they stand in forward."""
        return [f"if {self.blocks} > 0:", *(f"    {line}" for line in self.lines)] if self.blocks else [*self.lines]


@dataclass(frozen=True)
class Program:
    """One sketch as calls, with the sketch's own text."""

    sketch: nodes.Sketch
    text: str
    steps: tuple[Call | nodes.LibraryCall, ...]


def programs_of(
    sketches: Sequence[nodes.Sketch], calls: Callable[[nodes.Sketch, nodes.Kernel], Iterable[Call]]
) -> list[Program]:
    """The sketches as programs; `calls` writes the calls of one kernel."""
    found = []
    for sketch in sketches:
        steps: list[Call | nodes.LibraryCall] = []
        for step in sketch.steps:
            if isinstance(step, nodes.LibraryCall):
                steps.append(step)
            else:
                steps += calls(sketch, step)
        found.append(Program(sketch, to_source(sketch), tuple(steps)))
    return found


def contiguous(sketch: nodes.Sketch) -> dict[str, str]:
    """The name in forward of each tensor that a launch may be given: an input that is also returned has a contiguous twin."""
    twins = returned(sketch)
    return {t.name: f"{t.name}_" if t.role == "input" and t.name in twins else t.name for t in sketch.tensors}


def render(programs: Sequence[Program], state: State, *, imports: str, kernels: str, needs: str) -> str:
    """The text of the kernel file. `kernels` is the device code, `imports` what it needs beyond torch."""
    parts = [
        docstring(programs[0].sketch, needs),
        f"import torch\n{imports}\nfrom torch import nn\n",
        *(f"SKETCH{suffix(number)} = r'''\n{program.text.strip()}\n'''\n" for number, program in enumerate(programs)),
        kernels,
        f"{DECLARE}\n\n{FLATTEN}",
        _module(programs, constructor(entries([program.sketch for program in programs], state), state)),
    ]
    return "\n".join(parts)


def _module(programs: Sequence[Program], declared: list[str]) -> str:
    out = [*HEAD, *declared]
    for number, program in enumerate(programs):
        out += _constants(program.sketch, suffix(number))
        if _inputs(program.sketch):
            out.append(f"        self._seen{suffix(number)} = None")
        if _once(program):
            out.append(f"        self._made{suffix(number)} = None")
    if len(programs) > 1:
        shapes = [input_shapes(program.sketch) for program in programs]
        positions = sorted(set.intersection(*(set(each) for each in shapes)))
        out.append("        self._programs = {")
        for number, each in enumerate(shapes):
            out.append(f"            {tuple(each[position] for position in positions)}: self._run{suffix(number)},")
        out.append("        }")
    for number, program in enumerate(programs):
        if inputs := _inputs(program.sketch):
            out += ["", *check_method(program.sketch, inputs, suffix(number))[:-1]]
        out += ["", *_run(program, suffix(number))]
    text = "\n".join(out) + "\n"
    if len(programs) > 1:
        return text + _FORWARD.format(positions=positions)
    return text + "\n    def forward(self, *args, **kwargs):\n        return self._run(_flatten((args, kwargs), []))\n"


def _constants(sketch: nodes.Sketch, suffix: str) -> list[str]:
    values = dict(sketch.constants)
    out = []
    for tensor in sketch.tensors:
        if tensor.role == "constant":
            numbers = repr(list(values[tensor.source])).replace("inf", "float('inf')").replace("nan", "float('nan')")
            made = f"torch.tensor({numbers}, dtype=torch.{tensor.dtype.torch_name}).reshape({list(shape(sketch, tensor))})"
            out.append(f"        self.register_buffer('_{tensor.name}{suffix}', {made}, persistent=False)")
    return out


def _once(program: Program) -> list[Call]:
    return [step for step in program.steps if isinstance(step, Call) and step.once]


def _run(program: Program, suffix: str) -> list[str]:
    """The method that runs one program on the flattened arguments."""
    sketch = program.sketch
    roles = {tensor.name: tensor.role for tensor in sketch.tensors}
    once = _once(program)
    made_once = {name for step in once for name in step.tensors if roles[name] in ("temp", "output")}
    used = {name for step in program.steps for name in _names(sketch, step)}
    given_back = returned(sketch)
    out = [f"    def _run{suffix}(self, inputs):"]
    inputs = _inputs(sketch)
    out += [f"        {tensor.name} = inputs[{tensor.source}]" for tensor in inputs]
    if inputs:
        out.append(f"        signature = ({', '.join(f'{t.name}.shape, {t.name}.dtype' for t in inputs)})")
        out.append(f"        if signature != self._seen{suffix}:")
        out.append(f"            self._check{suffix}({', '.join(t.name for t in inputs)})")
        out.append(f"            self._seen{suffix} = signature")
    out += [f"        {name} = {text}" for name, text in dynamic_sizes(sketch).items()]
    params = [
        tensor for tensor in sketch.tensors if tensor.role == "param" and (tensor.name in used or tensor.name in given_back)
    ]
    for tensor in params:
        out.append(f"        {tensor.name} = {parameter(tensor)}")
    for tensor in sketch.tensors:
        if tensor.role == "constant" and tensor.name in used:
            out.append(f"        {tensor.name} = self._{tensor.name}{suffix}")
    first = next((tensor.name for tensor in (*inputs, *params)), None)
    device = f"{first}.device" if first else '"cuda" if torch.cuda.is_available() else "cpu"'
    out.append(f"        device = {device}")
    for tensor in inputs:
        if tensor.name in used:
            twin = f"{tensor.name}_" if tensor.name in given_back else tensor.name
            out.append(f"        {twin} = {tensor.name}.contiguous()")
    if once:
        out += _prepared(sketch, once, made_once, [p for p in params if any(p.name in step.tensors for step in once)], suffix)
    for tensor in sketch.tensors:
        if tensor.role in ("output", "temp") and tensor.name in used and tensor.name not in made_once:
            out.append(f"        {tensor.name} = {_empty(sketch, tensor)}")
    for step in program.steps:
        if isinstance(step, Call):
            if not step.once:
                out += [f"        {line}" for line in step.guarded]
        else:
            out += library_call(sketch, step)
    out.append(f"        return {result(sketch)}")
    return out


def _prepared(sketch: nodes.Sketch, once: list[Call], made: set[str], params: list[nodes.Tensor], suffix: str) -> list[str]:
    """What depends on parameters only (folding, packing), kept until one changes."""
    key = ", ".join(f"{p.name}.data_ptr(), {p.name}._version" for p in params)
    names = ", ".join(sorted(made))
    out = [
        f"        made_from = ({key}{',' if key else ''})",
        f"        if self._made{suffix} is None or self._made{suffix}[0] != made_from:",
    ]
    for tensor in sketch.tensors:
        if tensor.name in made:
            out.append(f"            {tensor.name} = {_empty(sketch, tensor)}")
    for step in once:
        out += [f"            {line}" for line in step.guarded]
    out.append(f"            self._made{suffix} = (made_from, {names})")
    out.append(f"        _, {names} = self._made{suffix}")
    return out


def _inputs(sketch: nodes.Sketch) -> list[nodes.Tensor]:
    return [tensor for tensor in sketch.tensors if tensor.role == "input"]


def _empty(sketch: nodes.Sketch, tensor: nodes.Tensor) -> str:
    return f"torch.empty({extents(sketch, tensor)}, dtype=torch.{tensor.dtype.torch_name}, device=device)"


def _names(sketch: nodes.Sketch, step: Call | nodes.LibraryCall) -> tuple[str, ...]:
    """The tensors of a step; views by the tensor they show."""
    base = {tensor.name: tensor.source for tensor in sketch.tensors if tensor.role == "view"}
    named = step.tensors if isinstance(step, Call) else (*step.inputs, *step.outputs)
    return tuple(base.get(name, name) for name in named)
