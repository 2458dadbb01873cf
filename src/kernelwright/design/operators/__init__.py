"""ATen operators to lazy values, one file a family: pointwise, views, reduce, norm, pool, index, scatter, order, product,
recurrent.

`table.py` holds the registry; importing this folder fills it.
"""

from kernelwright.design.operators import index, norm, order, pointwise, pool, product, recurrent, reduce, scatter, views
from kernelwright.design.operators.table import RULES, Result, find, rule

__all__ = [
    "RULES",
    "Result",
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
