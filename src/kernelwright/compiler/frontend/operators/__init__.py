"""ATen operators to lazy values, one file a family: pointwise, views, reduce, norm, pool, index, scatter, order, product,
recurrent, compound, distance.

`table.py` holds the registry; importing this folder fills it.
"""

from kernelwright.compiler.frontend.operators import (
    compound,
    distance,
    index,
    norm,
    order,
    pointwise,
    pool,
    product,
    recurrent,
    reduce,
    scatter,
    views,
)
from kernelwright.compiler.frontend.operators.table import RULES, Result, find, rule

__all__ = [
    "RULES",
    "Result",
    "compound",
    "distance",
    "find",
    "index",
    "norm",
    "order",
    "pointwise",
    "pool",
    "product",
    "recurrent",
    "reduce",
    "rule",
    "scatter",
    "views",
]
