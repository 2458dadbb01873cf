"""ATen operators to lazy values, one file a family: pointwise, views, reduce, norm, pool, index, order, product.

`table.py` holds the registry; importing this folder fills it.
"""

from kernelwright.design.operators import index, norm, order, pointwise, pool, product, reduce, views
from kernelwright.design.operators.table import RULES, Result, find, rule

__all__ = ["RULES", "Result", "find", "index", "norm", "order", "pointwise", "pool", "product", "reduce", "rule", "views"]
