"""How a CPU runs over the elements of tiles.

1. `loop_nest`   one nest: order, clipping, interior and borders; `reductions` its sums; `loops` what it knows of
                its kernel
2. `vectors`     loops over floats with explicit vectors; `merging` makes one axis of several; `fetch` prefetches
3. `streams`     places of memory that a loop visits in turn; `transposed` copies tiles in blocks that are transposed in registers
4. `scan`, `sort`  what their names say
"""
