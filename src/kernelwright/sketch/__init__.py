"""The Unified Sketch: the algorithm and its schedule as a real language, in no particular target language.

1. `nodes`      the grammar and its meaning            5. `check`      shapes, dtypes, bounds, reads before writes, races
2. `parse`      source text → Sketch                   6. `interpret`  a Sketch run on torch tensors (`operations`, `memory`,
3. `print`      Sketch → source text                                   `observe` are its parts)
4. `symbolic`   integer expressions: simplify, bound   7. `types`      shape and dtype of every tile

Importing this package imports no torch; `interpret` does.
"""
