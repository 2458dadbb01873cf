"""Matrix products of a CPU.

1. `micro_kernel`  the register-blocked product and how it is called (prelude/products.h, packing.h)
2. `tile_product`  a tile product as calls: where operands lie, what is copied; `sums` makes one call of loops that only add products
3. `bf16`          products of bf16 in pairs, for processors that have them
"""
