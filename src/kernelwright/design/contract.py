"""Joins the graph to the contraction families: operands become loaders, what follows becomes the epilogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.design import values as v
from kernelwright.errors import UnsupportedOperator

if TYPE_CHECKING:
    from kernelwright.design.assemble import Workshop


def lower_contraction(workshop: Workshop, contraction: v.Contraction, end: v.Value) -> None:
    """Adds the kernels that compute `end`, the last value of the contraction's epilogue."""
    raise UnsupportedOperator(contraction.origin)
