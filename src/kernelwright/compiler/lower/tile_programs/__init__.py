"""What languages of tile programs (Triton, TileLang) share: a grid of blocks, each of which computes whole tiles.

In: a kernel of a sketch as a tile graph. Out: launches, the dimensions of their blocks, and everything about a block's tiles but the
language's spelling.

1. `grid`      which loops become the grid, one launch after another; what a launch reads and writes
2. `survey`    a dry run over a block: which dimensions there are and where they meet
3. `plan`      from the survey: how large each dimension's block is, and who walks over it
4. `program`   the effects of one block in order: loops, stores, tiles that are materialized before they are needed
5. `elements`  a tile value at given positions as an expression
6. `lines`     expressions with their dimensions, written into loops
"""
