"""The Python file around GPU kernels: `ModelNew` with the reference's parameters, and a forward that allocates and launches.

In: `Program`s, one for each set of input shapes that the task has: a sketch, its text, and `Call`s (lines of Python that launch, the
tensors they take). Out: Python text that needs torch and the language's own package. Tensors are made on the device of the first
input. What depends on parameters only (`once`) is made again when one of them changes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.compiler.backends.cpp import forward as shared
from kernelwright.compiler.language import State, constructor
from kernelwright.sketch import nodes

_DECLARE = '''
def _declare(module, name, tensor, buffer):
    """Registers a tensor under a dotted state_dict name."""
    *path, last = name.split(".")
    for part in path:
        if part not in module._modules:
            module.add_module(part, nn.Module())
        module = module._modules[part]
    if buffer:
        module.register_buffer(last, tensor)
    else:
        module.register_parameter(last, nn.Parameter(tensor, requires_grad=False))


def _flatten(tree, into):
    if isinstance(tree, (list, tuple)):
        for item in tree:
            _flatten(item, into)
    elif isinstance(tree, dict):
        for item in tree.values():
            _flatten(item, into)
    else:
        into.append(tree)
    return into
'''

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
    """Lines that launch one or more kernels; `tensors` are the names that they read or write."""

    lines: tuple[str, ...]
    tensors: tuple[str, ...]
    once: bool = False


@dataclass(frozen=True)
class Program:
    """One sketch as calls, with the sketch's own text."""

    sketch: nodes.Sketch
    text: str
    steps: tuple[Call | nodes.LibraryCall, ...]


def render(programs: Sequence[Program], state: State, *, imports: str, kernels: str, needs: str) -> str:
    """The text of the kernel file. `kernels` is the device code, `imports` what it needs beyond torch."""
    main = programs[0].sketch
    doc = main.doc.strip().replace('"""', "'''").replace("\\", "/") or main.name
    parts = [
        f'"""{doc}\n\nWritten by Kernelwright from the sketch below; needs torch and {needs}.\n"""\n',
        f"import torch\n{imports}\nfrom torch import nn\n",
        *(f"SKETCH{_suffix(number)} = r'''\n{program.text.strip()}\n'''\n" for number, program in enumerate(programs)),
        kernels,
        _DECLARE,
        _module(programs, constructor(_entries([program.sketch for program in programs], state), state)),
    ]
    return "\n".join(parts)


def _suffix(number: int) -> str:
    return f"_{number}" if number else ""


def _entries(sketches: Sequence[nodes.Sketch], state: State) -> list[tuple[str, tuple[int, ...], str, bool]]:
    """All state_dict entries: those given, then parameters that only a sketch names."""
    known = [(name, tuple(shape), str(dtype).removeprefix("torch."), bool(buffer)) for name, shape, dtype, buffer in state]
    names = {entry[0] for entry in known}
    for sketch in sketches:
        for tensor in sketch.tensors:
            if tensor.role == "param" and tensor.source not in names:
                names.add(tensor.source)
                known.append((tensor.source, _shape(sketch, tensor), tensor.dtype.torch_name, False))
    return known


def _shape(sketch: nodes.Sketch, tensor: nodes.Tensor) -> tuple[int, ...]:
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    return tuple(shared.number(i, sizes) for i in tensor.shape)


