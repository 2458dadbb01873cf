"""What languages of the C family (C++, CUDA-C, OpenCL) share: kernels as loop nests over tiles, elements as C expressions.

In: a kernel of a sketch as a tile graph. Out: what is computed when, in which nest, and the C text of each element; how a nest's loops
are run (by SIMD lanes, by the threads of a block) is the language's.

1. `materialize`  which values are kept and which are computed again where they are needed
2. `schedule`     blocks of effects → nests in order, storage, the tiles that loops carry; `stack` writes tiles put together of others
3. `nest`         one domain and what is done with each element there; `reach` says what computing a value on the spot touches,
                  `transpositions` which values are stored along another axis than they are read
4. `elements`     one element of a value as a graph of `scalars`: C texts that know how deep in a nest they belong
5. `source`       a kernel's tensors and names in C, entry points, indentation
"""
