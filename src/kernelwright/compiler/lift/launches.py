"""What a forward does on its device, as plain data: memory, launches, and the torch operations between them.

In: nothing (these are the nouns). Out: a `Trace`, made by running a kernel file once on example inputs (`tracing.py`, with the
language's own recorder of launches) and read by a language's lifter. Everything in a trace is concrete: sizes, strides, grids.

A `Buffer` is one piece of memory, dense and row-major under `shape`. Whatever forward made of it (slices, transposes, reshapes) is
seen only as addresses: a `View` says where a tensor lies in its buffer, in elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from kernelwright.sketch.nodes import DType

Role = Literal["input", "param", "constant", "temp", "output"]


@dataclass(frozen=True)
class Buffer:
    """One piece of memory. `source` as in a sketch's tensor: position of an input, name of a parameter; `values` are the numbers
    of a constant. `order` is how forward's tensor lies in it: None for row-major, otherwise the tensor's axes from the slowest to
    the fastest (a channels-last input); `shape` is then in that order, too."""

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: DType
    source: str = ""
    order: tuple[int, ...] | None = None
    values: tuple[float | int | bool, ...] = ()

    @property
    def elements(self) -> int:
        """How many elements it holds."""
        return prod(self.shape)


@dataclass(frozen=True)
class View:
    """A tensor in a buffer: the element with coordinates c lies at `offset + sum(c * strides)`."""

    buffer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def whole(self, buffer: Buffer) -> bool:
        """Whether it is all of the buffer in row-major order."""
        return self.offset == 0 and prod(self.shape) == buffer.elements and self.strides == row_major(self.shape, self.strides)


@dataclass(frozen=True)
class Launch:
    """One kernel launch. `arguments` are the kernel's parameters by name, in order: Views for tensors, numbers and other Python
    values as they are. `kernel` is whatever the language's lifter needs to find the code."""

    name: str
    kernel: Any
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fill:
    """`torch.zeros`, `fill_`: one number everywhere in a view."""

    target: View
    value: float | int | bool


@dataclass(frozen=True)
class Copy:
    """`contiguous`, `clone`, `to(dtype)`, `copy_`: the elements of a view, cast to the target's dtype. Shapes broadcast."""

    target: View
    source: View


@dataclass(frozen=True)
class Operation:
    """A torch operator that computes: its ATen name, and its arguments with Views for tensors."""

    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    outputs: tuple[View, ...]
    line: int = 0
    """Of the kernel file, where it is called; 0 where Python code of the file does not call it."""


Step = Launch | Fill | Copy | Operation


@dataclass(frozen=True)
class Trace:
    """One call of forward. `returns` is its result: a tree of tuples, lists and dicts with Views for tensors."""

    buffers: Mapping[str, Buffer]
    steps: tuple[Step, ...]
    returns: Any
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A trace, and what it was made of: the file, the values that forward was called with (copied before), and what it gave back
    (garbage where launches are not run: `executed`)."""

    trace: Trace
    name: str
    doc: str
    path: str
    source: str
    inputs: Any
    state: Mapping[str, Any]
    results: tuple[Any, ...]
    executed: bool = True


def row_major(shape: tuple[int, ...], like: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """The strides of a dense row-major tensor. Axes of extent 1 take any stride: those of `like` where it is given."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    strides.reverse()
    if like is not None:
        strides = [own if extent == 1 else s for s, own, extent in zip(strides, like, shape, strict=True)]
    return tuple(strides)
