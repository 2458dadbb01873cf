"""A sketch as a Triton kernel file: launches of all its kernels (launch.py) inside the module file that GPU languages share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kernelwright.compiler.backends.triton.kernel import VECTOR, Launch, launches
from kernelwright.compiler.backends.triton.op_table import HELPERS
from kernelwright.compiler.hardware import capabilities_of
from kernelwright.compiler.language import State, language
from kernelwright.compiler.lower.module_file.launches import Call, contiguous, programs_of, render
from kernelwright.compiler.lower.module_file.values import python
from kernelwright.sketch import nodes
from kernelwright.target import Capabilities

LIBDEVICE = """
try:  # Ascend's Triton has the functions of its device there
    from triton.language.extra.ascend import libdevice
except ImportError:
    from triton.language.extra import libdevice"""


def lower(
    sketch: nodes.Sketch, *, state: State = (), shapes: Sequence[nodes.Sketch] = (), capabilities: Capabilities | None = None
) -> str:
    """One Python file. `shapes` are sketches of the same module for other input shapes."""
    machine = capabilities or capabilities_of(language("triton"))
    taken: set[str] = set()
    functions: list[str] = []

    def calls(each: nodes.Sketch, step: nodes.Kernel) -> Iterator[Call]:
        for launch in launches(each, step, taken, machine):
            functions.append(launch.text)
            blocks = "" if launch.grid.constant is not None else str(launch.grid)
            yield Call((_call(each, launch),), launch.tensors, launch.once, blocks)

    programs = programs_of((sketch, *shapes), calls)
    body = "\n\n".join(functions)
    helpers = _helpers(body)
    imports = "import triton\nimport triton.language as tl"
    if "libdevice." in body + helpers:
        imports += f"\n{LIBDEVICE}\n"
    return render(programs, state, imports=imports, kernels=f"\n{helpers}{body}", needs="Triton")


def _call(sketch: nodes.Sketch, launch: Launch) -> str:
    """The launch as a line of forward. An input that is also returned has a contiguous twin."""
    twins = contiguous(sketch)
    names = [twins[name] for name in launch.tensors]
    given = [*names, *launch.sizes, *(f"{constant}={size}" for constant, size in launch.constants)]
    if launch.sizes:
        given.append(f"WIDE={_wide(sketch)}")
    if launch.aligned:
        given.append(f"ALIGNED={' and '.join(f'{size} % {VECTOR} == 0' for size in launch.aligned)}")
    return f"{launch.name}[({launch.grid},)]({', '.join(given)}, num_warps={launch.warps}, num_stages={launch.stages})"


def _wide(sketch: nodes.Sketch) -> str:
    """Whether a tensor has positions that 32 bits cannot hold, as Python."""
    volumes = dict.fromkeys(" * ".join(python(extent, sketch) for extent in t.shape) or "1" for t in sketch.tensors)
    varying = [volume for volume in volumes if not volume.replace(" * ", "").isdigit()]
    return f"max({', '.join(varying)}) >= 2**31" if len(varying) > 1 else f"{varying[0]} >= 2**31" if varying else "False"


def _helpers(body: str) -> str:
    """The device functions that a text uses."""
    used = [name for name in HELPERS if re.search(rf"\b{name}\b", body)]
    return "".join(f"{HELPERS[name]}\n\n" for name in used)