def _module(programs: Sequence[Program], declared: list[str]) -> str:
    out = ["", "class ModelNew(nn.Module):", "    def __init__(self, *args, **kwargs):", "        super().__init__()"]
    out += declared
    for number, program in enumerate(programs):
        out += _constants(program.sketch, _suffix(number))
        if _once(program):
            out.append(f"        self._made{_suffix(number)} = None")
    if len(programs) > 1:
        shapes = [shared.input_shapes(program.sketch) for program in programs]
        positions = sorted(set.intersection(*(set(each) for each in shapes)))
        out.append("        self._programs = {")
        for number, each in enumerate(shapes):
            out.append(f"            {tuple(each[position] for position in positions)}: self._run{_suffix(number)},")
        out.append("        }")
    for number, program in enumerate(programs):
        out += ["", *_run(program, _suffix(number))]
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
            made = f"torch.tensor({numbers}, dtype=torch.{tensor.dtype.torch_name}).reshape({list(_shape(sketch, tensor))})"
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
    returned = set(_leaves(json.loads(sketch.returns)))
    out = [f"    def _run{suffix}(self, inputs):"]
    inputs = [tensor for tensor in sketch.tensors if tensor.role == "input"]
    for tensor in inputs:
        out.append(f"        {tensor.name} = inputs[{tensor.source}]")
        wanted, kind = _shape(sketch, tensor), tensor.dtype.torch_name
        out.append(f"        if {tensor.name}.shape != {wanted} or {tensor.name}.dtype != torch.{kind}:")
        given = f"{{{tensor.name}.dtype}} {{list({tensor.name}.shape)}}"
        text = f"argument {tensor.source} must be a {kind} tensor of shape {list(wanted)}, not {given}"
        out.append(f'            raise ValueError(f"{text}")')
    params = [
        tensor for tensor in sketch.tensors if tensor.role == "param" and (tensor.name in used or tensor.name in returned)
    ]
    for tensor in params:
        *path, last = tensor.source.split(".")
        owner = "self" + "".join(f"._modules[{part!r}]" for part in path)
        out.append(f"        {tensor.name} = {f'{owner}.{last}' if last.isidentifier() else f'getattr({owner}, {last!r})'}")
    for tensor in sketch.tensors:
        if tensor.role == "constant" and tensor.name in used:
            out.append(f"        {tensor.name} = self._{tensor.name}{suffix}")
    first = next((tensor.name for tensor in (*inputs, *params)), None)
    device = f"{first}.device" if first else '"cuda" if torch.cuda.is_available() else "cpu"'
    out.append(f"        device = {device}")
    for tensor in inputs:
        if tensor.name in used:
            twin = f"{tensor.name}_" if tensor.name in returned else tensor.name
            out.append(f"        {twin} = {tensor.name}.contiguous()")
    if once:
        out += _prepared(sketch, once, made_once, [p for p in params if any(p.name in step.tensors for step in once)], suffix)
    for tensor in sketch.tensors:
        if tensor.role in ("output", "temp") and tensor.name in used and tensor.name not in made_once:
            out.append(f"        {tensor.name} = {_empty(sketch, tensor)}")
    for step in program.steps:
        if isinstance(step, Call):
            if not step.once:
                out += [f"        {line}" for line in step.lines]
        else:
            out += shared._library_call(sketch, step)
    out.append(f"        return {shared._tree(json.loads(sketch.returns))}")
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
        out += [f"            {line}" for line in step.lines]
    out.append(f"            self._made{suffix} = (made_from, {names})")
    out.append(f"        _, {names} = self._made{suffix}")
    return out


def _empty(sketch: nodes.Sketch, tensor: nodes.Tensor) -> str:
    shape = _shape(sketch, tensor)
    return f"torch.empty({shape}, dtype=torch.{tensor.dtype.torch_name}, device=device)"


def _names(sketch: nodes.Sketch, step: Call | nodes.LibraryCall) -> tuple[str, ...]:
    """The tensors of a step; views by the tensor they show."""
    base = {tensor.name: tensor.source for tensor in sketch.tensors if tensor.role == "view"}
    named = step.tensors if isinstance(step, Call) else (*step.inputs, *step.outputs)
    return tuple(base.get(name, name) for name in named)


def _leaves(tree: object) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    items = tree if isinstance(tree, list) else list(tree.values()) if isinstance(tree, dict) else []
    return [leaf for item in items for leaf in _leaves(item)]
