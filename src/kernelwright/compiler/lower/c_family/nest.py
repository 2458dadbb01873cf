"""One loop nest: several things computed over one domain in a single pass.

In: the extents of a domain and its outputs. An output is one thing done with each element of a value: stored in a tensor (`Store`),
materialized in a tile (`Materialize`), reduced into one (`Reduce`). Out: the order of axes that memory likes best, and the scalars of
all outputs; how the loops are written is the language's.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.compiler.lower.c_family.elements import Elements, Place, TensorPlace
from kernelwright.compiler.lower.c_family.scalars import Scalar
from kernelwright.compiler.lower.element_index import Index, fitting
from kernelwright.compiler.lower.element_index import offset as offset_of
from kernelwright.compiler.lower.tile_values import Access, Storage, Value
from kernelwright.sketch.index import Poly, Ranges, poly


@dataclass(eq=False)
class Materialize:
    """Stores each element of a value into a kept tile."""

    storage: Storage
    value: Value
    index: Index = ()


@dataclass(eq=False)
class Store:
    """Stores each element into a tensor."""

    tensor: str
    axes: tuple[Access, ...]
    value: Value
    mode: str


@dataclass(eq=False)
class Reduce:
    """Reduces a value over `axes` into a kept tile."""

    storage: Storage
    value: Value
    op: str
    axes: tuple[int, ...]


Output = Materialize | Store | Reduce


@dataclass
class KernelContext:
    """What a nest needs to know of its kernel."""

    tensors: dict[str, TensorPlace]
    ranges: Ranges
    taken: set[str]
    axis_names: list[str]


class Nest:
    """A domain with what is done over it."""

    def __init__(self, context: KernelContext, shape: tuple[Poly, ...], outputs: list[Output], computing: set[int]) -> None:
        self.context = context
        self.shape = shape
        # a reduction of one element is that element
        self.outputs = [
            Materialize(output.storage, output.value)
            if isinstance(output, Reduce) and all(shape[axis].constant == 1 for axis in output.axes)
            else output
            for output in outputs
        ]
        self.computing = computing
        names = context.axis_names
        self.vars = {a: names[a - len(shape)] if len(shape) <= len(names) else f"{names[0]}{a}" for a in range(len(shape))}
        self.index: Index = tuple(poly(0) if e.constant == 1 else poly(self.vars[a]) for a, e in enumerate(shape))
        known = dict(context.ranges.known)
        for axis, extent in enumerate(shape):
            known[self.vars[axis]] = (poly(0), extent - 1)
        self.ranges = Ranges(known)

    # ------------------------------------------------------------ order

    def order(self) -> list[int]:
        """Axes from outermost to innermost; axes of extent 1 are no loops."""
        axes = [a for a, e in enumerate(self.shape) if e.constant != 1]
        if len(axes) > 1:
            trial = self.elements({self.vars[a]: 1 for a in axes})
            self.scalars(trial)
            inner = max(axes, key=lambda a: (self._liking(trial.places, a), a))
            axes = [a for a in axes if a != inner] + [inner]
        reduced = self.reduced()
        if reduced and axes:
            inner = axes[-1]
            free = [a for a in axes if a not in reduced and a != inner]
            bound = [a for a in axes if a in reduced and a != inner]
            axes = [*free, *bound, inner]
        return axes

    def _liking(self, places: list[Place], axis: int) -> float:
        extent = self.shape[axis].constant or 64
        score = 0.0
        for place in places:
            stride = place.offset.coefficient(self.vars[axis])
            weight = 2.0 if place.writes else 1.0
            if stride is None:
                score -= weight
            elif stride.constant == 0:
                score += 0.25 * weight
            elif stride.constant == 1:
                score += weight
            else:
                score -= 0.5 * weight
        return score if extent >= 8 else score / 2 - 1.0

    def reduced(self) -> set[int]:
        return {a for output in self.outputs if isinstance(output, Reduce) for a in output.axes if self.shape[a].constant != 1}

    # ------------------------------------------------------------ scalars

    def elements(self, levels: dict[str, int]) -> Elements:
        return Elements(self.context.tensors, self.ranges, levels, computing=self.computing)

    def scalars(self, elements: Elements) -> list[Scalar]:
        """The value of each root, and where stores go (kept for `places`)."""
        result = []
        for output in self.outputs:
            index = self.index
            if isinstance(output, Materialize):
                index = self.tile_index(output)
                if not output.storage.scalar:
                    elements.places.append(
                        Place(output.storage.name, Elements.offset_in(output.storage, index), True, output.storage.dtype)
                    )
            if isinstance(output, Store):
                tensor = self.context.tensors[output.tensor]
                offset = offset_of(tensor.strides, elements.positions(output.axes, self.index))
                elements.places.append(Place(tensor.pointer, offset, True, tensor.dtype))
            result.append(elements.of(output.value, fitting(output.value, index)))
        return result

    def tile_index(self, output: Materialize) -> Index:
        return output.index or self.index[len(self.index) - len(output.storage.shape) :] if output.storage.shape else ()

    def reduced_index(self, output: Reduce) -> Index:
        return tuple(poly(0) if a in output.axes else p for a, p in enumerate(self.index))
