"""A kernel's tensors and names in C, and what a source offers to the file around it.

In: a sketch and one of its kernels. Out: `KernelTensors`: which tensors the kernel touches, where they lie and how they are called;
`Source`, the text with its entry points; lines with indentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.compiler.lower.c_family.elements import TensorPlace
from kernelwright.compiler.lower.c_types import STORED
from kernelwright.compiler.lower.tile_graph import RESERVED, GraphBuilder, walk
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Poly, Ranges, from_index, poly

AXIS_NAMES = ("u", "v", "w", "p", "q", "r", "c")
GENERATED = frozenset(
    {
        "threads",
        "blocks",
        "grid",
        "block",
        "scratch",
        "scratch_of_block",
        "meeting",
        "meeting_point",
        "total",
        "part",
        "first",
        "last",
        "from",
        "to",
        "rank",
        "mine",
        "theirs",
        "before",
        "e",
        "f",
        "g",
        "o",
        "half",
        "row_block",
        "column_block",
        "sum",
        "left",
        "right",
        "tx",
        "ty",
        "row0",
        "column0",
        "k0",
        "i",
        "j",
        "x0",
        "y0",
        "min",
        "max",
        "warpSize",
        "element",
        "at",
        "deep",
        "FUNCTION",
        "rest",
        "HOST_FUNCTION",
    }
)
"""C names of the generated code itself, and of CUDA, that no tensor and no tile may have."""


@dataclass(frozen=True)
class Entry:
    """A C function `name(tensors…, sizes…)`; `once` marks one whose results are kept until a parameter changes; one `by_array`
    takes its tensors as an array of pointers."""

    name: str
    tensors: tuple[str, ...]
    sizes: tuple[str, ...]
    once: bool
    by_array: bool = False


@dataclass(frozen=True)
class Source:
    """The text, the steps in order, and for each tensor the first and the last call (counted over all steps) that touches it."""

    text: str
    steps: tuple[Entry | nodes.LibraryCall, ...]
    alive: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def entry_point(sketch: nodes.Sketch, entry: Entry, calls: list[str]) -> str:
    """The exported function of an entry: its tensors by name, then the calls."""
    declared = {t.name: t for t in sketch.tensors}
    pointers = [f"{STORED[declared[t].dtype]}* {c_name(t)}" for t in entry.tensors]
    parameters = [*(["void** tensors"] if entry.by_array else pointers), *(f"int64_t {s}" for s in entry.sizes)]
    found = [
        f"  {pointer} = ({STORED[declared[t].dtype]}*)tensors[{k}];\n"
        for k, (t, pointer) in enumerate(zip(entry.tensors, pointers, strict=True))
        if entry.by_array
    ]
    return f'extern "C" void {entry.name}({", ".join(parameters)}) {{\n{"".join([*found, *calls])}}}\n'


class KernelTensors:
    """The tensors of one kernel: views are what they show, under its name."""

    def __init__(self, sketch: nodes.Sketch, kernel: nodes.Kernel, dynamic: tuple[str, ...]) -> None:
        self.kernel, self.dynamic = kernel, dynamic
        self.sizes = sizes_of(sketch)
        mentioned = [n for n in walk(kernel.body) if isinstance(n, nodes.Load | nodes.Store)]
        self.used = tuple(dict.fromkeys(root(sketch, n.tensor) for n in mentioned))
        near = {*self.used, *(n.tensor for n in mentioned)}
        self.declared = {t.name: t for t in sketch.tensors if t.name in near}
        self.written = {root(sketch, n.tensor) for n in mentioned if isinstance(n, nodes.Store)}
        self.read = {root(sketch, n.tensor) for n in mentioned if isinstance(n, nodes.Load)}
        self.places = {name: self._place(c_name(root(sketch, name)), tensor) for name, tensor in self.declared.items()}

    def _place(self, pointer: str, tensor: nodes.Tensor) -> TensorPlace:
        shape = tuple(from_index(i, self.sizes) for i in tensor.shape)
        strides: list[Poly] = []
        stride = poly(1)
        for extent in reversed(shape):
            strides.insert(0, stride)
            stride = stride * extent
        return TensorPlace(pointer, shape, tuple(strides), tensor.dtype)

    def builder(self, reserved: set[str]) -> tuple[GraphBuilder, list[str]]:
        """A new builder of the kernel's tile graph, and the names of loop variables, all of them apart from the tensors'."""
        builder = GraphBuilder(self.sizes, self.declared, self.kernel)
        builder.storage_names |= {p.pointer for p in self.places.values()} | set(self.dynamic) | reserved
        builder.ranges = Ranges({})
        return builder, [builder.fresh(name) for name in AXIS_NAMES]


def sizes_of(sketch: nodes.Sketch) -> dict[str, Poly]:
    """Sizes as C has them: numbers, but for dynamic ones."""
    sizes: dict[str, Poly] = {s.name: poly(s.name) if s.dynamic else poly(s.value) for s in sketch.sizes}
    return sizes | {t.name: poly(t.value) for t in sketch.tunables}


def c_name(name: str) -> str:
    """A name that C has no other use for."""
    return f"{name}_" if name in RESERVED or name in GENERATED else name


def root(sketch: nodes.Sketch, name: str) -> str:
    """The tensor that a view shows; any other is itself."""
    tensor = next(t for t in sketch.tensors if t.name == name)
    return tensor.source if tensor.role == "view" else name


def indent(lines: list[str]) -> str:
    """Lines joined with two spaces for each open brace; scopes around one plain block are dropped."""
    flat = [part for line in lines for part in line.split("\n") if part]
    text: list[str] = []
    depth = 1
    for line in flat:
        closing = len(re.match(r"^[}]*", line).group(0))  # type: ignore[union-attr]
        if line.startswith("#"):
            text.append(f"{line}\n")
            continue
        text.append("  " * (depth - min(closing, 1)) + line + "\n")
        depth += line.count("{") - line.count("}")
    return "".join(text)
