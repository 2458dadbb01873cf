"""Sizes that vary, in the forward of a kernel file: how they are read off the inputs, and what is said of sizes out of range.

In: a sketch with dynamic sizes. Out: Python expressions and lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.sketch import nodes
from kernelwright.sketch.index import polynomial


@dataclass(frozen=True)
class Place:
    """Where a size stands: an axis of an input, whose extent is `factor` times the size."""

    tensor: nodes.Tensor
    axis: int
    factor: int

    @property
    def text(self) -> str:
        """The size, as Python."""
        extent = f"{self.tensor.name}.shape[{self.axis}]"
        return extent if self.factor == 1 else f"{extent} // {self.factor}"

    @property
    def words(self) -> str:
        """The axis, for people."""
        return f"dimension {self.axis} of argument {self.tensor.source}"


def places(sketch: nodes.Sketch) -> dict[str, Place]:
    """Where each dynamic size can be read, the plainest place of each; a size that no input shows is not in it."""
    dynamic = {s.name for s in sketch.sizes if s.dynamic}
    found: dict[str, Place] = {}
    for tensor in sketch.tensors:
        if tensor.role != "input":
            continue
        for axis, extent in enumerate(tensor.shape):
            terms = polynomial(extent).terms
            if len(terms) != 1 or len(terms[0][0]) != 1:
                continue
            (name,), factor = terms[0]
            if name in dynamic and factor > 0 and (name not in found or factor < found[str(name)].factor):
                found[str(name)] = Place(tensor, axis, factor)
    return found


def dynamic_sizes(sketch: nodes.Sketch) -> dict[str, str]:
    """Each size that varies, with the Python that reads it off the inputs."""
    where = places(sketch)
    return {s.name: where[s.name].text if s.name in where else str(s.value) for s in sketch.sizes if s.dynamic}


def range_tests(sketch: nodes.Sketch) -> list[str]:
    """Lines that raise where a size, which stands under its name, is outside of what the sketch is for."""
    out: list[str] = []
    where = places(sketch)
    for size in sketch.sizes:
        if not size.dynamic or size.name not in where:
            continue
        place = where[size.name]
        tests = condition(size)
        if place.factor > 1 and polynomial(place.tensor.shape[place.axis]).terms[0][1] == place.factor:
            tests = [f"{place.tensor.name}.shape[{place.axis}] % {place.factor} == 0", *tests]
        if tests:
            shown = f"{{{place.tensor.name}.shape[{place.axis}]}}"
            text = f"{place.words} must be {words(size, place.factor)}, not {shown}"
            out += [f"        if not ({' and '.join(tests)}):", f'            raise ValueError(f"{text}")']
    return out


def condition(size: nodes.Size) -> list[str]:
    """What must hold of a size, as Python; extents are never negative, so a least size of 0 says nothing."""
    tests = []
    if size.low > 0 and size.high is not None:
        tests.append(f"{size.low} <= {size.name} <= {size.high}")
    elif size.low > 0:
        tests.append(f"{size.name} >= {size.low}")
    elif size.high is not None:
        tests.append(f"{size.name} <= {size.high}")
    if size.multiple_of > 1:
        tests.append(f"{size.name} % {size.multiple_of} == 0")
    return tests


def words(size: nodes.Size, factor: int = 1) -> str:
    """A size's range for people, in units of the axis where it stands."""
    step = factor * size.multiple_of
    end = "or more" if size.high is None else f"to {size.high * factor}"
    text = f"{size.low * factor} {end}"
    return text if step == 1 else f"a multiple of {step}, {text}"
