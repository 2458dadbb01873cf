"""One loop nest: several things computed over one domain in a single pass.

In: the extents of a domain and its roots. A root is one thing done with each element of a value: stored in a tensor (`Put`), kept in a
tile (`Fill`), reduced into one (`Fold`). Out: the order of axes that memory likes best, and the scalars of all roots; how the loops
are written is the language's.
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
class Fill:
    """Stores each element of a value into a kept tile."""

    storage: Storage
    value: Value
    index: Index = ()


@dataclass(eq=False)
class Put:
    """Stores each element into a tensor."""

    tensor: str
    axes: tuple[Access, ...]
    value: Value
    mode: str


@dataclass(eq=False)
class Fold:
    """Reduces a value over `axes` into a kept tile."""

    storage: Storage
    value: Value
    op: str
    axes: tuple[int, ...]


Root = Fill | Put | Fold


@dataclass
class Surroundings:
    """What a nest needs to know of its kernel."""

    tensors: dict[str, TensorPlace]
    ranges: Ranges
    taken: set[str]
    axis_names: list[str]


class Nest:
    """A domain with what is done over it."""

    def __init__(self, around: Surroundings, shape: tuple[Poly, ...], roots: list[Root], computing: set[int]) -> None:
        self.around = around
        self.shape = shape
        # a reduction of one element is that element
        self.roots = [
            Fill(root.storage, root.value)
            if isinstance(root, Fold) and all(shape[axis].constant == 1 for axis in root.axes)
            else root
            for root in roots
        ]
        self.computing = computing
        names = around.axis_names
        self.vars = {a: names[a - len(shape)] if len(shape) <= len(names) else f"{names[0]}{a}" for a in range(len(shape))}
        self.index: Index = tuple(poly(0) if e.constant == 1 else poly(self.vars[a]) for a, e in enumerate(shape))
        known = dict(around.ranges.known)
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
        folded = self.folded()
        if folded and axes:
            inner = axes[-1]
            free = [a for a in axes if a not in folded and a != inner]
            bound = [a for a in axes if a in folded and a != inner]
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

    def folded(self) -> set[int]:
        return {a for root in self.roots if isinstance(root, Fold) for a in root.axes if self.shape[a].constant != 1}

    # ------------------------------------------------------------ scalars

    def elements(self, levels: dict[str, int]) -> Elements:
        return Elements(self.around.tensors, self.ranges, levels, computing=self.computing)

    def scalars(self, elements: Elements) -> list[Scalar]:
        """The value of each root, and where stores go (kept for `places`)."""
        result = []
        for root in self.roots:
            index = self.index
            if isinstance(root, Fill):
                index = self.fill_index(root)
                if not root.storage.scalar:
                    elements.places.append(
                        Place(root.storage.name, Elements.offset_in(root.storage, index), True, root.storage.dtype)
                    )
            if isinstance(root, Put):
                tensor = self.around.tensors[root.tensor]
                offset = offset_of(tensor.strides, elements.positions(root.axes, self.index))
                elements.places.append(Place(tensor.pointer, offset, True, tensor.dtype))
            result.append(elements.of(root.value, fitting(root.value, index)))
        return result

    def fill_index(self, root: Fill) -> Index:
        return root.index or self.index[len(self.index) - len(root.storage.shape) :] if root.storage.shape else ()

    def fold_index(self, root: Fold) -> Index:
        return tuple(poly(0) if a in root.axes else p for a, p in enumerate(self.index))
