"""The methods of a kernel file that run one program: constants, checks, preparation, forward.

In: a Sketch, its `Source` and the prefix of its entry points' Python names. Out: lines of Python, indented as methods of a class
whose `self` has the parameters (compiled.py writes the class). forward checks shapes once per signature, then allocates and
calls; kernels marked `once` run again only when a parameter changed.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from kernelwright.compiler.lower.c_family.source import Entry, Source
from kernelwright.compiler.lower.module_file.checks import check_method
from kernelwright.compiler.lower.module_file.size_ranges import dynamic_sizes
from kernelwright.compiler.lower.module_file.values import library_call, number, parameter, python, result, returned
from kernelwright.compiler.lower.module_file.workspace import Layout, Lifetime, layout
from kernelwright.sketch import nodes
from kernelwright.sketch.index import symbols
from kernelwright.sketch.structure import StructuralKeys


def attributes(sketch: nodes.Sketch, holder: str = "self", device: str = "") -> list[str]:
    """What the constructor sets: the sketch's constants, and nothing seen or prepared yet. `holder` has what is made once;
    `device` is the argument that places a new tensor."""
    values = dict(sketch.constants)
    out = []
    for tensor in sketch.tensors:
        if tensor.role == "constant":
            numbers = json.dumps(values[tensor.source]).replace("Infinity", "float('inf')").replace("NaN", "float('nan')")
            numbers = numbers.replace("true", "True").replace("false", "False")
            shape = [number(i, {s.name: s.value for s in sketch.sizes}) for i in tensor.shape]
            out.append(
                f"        self._{tensor.name} = torch.tensor({numbers}, dtype=torch.{tensor.dtype.torch_name}{device}).reshape({shape})"
            )
    return [*out, "        self._seen = None", f"        {holder}._made_from = None", ""]


def preparation(sketch: nodes.Sketch, numbers: dict[Any, int]) -> tuple[Any, ...]:
    """What is made once, and of what: equal for sketches (with the same `numbers`) that can share it."""
    table, made = StructuralKeys(sketch, numbers=numbers), _made_once(sketch)
    tensors, values = {t.name: t for t in sketch.tensors}, dict(sketch.constants)
    found = []
    for step in sketch.steps:
        if isinstance(step, nodes.Kernel) and step.once:
            structure, names = table.of(step)
            roles = [(tensors[name].role, made.get(name, tensors[name].source)) for name in names]
            given = [values.get(tensors[name].source) for name in names if tensors[name].role == "constant"]
            found.append((structure, tuple(roles), tuple(given)))
    sizes = tuple(replace(size, value=0) if size.dynamic else size for size in sketch.sizes)  # the example is no part of it
    return tuple(found), sizes, sketch.tunables


def _made_once(sketch: nodes.Sketch) -> dict[str, str]:
    """Attributes for the tensors that are made once: counted as they are met, because sketches for other shapes name them otherwise."""
    table, roles = StructuralKeys(sketch), {t.name: t.role for t in sketch.tensors}
    once = [step for step in sketch.steps if isinstance(step, nodes.Kernel) and step.once]
    names = dict.fromkeys(name for step in once for name in table.of(step)[1] if roles[name] in ("temp", "output"))
    return {name: f"made_{number}" for number, name in enumerate(names)}


def methods(sketch: nodes.Sketch, built: Source, prefix: str, holder: str = "self", device: str = "") -> list[str]:
    """`_check`, `_prepare` (where something is made once) and `forward`."""
    inputs = [t for t in sketch.tensors if t.role == "input"]
    params = [t for t in sketch.tensors if t.role == "param"]
    constants = [t for t in sketch.tensors if t.role == "constant"]
    used = {t for step in built.steps if isinstance(step, Entry) for t in step.tensors}
    base = {t.name: t.source for t in sketch.tensors if t.role == "view"}
    library_steps = [step for step in built.steps if isinstance(step, nodes.LibraryCall)]
    used |= {base.get(t, t) for step in library_steps for t in (*step.inputs, *step.outputs)}
    once = [s for s in built.steps if isinstance(s, Entry) and s.once]
    once_made = {t for s in once for t in s.tensors if _role(sketch, t) in ("temp", "output")}
    out = check_method(sketch, inputs)
    if once:
        out += _prepare_method(sketch, prefix, once, once_made, params, holder, device)
    return out + _forward_method(sketch, built, prefix, inputs, params, constants, used, once, once_made, holder, device)


def _role(sketch: nodes.Sketch, name: str) -> str:
    return next(t.role for t in sketch.tensors if t.name == name)


def _prepare_method(
    sketch: nodes.Sketch, prefix: str, once: list[Entry], made: set[str], params: list[nodes.Tensor], holder: str, device: str
) -> list[str]:
    attribute = _made_once(sketch)
    names = [p.name for p in params]
    out = [f"    def _prepare(self, {', '.join(names)}):" if names else "    def _prepare(self):"]
    out.append('        """What depends on parameters only (folding, packing); kept until one changes."""')
    for tensor in sketch.tensors:
        if tensor.name in made:
            out.append(f"        {tensor.name} = {holder}.{attribute[tensor.name]} = {_empty(sketch, tensor, device)}")
    for tensor in sketch.tensors:
        if tensor.role == "constant" and any(tensor.name in step.tensors for step in once):
            out.append(f"        {tensor.name} = self._{tensor.name}")
    for step in once:
        out.append(f"        {prefix}{step.name}({_arguments(step, [f'{t}.data_ptr()' for t in step.tensors])})")
    return [*out, ""]


def _arguments(step: Entry, pointers: list[str]) -> str:
    """What an entry point is called with."""
    given = [f"(ctypes.c_void_p * {len(pointers)})({', '.join(pointers)})"] if step.by_array else pointers
    return ", ".join([*given, *step.sizes])


def _empty(sketch: nodes.Sketch, tensor: nodes.Tensor, device: str, like: str = "") -> str:
    """A new tensor; `like` names one of the same dtype, which saves 0.2 µs. Extents as arguments of their own: torch takes 0.5 µs
    longer to read a tuple."""
    shape = ", ".join(python(i, sketch) for i in tensor.shape) or "()"
    return f"{like}.new_empty({shape})" if like else f"torch.empty({shape}, dtype=torch.{tensor.dtype.torch_name}{device})"


def _forward_method(
    sketch: nodes.Sketch, built: Source, prefix: str, inputs: list[nodes.Tensor], params: list[nodes.Tensor], constants: list[nodes.Tensor],
    used: set[str], once: list[Entry], once_made: set[str], holder: str, device: str,
) -> list[str]:  # fmt: skip
    out: list[str] = []
    by_position = {int(t.source): t for t in inputs}
    count = max(by_position, default=-1) + 1
    names = [by_position[k].name if k in by_position else f"unused_{k}" for k in range(count)]
    out.append("    def forward(self, *args, **kwargs):")
    if count:
        nested = "".join(f" or type(args[{k}]) in _NESTED" for k in range(count))
        out.append(f"        if kwargs or len(args) != {count}{nested}:")
        out.append(f"            args = _flatten((args, kwargs), [])[:{count}]")
        out.append(f"        {', '.join(names)}{',' if count == 1 else ''} = args")
    signature = ", ".join(f"{t.name}.shape, {t.name}.dtype" for t in inputs)
    if inputs:
        out.append(f"        signature = ({signature})")
        out.append("        if signature != self._seen:")
        out.append(f"            self._check({', '.join(t.name for t in inputs)})")
        out.append("            self._seen = signature")
    given_back = returned(sketch)
    for tensor in inputs:
        if tensor.name in used:
            target = f"{tensor.name}_" if tensor.name in given_back else tensor.name
            out.append(f"        {target} = {tensor.name} if {tensor.name}.is_contiguous() else {tensor.name}.contiguous()")
    out += [f"        {name} = {text}" for name, text in dynamic_sizes(sketch).items()]
    for tensor in params:
        if tensor.name in used:
            out.append(f"        {tensor.name} = {parameter(tensor)}")
    for tensor in constants:
        if tensor.name in used:
            out.append(f"        {tensor.name} = self._{tensor.name}")
    if once:
        key = ", ".join(f"{p.name}.data_ptr(), {p.name}._version" for p in params if any(p.name in s.tensors for s in once))
        chosen = ", ".join(p.name for p in params)
        out.append(f"        made_from = ({key}{',' if key else ''})")
        out.append(f"        if made_from != {holder}._made_from:")
        out.append(f"            self._prepare({chosen})")
        out.append(f"            {holder}._made_from = made_from")
        attribute = _made_once(sketch)
        for name in sorted(once_made):
            out.append(f"        {name} = {holder}.{attribute[name]}")
    room = _workspace(sketch, built, used - once_made)
    if room.size:
        out.append(f"        _workspace = torch.empty({room.size}, dtype=torch.uint8{device})")
        out.append("        _memory = _workspace.data_ptr()")
    for tensor in sketch.tensors:
        made_here = tensor.role in ("output", "temp") and tensor.name in used and tensor.name not in once_made
        if made_here and tensor.name not in room.offsets:
            like = next((t.name for t in inputs if t.dtype == tensor.dtype), "")
            out.append(f"        {tensor.name} = {_empty(sketch, tensor, device, like)}")

    def pointer(name: str) -> str:
        if name in room.offsets:
            return f"_memory + {room.offsets[name]}"
        return f"{name}_.data_ptr()" if name in given_back and _role(sketch, name) == "input" else f"{name}.data_ptr()"

    for step in built.steps:
        if isinstance(step, Entry):
            if not step.once:
                pointers = [pointer(t) for t in step.tensors]
                out.append(f"        {prefix}{step.name}({_arguments(step, pointers)})")
        else:
            out += library_call(sketch, step)
    out.append(f"        return {result(sketch)}")
    return out


def _workspace(sketch: nodes.Sketch, built: Source, used: set[str]) -> Layout:
    """Room for several temporaries of known size that only our own kernels touch; a single one is allocated like an output."""
    sizes = {t.name: t.value for t in sketch.tunables} | {s.name: s.value for s in sketch.sizes if not s.dynamic}
    base = {t.name: t.source for t in sketch.tensors if t.role == "view"}
    calls = [step for step in built.steps if isinstance(step, nodes.LibraryCall)]
    foreign = {base.get(name, name) for step in calls for name in (*step.inputs, *step.outputs)}
    lives: dict[str, Lifetime] = {}
    for tensor in sketch.tensors:
        if tensor.role != "temp" or tensor.name not in used or tensor.name in foreign or tensor.name not in built.alive:
            continue
        if all(name in sizes for extent in tensor.shape for name in symbols(extent)):
            elements = math.prod(number(extent, sizes) for extent in tensor.shape)
            lives[tensor.name] = Lifetime(elements * tensor.dtype.size, *built.alive[tensor.name])
    return layout(lives) if len(lives) > 1 else Layout({}, 0)
