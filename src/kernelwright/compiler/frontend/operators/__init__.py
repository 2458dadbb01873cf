"""ATen operators to lazy values, one file a family: pointwise, views, reduce, norm, pool, index, scatter, order, product,
recurrent, compound, distance.

`table.py` holds the registry; importing this folder fills it, with the rules of other packages (entry points of the group
`kernelwright.operators`, which register themselves when they are imported).
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
from kernelwright.core import plugins

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

for _name in plugins.names(plugins.OPERATORS):
    plugins.load(_name, plugins.OPERATORS)
