"""Values in, sketches out: what is materialised, in which order, in which loops and tiles.

1. `partition`     which values are materialised; `assemble` collects kernels into sketches with a `sketch_builder`
2. `nest`          one kernel's iteration space: scalar expressions (`scalar`) over axes
3. `loops`         what is parallel, a tile axis, a sequential loop, in tiles of `tile_sizes` (from the capabilities); `tiles` writes a
                   nest as sketch statements by its `bindings`; `separable` windows; `waste` what a nest must not do
4. `fusion`        prologues and epilogues of contractions;   `contraction/` products, convolutions, attention
5. `custom`        sorting and scattering;   `recurrence` layers that walk through time;   `candidate` what a family offers
"""
