"""One sketch as a C library without Python and without torch: what a program, a package or another language calls.

In: a Sketch. Out: `Library`: C++ text with two functions of a C ABI, and what their pointers stand for, in order.

    void NAME(void* const* inputs, void* const* outputs, void* kept, void* workspace);
    void NAME_prepare(void* const* inputs, void* kept);        // only where something depends on parameters alone

All tensors are contiguous. `kept` is what `prepare` makes of the parameters and `workspace` is for temporaries; both have a size in bytes
that the caller provides. Constants of the sketch are arrays in the text. Nothing is allocated and nothing is global: threads may call
at the same time with other workspaces.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.backends.cpp.kernel import DEFAULT, source
from kernelwright.compiler.backends.cpp.module_file import build_flags
from kernelwright.compiler.lower.c_family.source import Entry, Source
from kernelwright.compiler.lower.c_types import literal
from kernelwright.compiler.lower.module_file.values import number
from kernelwright.compiler.lower.module_file.workspace import ALIGNMENT, Lifetime, layout
from kernelwright.core.dtypes import DType
from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes


@dataclass(frozen=True)
class Argument:
    """A tensor that the caller provides: its name and source in the sketch, shape, dtype and role."""

    name: str
    source: str
    shape: tuple[int, ...]
    dtype: DType
    role: str

    @property
    def bytes(self) -> int:
        """The memory that the tensor takes."""
        return math.prod(self.shape) * self.dtype.size


@dataclass(frozen=True)
class Library:
    """The text, its function's name, and what the caller provides. `returns` is the sketch's tree of results by name: an output, or
    an input that comes back as it is."""

    text: str
    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    returns: Any
    kept: int
    workspace: int
    flags: tuple[str, ...]


def c_library(sketch: nodes.Sketch, name: str, *, options: CodegenOptions = DEFAULT) -> Library:
    """The library of a sketch whose sizes are numbers. SketchError for one with dynamic sizes or calls into torch."""
    if any(size.dynamic for size in sketch.sizes):
        raise SketchError("a C library is written for sizes that are numbers; this sketch has dynamic ones")
    if any(isinstance(step, nodes.LibraryCall) for step in sketch.steps):
        raise SketchError("a C library calls nothing of torch; this sketch leaves operators to it (track hybrid)")
    built = source(sketch, options=options)
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}

    def argument(tensor: nodes.Tensor) -> Argument:
        shape = tuple(number(extent, sizes) for extent in tensor.shape)
        return Argument(tensor.name, tensor.source, shape, tensor.dtype, tensor.role)

    given = [argument(t) for t in sketch.tensors if t.role in ("input", "param")]
    entries = [step for step in built.steps if isinstance(step, Entry)]
    made_once = {t for e in entries if e.once for t in e.tensors}
    kept_names = [t for t in sketch.tensors if t.role in ("temp", "output") and t.name in made_once]
    results = [argument(t) for t in sketch.tensors if t.role == "output" and t.name not in made_once]
    kept, room = _places(argument(t) for t in kept_names)
    temporaries = _temporaries(sketch, built, argument, made_once)
    places = {a.name: f"inputs[{k}]" for k, a in enumerate(given)}
    places |= {a.name: f"outputs[{k}]" for k, a in enumerate(results)}
    places |= {key: f"(char*)kept + {offset}" for key, offset in kept.items()}
    places |= {key: f"(char*)workspace + {offset}" for key, offset in temporaries.offsets.items()}
    constants = [t for t in sketch.tensors if t.role == "constant"]
    places |= {t.name: f"(void*)constant_{t.name}" for t in constants}
    text = built.text.replace('extern "C" void run_', "static void run_")
    parts = [text, *(_constant(argument(t), dict(sketch.constants)[t.source]) for t in constants)]
    if room:
        calls = [_call(e, sketch, places) for e in entries if e.once]
        parts.append(_function(f"{name}_prepare(void* const* inputs, void* kept)", calls))
    calls = [_call(e, sketch, places) for e in entries if not e.once]
    parts.append(_function(f"{name}(void* const* inputs, void* const* outputs, void* kept, void* workspace)", calls))
    return Library(
        "\n".join(parts), name, tuple(given), tuple(results), json.loads(sketch.returns), room, temporaries.size,
        tuple(build_flags([built.text], options)),
    )  # fmt: skip


def _places(tensors: Iterable[Argument]) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    end = 0
    for tensor in tensors:
        offsets[tensor.name] = end
        end += -(-max(tensor.bytes, 1) // ALIGNMENT) * ALIGNMENT
    return offsets, end


def _temporaries(sketch: nodes.Sketch, built: Source, argument: Any, made_once: set[str]) -> Any:
    lives: dict[str, Lifetime] = {}
    last = len(sketch.steps)
    for tensor in sketch.tensors:
        if tensor.role == "temp" and tensor.name not in made_once:
            first, end = built.alive.get(tensor.name, (0, last))
            lives[tensor.name] = Lifetime(max(argument(tensor).bytes, 1), first, end)
    return layout(lives)


def _call(entry: Entry, sketch: nodes.Sketch, places: Mapping[str, str]) -> str:
    dtypes = {t.name: t.dtype for t in sketch.tensors}
    if entry.by_array:
        listed = ", ".join(f"(void*)({places[t]})" for t in entry.tensors)
        return f"  {{ void* tensors[] = {{{listed}}}; {entry.name}(tensors); }}"
    given = ", ".join(f"({dtypes[t].c_name}*)({places[t]})" for t in entry.tensors)
    return f"  {entry.name}({given});"


def _function(head: str, calls: list[str]) -> str:
    return f'extern "C" void {head} {{\n' + "\n".join(calls) + "\n}\n"


def _constant(tensor: Argument, values: tuple[float | int | bool, ...]) -> str:
    stored = tensor.dtype.c_name
    listed = ", ".join(_number(value, tensor.dtype) for value in values) or "0"
    return f"alignas({ALIGNMENT}) static const {stored} constant_{tensor.name}[] = {{{listed}}};"


def _number(value: float | int | bool, dtype: DType) -> str:
    """An element as it is stored: 16-bit floats by their bits."""
    if dtype == DType.f16:
        return str(struct.unpack("<H", struct.pack("<e", value))[0])
    if dtype == DType.bf16:
        return str(struct.unpack("<I", struct.pack("<f", value))[0] >> 16)  # a bf16 tensor's number has no further bits
    return literal(value, dtype)
